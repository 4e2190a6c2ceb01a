"""Drives torch's own profiler: its activities, its step annotations, its trace file."""

from __future__ import annotations

import contextlib
import gzip
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from torch.autograd import profiler as autograd_profiler
from torch.profiler import ProfilerAction

from trnscope.capture.options import CaptureSettings
from trnscope.capture.stack_room import StackRoom

# Torch types its profiler in part only.
_profiler: Any = torch.profiler
_autograd: Any = torch.autograd
_InnerProfiler: Any = autograd_profiler.profile

LARGEST_EMPTY_TRACE = 1_000_000
"""Bytes; a larger file surely holds operations."""


def trace_name(name: str, compress: bool) -> str:
    """A file name for a trace; the time in it keeps any two apart."""
    return f"{name}.{time.time_ns()}.pt.trace.json{'.gz' if compress else ''}"


def export_trace(profiler: Any, path: Path) -> None:
    """Write a stopped torch profiler's trace to ``path``, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The leading dot keeps an unfinished file out of every listing; the suffix selects gzip.
    unfinished = path.with_name(f".{path.name}")
    try:
        profiler.export_chrome_trace(str(unfinished))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def ignore_this_thread() -> None:
    """Record nothing of this thread: the profiler that a fork left here has no end."""
    _autograd._enable_record_function(False)


def profiler_is_running() -> bool:
    """Whether this process has a torch profiler that records now, ours or the script's."""
    return bool(_autograd._profiler_enabled())


def is_distributed() -> bool:
    """Whether this process is a rank of an initialised process group."""
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def current_rank() -> int | None:
    """This process's rank: its process group's, else what its launcher says."""
    if is_distributed():
        return torch.distributed.get_rank()
    return _number(os.environ.get("RANK", os.environ.get("LOCAL_RANK")))


def world_size() -> int | None:
    """How many ranks there are, likewise."""
    if is_distributed():
        return torch.distributed.get_world_size()
    return _number(os.environ.get("WORLD_SIZE"))


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


class TorchRecorder:
    """One stretch of a program under ``torch.profiler``, with or without steps."""

    excludes_torch_profiler = True
    """Whether it cannot run beside the script's own torch profiler."""

    def __init__(
        self, settings: CaptureSettings, has_steps: bool, destination: Callable[[], Path]
    ) -> None:
        self._settings = settings
        self._has_steps = has_steps
        self._destination = destination
        self._profiler: Any = None
        self._is_recording = False
        self.needs_prepare = len(_profiler.supported_activities()) > 1
        self.activities: tuple[str, ...] = ()
        self.trace: Path | None = None
        self._stack_room = StackRoom() if settings.with_stack else None

    @property
    def ran_out_of_room(self) -> bool:
        """Whether the stacks of another step would not have fitted into memory."""
        return self._stack_room is not None and self._stack_room.is_short

    def has_room(self) -> bool:
        """See :class:`StepRecorder`."""
        return self._stack_room is None or self._stack_room.is_left()

    def prepare(self) -> None:
        """Set tracing up, as torch does in a schedule's warm-up; see :class:`StepRecorder`."""
        if self._profiler is not None:
            return  # prepared before this process was forked
        self._is_recording = False
        activities = _profiler.supported_activities()
        self.activities = tuple(sorted(activity.name for activity in activities))
        profiler = _profiler.profile(
            activities=activities,
            schedule=self._action,
            record_shapes=self._settings.shapes,
            profile_memory=self._settings.memory,
            with_stack=self._settings.with_stack,
            **_only_a_trace(self._settings.with_stack),
        )
        profiler.record_steps = self._has_steps
        profiler.__enter__()
        self._profiler = profiler

    def begin(self, step: int) -> None:
        """Record from now on; the step that starts now has number ``step``."""
        self._is_recording = True
        # Number the steps as the script does.
        self._profiler.step_num = step - 1
        self._profiler.step()

    def next_step(self) -> None:
        """Close this step's annotation, open the next one's."""
        self._profiler.step()

    def stop(self, inside_step: bool) -> None:
        """Stop; a step that is still going on is left marked as unfinished in the trace."""
        open_step = self._profiler.step_rec_fn
        if inside_step:
            self._profiler.step_rec_fn = None
        self._profiler.__exit__(None, None, None)
        del open_step

    def export(self) -> None:
        """Write the trace, and let the events go; a window without any op leaves no file."""
        path = self._destination()
        export_trace(self._profiler, path)
        self._profiler = None
        if self._has_steps or _holds_an_op(path):
            self.trace = path
        else:
            path.unlink()

    def cancel(self) -> None:
        """Stop and drop what was recorded."""
        if self._profiler is not None:
            self._profiler.__exit__(None, None, None)
            self._profiler = None

    def _action(self, _step: int) -> ProfilerAction:
        return ProfilerAction.RECORD if self._is_recording else ProfilerAction.WARMUP


def _holds_an_op(path: Path) -> bool:
    if path.stat().st_size > LARGEST_EMPTY_TRACE:
        return True
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        return b'"cpu_op"' in file.read()


def _only_a_trace(with_stack: bool) -> dict[str, Any]:
    """Ask torch to build no event tree of its own, where it can be asked (2.13 and later)."""
    if with_stack:
        return {}
    with contextlib.suppress(TypeError):
        return {"experimental_config": torch._C._profiler._ExperimentalConfig(trace_only=True)}
    return {}


def when_another_starts(started: Callable[[object], None]) -> Callable[[], None]:
    """Have ``started`` called before a torch profiler is made; returns what undoes that."""
    original = _InnerProfiler.__init__

    def __init__(self: object, *args: Any, **kwargs: Any) -> None:
        started(self)
        original(self, *args, **kwargs)

    _InnerProfiler.__init__ = __init__

    def undo() -> None:
        if _InnerProfiler.__init__ is __init__:
            _InnerProfiler.__init__ = original

    return undo
