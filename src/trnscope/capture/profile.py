"""``trnscope.profile``: records a part of a program, as a context manager or a decorator."""

from __future__ import annotations

import functools
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from trnscope.capture.record import CaptureRecord, Overhead, record_path
from trnscope.capture.simulation import (
    simulated_options,
    still_there,
    virtual_recording,
    write_virtual,
)
from trnscope.errors import CaptureError, UsageError

if TYPE_CHECKING:
    from trnscope.store.profile import Profile

P = ParamSpec("P")
R = TypeVar("R")

OUTPUT_FOLDER = Path("trnscope-out")


class profile:
    """Record what runs inside, on every device that torch has, and write it to a trace file.

    On a simulated device the file is in virtual time throughout, and says so; with an
    ``experimental_config`` that is no NeuronConfig it is torch's own, with a measured host.

    ::

        with trnscope.profile(wait=1, warmup=1, active=3) as run:
            for batch in loader:
                train(batch)
                run.step()
        run.path  # the trace
        run.open().ops()  # what trnscope.open() gives

    ``out`` is the folder for the files, by default ``trnscope-out``; no file is overwritten.

    Steps follow ``torch.profiler.schedule``: skip ``skip_first`` steps; then, ``repeat`` times
    or for ever when it is 0, skip ``wait`` steps, let the profiler warm up for ``warmup``
    steps, and record ``active`` steps into one file. Call :meth:`step` at the end of each step.
    Without ``active`` everything from start to end is recorded into one file. A ``schedule``
    made by torch, or any function from a step's number to a ``ProfilerAction``, does as well.

    The other arguments are those of ``torch.profiler.profile``. ``on_trace_ready`` is called
    with torch's profiler after each file was written.

    As a decorator it records each call of the function into files of its own.
    """

    def __init__(
        self,
        out: str | os.PathLike[str] | None = None,
        *,
        wait: int = 0,
        warmup: int = 0,
        active: int | None = None,
        repeat: int = 0,
        skip_first: int = 0,
        schedule: Callable[[int], Any] | None = None,
        activities: Iterable[Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        on_trace_ready: Callable[[Any], None] | None = None,
        gzip: bool = False,
        opener: Callable[[Path], Profile] | None = None,
    ) -> None:
        counts = (wait, warmup, repeat, skip_first)
        if schedule is not None and (active is not None or any(counts)):
            raise UsageError("a schedule was given twice", hint="drop schedule= or the numbers")
        if schedule is None and active is None and any(counts):
            raise UsageError("a schedule needs active=", hint="say how many steps to record")
        if active is not None and (active < 1 or min(counts) < 0):
            raise UsageError("a schedule needs active=1 or more and nothing below 0")
        self._out = OUTPUT_FOLDER if out is None else Path(out)
        self._cycle = None if active is None else (skip_first, wait, warmup, active, repeat)
        self._schedule = schedule
        self._on_trace_ready = on_trace_ready
        self._gzip = gzip
        self._opener = opener
        self._options: dict[str, Any] = {
            "activities": activities,
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "with_flops": with_flops,
            "with_modules": with_modules,
            "experimental_config": experimental_config,
        }
        self._torch_profiler: Any = None
        self._steps = 0
        self._start_ns = 0
        self._num_before = 0
        self._records: list[CaptureRecord] = []

    # ---- recording

    def start(self) -> None:
        """Start; ``with`` does it."""
        if self._torch_profiler is not None:
            raise UsageError("this profile is running already", hint="make a second one")
        import torch.profiler

        _let_cycles_clear_events()
        make: Any = torch.profiler.profile
        self._steps = 0
        self._num_before = len(self._records)
        started = time.perf_counter_ns()
        self._torch_profiler = make(
            schedule=self._make_schedule(),
            on_trace_ready=self._write,
            **simulated_options(self._options),
        )
        self._torch_profiler.__enter__()
        self._start_ns = time.perf_counter_ns() - started

    def step(self) -> None:
        """One step has ended."""
        if self._torch_profiler is None:
            raise UsageError("step() was called outside of the profile")
        self._steps += 1
        self._torch_profiler.step()

    def stop(self) -> None:
        """Stop, and write what has not been written; ``with`` does it."""
        if self._torch_profiler is None:
            return
        running, self._torch_profiler = self._torch_profiler, None
        running.__exit__(None, None, None)
        if len(self._records) == self._num_before:
            warnings.warn(f"trnscope: {self._why_nothing()}", stacklevel=3)

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Record each call of ``function``."""

        @functools.wraps(function)
        def recorded(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return recorded

    # ---- results

    @property
    def records(self) -> tuple[CaptureRecord, ...]:
        """What was written, one for each file, in order."""
        return tuple(self._records)

    @property
    def paths(self) -> tuple[Path, ...]:
        """The trace files, one for each finished cycle, in order."""
        return tuple(record.trace for record in self._records if record.trace is not None)

    @property
    def path(self) -> Path:
        """The last trace file; raises :class:`CaptureError` when there is none."""
        if not self._records:
            raise CaptureError(self._why_nothing())
        return self.paths[-1]

    def open(self) -> Profile:
        """Open the last trace file, as ``trnscope.open`` does."""
        if self._opener is None:
            raise CaptureError("this profile cannot open files", hint="use trnscope.open(path)")
        return self._opener(self.path)

    # ---- the work

    def _make_schedule(self) -> Callable[[int], Any] | None:
        if self._cycle is None:
            return self._schedule
        from torch.profiler import ProfilerAction

        skip_first, wait, warmup, active, repeat = self._cycle

        def action(step: int) -> ProfilerAction:
            round_number, position = divmod(step - skip_first, wait + warmup + active)
            if step < skip_first or (repeat and round_number >= repeat) or position < wait:
                return ProfilerAction.NONE
            if position < wait + warmup:
                return ProfilerAction.WARMUP
            is_last = position == wait + warmup + active - 1
            return ProfilerAction.RECORD_AND_SAVE if is_last else ProfilerAction.RECORD

        return action

    def _write(self, torch_profiler: Any) -> None:
        from trnscope.capture.recorder import current_rank, export_trace, trace_name, world_size

        rank = current_rank()
        path = self._out / trace_name(f"rank{rank or 0}", self._gzip)
        started = time.perf_counter_ns()
        simulated = virtual_recording()
        if simulated is None:
            export_trace(torch_profiler, path)
        else:
            write_virtual(simulated, path)
        exported = time.perf_counter_ns()
        record = CaptureRecord(
            pid=os.getpid(),
            trace=path,
            rank=rank,
            world_size=world_size(),
            device=None if simulated is None else simulated.simulation.target,
            num_steps_seen=self._steps,
            activities=tuple(sorted(activity.name for activity in torch_profiler.activities)),
            with_stack=self._options["with_stack"],
            shapes=self._options["record_shapes"],
            memory=self._options["profile_memory"],
            torch_version=str(sys.modules["torch"].__version__),
            python_version=platform.python_version(),
            command=tuple(sys.argv),
            overhead=Overhead(start_ns=self._start_ns, export_ns=exported - started),
        )
        record.write(record_path(path))
        self._records.append(record)
        if self._on_trace_ready is not None:
            with still_there(simulated):
                self._on_trace_ready(torch_profiler)

    def _why_nothing(self) -> str:
        if self._torch_profiler is not None:
            return "no cycle of the schedule has ended yet"
        if self._cycle is None:
            return "nothing was recorded: the schedule recorded no step"
        skip_first, wait, warmup, active, _repeat = self._cycle
        first = skip_first + wait + warmup
        hint = "" if self._steps else "; call step() at the end of each step"
        return (
            f"nothing was recorded: step() was called {self._steps} times, "
            f"recording starts with step {first}, counted from 0, and lasts {active}{hint}"
        )


def _let_cycles_clear_events() -> None:
    """Each cycle has a file of its own, so torch need not warn that it forgets the last one."""
    warnings.filterwarnings(
        "ignore",
        message="Warning: Profiler clears events at the end of each cycle",
        category=UserWarning,
        module=r"torch\.profiler",
    )
