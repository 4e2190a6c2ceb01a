"""``torch.compile(backend="neuron")``: a graph that torch traced runs as one program of the device.

The numbers are computed op by op, as eager mode computes them; the time is that of one execution,
whose cost the model works out for the graph as a whole. Each new shape is a new program.
"""

from __future__ import annotations

import functools
import itertools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from trnscope.errors import UsageError
from trnscope.sim.activation import ActiveDevice, activate, active_device, is_active
from trnscope.sim.costs import Priced
from trnscope.sim.graph_spec import to_spec
from trnscope.sim.signature import GraphSpec, TensorSpec

NAME = "neuron"
GRAPH_KIND = 5
"""In ``csrc/timeline.h``."""
Shapes = tuple[object, ...]
_counter = itertools.count()


def neuron(module: fx.GraphModule, example_inputs: Sequence[Any], **options: Any) -> Any:
    """The backend as Dynamo calls it."""
    if not is_active():
        activate()
    _warn_of(options)
    from torch._dynamo.backends.common import aot_autograd

    number = next(_counter)
    compiler = aot_autograd(
        fw_compiler=functools.partial(_compile, name=f"model_{number}"),
        bw_compiler=functools.partial(_compile, name=f"model_{number}_backward"),
    )
    return compiler(module, list(example_inputs))


@dataclass(frozen=True)
class Choice:
    """What ``torch.compile`` without a backend takes: this one for graphs on the device."""

    mode: str | None
    options: dict[str, Any] | None
    dynamic: bool | None

    def __call__(self, module: fx.GraphModule, example_inputs: Sequence[Any]) -> Any:
        """The backend as Dynamo calls it. Only inductor knows modes and options."""
        if any(_is_on_device(x) for x in example_inputs):
            return neuron(module, example_inputs, mode=self.mode)
        mode = self.mode if self.mode or self.options else "default"
        wrapper: Any = torch._TorchCompileInductorWrapper
        inductor = wrapper(mode, self.options, self.dynamic)
        return inductor(module, list(example_inputs))


def _is_on_device(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == NAME


def _warn_of(options: dict[str, Any]) -> None:
    mode = options.get("mode")
    if mode not in (None, "default"):
        warnings.warn(f"the neuron backend has no mode {mode!r}; it ignores it", stacklevel=2)


def _compile(module: fx.GraphModule, example_inputs: Sequence[Any], *, name: str) -> Any:
    del example_inputs  # their shapes may be symbolic: the program is made for those that come
    return _Graph(active_device(), name, module)


@dataclass
class _Graph:
    """A traced graph and its programs, one for each set of shapes."""

    device: ActiveDevice
    name: str
    module: fx.GraphModule
    programs: dict[Shapes, int] = field(default_factory=dict)
    _boxed_call: bool = True
    """Dynamo then hands over the list of arguments, so that they can be freed."""

    def __call__(self, arguments: list[Any]) -> Any:
        """Compute the numbers and launch the program."""
        extension = self.device.extension
        core = next((x.device.index for x in arguments if _is_on_device(x)), None)
        if core is None:
            return self._run(arguments)
        shapes = tuple(map(_shape, arguments))
        program = self.programs.get(shapes)
        if program is None:
            program = self.programs[shapes] = self._program(arguments)
        with torch._C._profiler._RecordFunctionFast(self.name):
            launched = None
            extension.begin_graph()
            try:
                outputs = self._run(arguments)
                launched = program
            finally:
                extension.end_graph(launched, core)
        return outputs

    def _run(self, arguments: list[Any]) -> Any:
        values = tuple(arguments)
        arguments.clear()
        with torch.no_grad():
            return self.module(*values)

    def _program(self, arguments: list[Any]) -> int:
        spec = to_spec(self.name, self.module, arguments)
        cost = self.device.model.graph(spec)
        number: int = self.device.extension.add_execution(
            self.name, GRAPH_KIND, cost.host_ns, cost.device_ns, cost.compile_ns, _bytes_of(spec)
        )
        self.device.prices.keep(number, Priced(self.name, spec, cost))
        return number


def _shape(value: Any) -> object:
    if isinstance(value, torch.Tensor):
        return (tuple(value.shape), value.stride(), value.dtype)
    return value


def _bytes_of(spec: GraphSpec) -> int:
    """What enters and leaves the graph."""
    sizes: dict[int, int] = {}
    for node in spec.nodes:
        for number, tensor in zip(node.inputs, node.op.inputs, strict=True):
            if number is not None and tensor is not None:
                sizes[number] = _size(tensor)
        for number, tensor in zip(node.outputs, node.op.outputs, strict=True):
            sizes[number] = _size(tensor)
    return sum(sizes.get(number, 0) for number in (*spec.inputs, *spec.outputs))


def _size(tensor: TensorSpec) -> int:
    count = 1
    for extent in tensor.shape:
        count *= extent
    return count * int(getattr(torch, tensor.dtype).itemsize)


def install() -> None:
    """Let ``torch.compile`` find the backend, and take it by itself on the device."""
    original: Any = torch.compile

    @functools.wraps(original)
    def compile(
        model: Any = None, *, dynamic: bool | None = None, backend: Any = "inductor", **others: Any
    ) -> Any:
        if backend in (NAME, "inductor"):
            if backend == NAME and dynamic:
                raise UsageError(
                    "torch.compile(backend='neuron') has no dynamic shapes",
                    hint="leave dynamic out; every new shape is compiled anew",
                )
            backend = _backend_for(backend, dynamic, others)
            _register()
        return original(model, dynamic=dynamic, backend=backend, **others)

    torch.compile = compile


@functools.cache
def _register() -> None:
    """For those who ask Dynamo by name; not before Dynamo is imported anyway, which takes seconds.

    An entry point would do the same, but stand in the way of the real package's.
    """
    from torch._dynamo.backends.registry import register_backend

    register_backend(neuron, name=NAME)


def _backend_for(name: str, dynamic: bool | None, others: dict[str, Any]) -> Any:
    """The backend's function, with the mode and the options, which are taken out of the others."""
    if others.get("mode") and others.get("options"):
        return name  # torch says that these exclude each other
    mode, options = others.pop("mode", None), others.pop("options", None)
    if name == NAME:
        return functools.partial(neuron, mode=mode) if mode else neuron
    return Choice(mode, options, dynamic)
