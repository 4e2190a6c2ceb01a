"""Tells when an optimizer steps and when an outermost module call returns, in a script as it is.

Optimizers: torch wraps ``step`` of every optimizer class through
``Optimizer.profile_hook_step``. We wrap what that returns, instead of using the global
post-step hook, because that hook runs inside torch's own ``Optimizer.step#...`` annotation: a
step that ended there would cut the annotation in two.

Modules: a global forward pre-hook tells when a call begins. It is taken away while the
outermost call runs, so that inner calls cost nothing extra and torch.compile never sees a
hook; a hook on that one module, removed as it runs, tells when the call is over.
"""

from __future__ import annotations

import functools
import threading
import warnings
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch.nn import Module
from torch.nn.modules import module as module_hooks
from torch.optim import Optimizer
from torch.utils.hooks import RemovableHandle


class HookListener(Protocol):
    """Hears what happens in the script, on the thread on which it happens; never raises."""

    def optimizer_made(self, optimizer: object) -> None:
        """An optimizer was constructed."""

    def optimizer_stepped(self, optimizer: object) -> None:
        """An outermost optimizer step has returned."""

    def module_called(self, module: object) -> None:
        """An outermost call of a module with parameters or buffers has returned or raised."""

    def hook_failed(self, error: Exception) -> None:
        """A hook could not do its work; the script must not notice."""


# Their methods are replaced while we listen, which their types do not foresee.
_Optimizer: Any = Optimizer
_Module: Any = Module


class OptimizerHooks:
    """Reports optimizers that are made and that step."""

    def __init__(self, listener: HookListener) -> None:
        self._listener: HookListener | None = listener
        self._depth = threading.local()
        self._wrap_step = _Optimizer.profile_hook_step
        self._init = _Optimizer.__init__
        _Optimizer.profile_hook_step = staticmethod(self._profile_hook_step)
        _Optimizer.__init__ = self._reporting_init(self._init)

    def remove(self) -> None:
        """Report nothing more. Classes already wrapped keep a wrapper that does nothing."""
        self._listener = None
        _Optimizer.profile_hook_step = staticmethod(self._wrap_step)
        _Optimizer.__init__ = self._init

    def _reporting_init(self, original: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(original)
        def __init__(optimizer: Optimizer, *args: Any, **kwargs: Any) -> None:
            if self._listener is not None:
                self._listener.optimizer_made(optimizer)
            original(optimizer, *args, **kwargs)

        return __init__

    def _profile_hook_step(self, function: Callable[..., Any]) -> Callable[..., Any]:
        wrapped = self._wrap_step(function)

        @functools.wraps(wrapped)
        def step(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or self._listener is None:
                return wrapped(*args, **kwargs)
            result = self._nested(wrapped, args, kwargs)
            if self._depth.value == 0:
                self._report(args[0])
            return result

        return step

    def _nested(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        # An optimizer may step another one, or its base class, inside its own step.
        self._depth.value = getattr(self._depth, "value", 0) + 1
        try:
            return function(*args, **kwargs)
        finally:
            self._depth.value -= 1

    def _report(self, optimizer: object) -> None:
        if self._listener is not None:
            self._listener.optimizer_stepped(optimizer)


class ModuleHooks:
    """Reports outermost module calls, on the first thread that makes one."""

    def __init__(self, listener: HookListener) -> None:
        self._listener = listener
        self._thread: int | None = None
        self._outermost: Module | None = None
        self.first_input: tuple[tuple[int, ...], torch.dtype] | None = None
        """Shape and type of the first argument of the outermost call, where that is a tensor."""
        self._pre_hook: RemovableHandle | None = None
        self._end_hook: RemovableHandle | None = None
        self._compile = _Module.compile
        self._active = True
        _Module.compile = self._reporting_compile(self._compile)
        # Torch warns about global hooks when a compiled module is called; ours is gone by
        # the time that they could fire in it.
        warnings.filterwarnings("ignore", message=r"Using `torch\.compile\(module\)` when there")
        self._listen()

    def remove(self) -> None:
        """Report nothing more."""
        self._active = False
        _Module.compile = self._compile
        self._stop_listening()
        if self._end_hook is not None:
            self._end_hook.remove()

    def _listen(self) -> None:
        def pre_hook(module: Module, args: Any) -> None:
            if torch.compiler.is_compiling() or not self._enter(module):
                return
            self.first_input = _shape_and_type(args)
            try:
                watch_end(module)
            except Exception as error:  # see HookListener.hook_failed
                self._listener.hook_failed(error)

        def watch_end(module: Module) -> None:
            if isinstance(module, torch.jit.ScriptModule):
                # It takes no hooks, and calls its children without Python: its start must do.
                self._leave(module)
            else:
                self._end_hook = module.register_forward_hook(end_hook, always_call=True)

        def end_hook(module: Module, _args: Any, _result: Any) -> None:
            self._leave(module)

        self._pre_hook = module_hooks.register_module_forward_pre_hook(pre_hook)

    def _stop_listening(self) -> None:
        if self._pre_hook is not None:
            self._pre_hook.remove()
            self._pre_hook = None

    def _enter(self, module: Module) -> bool:
        if self._outermost is not None or not self._active:
            return False
        thread = threading.get_ident()
        if self._thread is None:
            self._thread = thread
        if self._thread != thread:
            return False
        self._outermost = module
        self._stop_listening()
        return True

    def _leave(self, module: Module) -> None:
        if self._end_hook is not None:
            self._end_hook.remove()
            self._end_hook = None
        self._outermost = None
        if not self._active:
            return
        if _has_state(module):
            self._listener.module_called(module)
        if self._active:
            self._listen()

    def _reporting_compile(self, original: Callable[..., None]) -> Callable[..., None]:
        # ``module.compile()`` compiles the call together with its hooks: report from outside.
        @functools.wraps(original)
        def compile(module: Module, *args: Any, **kwargs: Any) -> None:
            original(module, *args, **kwargs)
            call = module._compiled_call_impl
            if self._active and call is not None:
                module._compiled_call_impl = self._reporting_call(module, call)

        return compile

    def _reporting_call(self, module: Module, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def reporting(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or not self._enter(module):
                return call(*args, **kwargs)
            self.first_input = _shape_and_type(args)
            try:
                return call(*args, **kwargs)
            finally:
                self._leave(module)

        return reporting


def _shape_and_type(args: tuple[Any, ...]) -> tuple[tuple[int, ...], torch.dtype] | None:
    """No tensor is kept alive for it."""
    if not args or not isinstance(args[0], torch.Tensor):
        return None
    return tuple(args[0].shape), args[0].dtype


def _has_state(module: Module) -> bool:
    """Leaves out losses, activations and transforms, which are called beside the model."""
    return any(True for _ in module.parameters()) or any(True for _ in module.buffers())


def when_first_call(called: Callable[[], None]) -> None:
    """Have ``called`` called once, when any module's first call begins."""

    def hook(_module: object, _args: object) -> None:
        handle.remove()
        called()

    handle = module_hooks.register_module_forward_pre_hook(hook)


def when_first_parameter(made: Callable[[], None]) -> None:
    """Have ``made`` called once, when any module registers its first parameter."""

    def hook(_module: object, _name: str, _parameter: object) -> None:
        handle.remove()
        made()

    handle = module_hooks.register_module_parameter_registration_hook(hook)
