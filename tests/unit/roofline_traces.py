"""Traces by hand for the roofline: ops with shapes, each launching work of a given length."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trnscope.model.kinds import SliceKind
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile

H100 = "NVIDIA H100 80GB HBM3"
BF16 = "c10::BFloat16"


@dataclass
class Hand:
    """A host thread that runs one op after the other, and a stream that runs their work."""

    directory: Path
    device: str | None = H100
    simulated: bool = False
    builder: TraceBuilder = field(init=False)
    host_ns: int = 0
    device_ns: int = 0
    correlation: int = 0

    def __post_init__(self) -> None:
        self.builder = TraceBuilder(self.directory)
        self.thread = self.builder.thread()
        self.stream = self.builder.stream(name=self.device, simulated=self.simulated)

    def launch(
        self,
        dur_ns: int,
        at_ns: int,
        name: str = "gemm",
        kind: SliceKind = SliceKind.KERNEL,
    ) -> None:
        """Device work, started by a launch at ``at_ns`` on the host."""
        self.correlation += 1
        self.builder.slice(
            self.thread,
            "cudaLaunchKernel",
            at_ns,
            1,
            SliceKind.RUNTIME,
            correlation=self.correlation,
        )
        start = max(self.device_ns, at_ns + 1)
        self.builder.slice(self.stream, name, start, dur_ns, kind, correlation=self.correlation)
        self.device_ns = start + dur_ns

    def op(
        self,
        name: str,
        shapes: Sequence[Any] | None,
        dur_ns: int,
        *,
        dtype: str = BF16,
        inside: Sequence[str] = (),
        values: Sequence[str] | None = None,
        kernel: str = "gemm",
        kind: SliceKind = SliceKind.KERNEL,
    ) -> None:
        """An op of 100 ns with the same arguments as the ops around it, outermost first.

        ``dur_ns`` 0 launches nothing.
        """
        given: dict[str, Any] = {}
        if shapes is not None:
            types = [dtype if shape else "Scalar" for shape in shapes]
            given = {"input_dims": json.dumps(shapes), "input_types": json.dumps(types)}
            given |= {} if values is None else {"concrete_inputs": json.dumps(values)}
        start, names = self.host_ns, [*inside, name]
        for depth, each in enumerate(names):
            self.builder.slice(
                self.thread, each, start + depth, 100 - 2 * depth, SliceKind.CPU_OP, **given
            )
        if dur_ns:
            self.launch(dur_ns, start + len(names) + 5, kernel, kind)
        self.host_ns = start + 100

    def step(self, name: str, start_ns: int, dur_ns: int) -> None:
        """A step's range on the host."""
        self.builder.slice(self.thread, name, start_ns, dur_ns, SliceKind.ANNOTATION)

    def profile(self) -> Profile:
        """The profile of this trace alone."""
        return Profile((self.builder.build(),))
