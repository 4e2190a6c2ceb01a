"""The recorder inside a script's own process: hooks, window, trace and record of one process.

Nothing here may break the script. Every entry from outside goes through ``_guarded``: an error
is told once on stderr, recording switches itself off, and the script goes on.
"""

from __future__ import annotations

import atexit
import functools
import multiprocessing
import os
import platform
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Concatenate, ParamSpec

import torch
import torch.utils.data

from trnscope.capture.hooks import ModuleHooks, OptimizerHooks, when_first_parameter
from trnscope.capture.main_thread import after_seconds_in_main_thread, is_importing
from trnscope.capture.options import ProcessSettings, StepsBy
from trnscope.capture.record import SUFFIX, CaptureRecord, record_path
from trnscope.capture.recorder import (
    TorchRecorder,
    current_rank,
    ignore_this_thread,
    is_distributed,
    profiler_is_running,
    trace_name,
    when_another_starts,
    world_size,
)
from trnscope.capture.simulation import activate
from trnscope.capture.steps import StepFinder
from trnscope.capture.virtual_recorder import (
    VirtualRecorder,
    simulated_target,
    virtual_now_ns,
    virtual_num_launches,
)
from trnscope.capture.window import Phase, Window

Recorder = TorchRecorder | VirtualRecorder
P = ParamSpec("P")

IDLE_SECONDS = 3.0
"""No module, no optimizer for this long after the import of torch: record a window of time."""
LONG_IDLE_SECONDS = 60.0
"""Modules exist, but none was called and no optimizer stepped."""
OPTIMIZER_PATIENCE_SECONDS = 90.0
"""An optimizer exists but never steps: go by module calls."""
TIME_WINDOW_SECONDS = 5.0
"""Longest window without steps, unless asked for by ``steps_by=time``."""
OVERTIME = 2.0
"""A step that lasts beyond this many times the allowed seconds is cut."""
MAX_PROCESSES = 8
"""Processes without a rank that may record, besides the script itself."""


def start(settings: str, *, is_root: bool) -> None:
    """Start recording this process, which has just imported torch."""
    process = ProcessSettings.from_text(settings)
    if process.capture.target is not None:
        if is_root:
            _device_not_ready(process)
        activate(process.capture.target)
    Session(process, is_root).install()


def _device_not_ready(process: ProcessSettings) -> None:
    """What is to be said where the script is stopped while its device is being compiled."""
    reason = "the simulated device was not ready: it is compiled at its first use"
    CaptureRecord(pid=os.getpid(), reason=reason, is_root=True, run=process.run).write(
        _early_record(process)
    )


def _early_record(process: ProcessSettings) -> Path:
    """Where the script's own process says what it is, until it has a trace."""
    return process.out / f"root.{process.run}{SUFFIX}"


def _guarded(
    method: Callable[Concatenate[Session, P], None],
) -> Callable[Concatenate[Session, P], None]:
    def safe(self: Session, /, *args: P.args, **kwargs: P.kwargs) -> None:
        if self.off:
            return
        try:
            method(self, *args, **kwargs)
        except Exception as error:  # the one border between recording and the script
            self.hook_failed(error)

    safe.__doc__ = method.__doc__
    return safe


class Session:
    """Records one process; implements :class:`trnscope.capture.hooks.HookListener`."""

    def __init__(self, settings: ProcessSettings, is_root: bool) -> None:
        self.off = False
        self._settings = settings
        self._capture = settings.capture
        self._device = simulated_target()
        self._clock = time.perf_counter_ns if self._device is None else virtual_now_ns
        self._is_root = is_root
        self._pid = os.getpid()
        self._is_forked = False
        self._busy = False
        self._reason: str | None = None
        self._exit = os._exit
        self._stop_watching: Callable[[], None] | None = None
        self._modules: ModuleHooks | None = None
        self._optimizers: OptimizerHooks | None = None
        self._reset()

    def _reset(self, recorder: Recorder | None = None) -> None:
        self._name: str | None = None
        self._rank: int | None = None
        self._num_workers = 0
        self._world_size: int | None = None
        self._is_refused = False
        self._thread: int | None = None
        self._has_parameters = False
        self._idle_seconds = IDLE_SECONDS
        self._fallback: Path | None = None
        self._finder = StepFinder(self._capture.steps_by)
        self._make_window(recorder=recorder)

    def _make_window(
        self, seconds_without_steps: float | None = None, recorder: Recorder | None = None
    ) -> None:
        self._has_steps = seconds_without_steps is None
        self._hard_limit = seconds_without_steps or self._capture.max_seconds * OVERTIME
        self._recorder = recorder or self._new_recorder()
        self._window = Window(
            self._capture,
            self._recorder,
            self._clock,
            lambda: self._finder.certain,
            self._window_opens,
        )

    def _new_recorder(self) -> Recorder:
        if self._device is None:
            return TorchRecorder(self._capture, self._has_steps, self._trace_path)
        return VirtualRecorder(
            self._has_steps, self._trace_path, with_stack=self._capture.with_stack
        )

    # ---- set-up and end

    @_guarded
    def install(self) -> None:
        """Hook into torch and into the ends of this process."""
        atexit.register(self.finish)
        os.register_at_fork(after_in_child=self.after_fork)
        os._exit = self._finish_and_exit  # type: ignore[assignment]
        self._hook_torch()
        self._write_record()
        if self._capture.steps_by is StepsBy.TIME:
            self._open_time_window(self._capture.max_seconds)
        elif self._is_root and self._capture.steps_by is StepsBy.AUTO:
            after_seconds_in_main_thread(self._idle_seconds, self.idle)
            after_seconds_in_main_thread(LONG_IDLE_SECONDS, self.idle_for_long)

    def _hook_torch(self) -> None:
        if self._capture.steps_by in (StepsBy.AUTO, StepsBy.OPTIMIZER):
            self._optimizers = OptimizerHooks(self)
        if self._capture.steps_by in (StepsBy.AUTO, StepsBy.FORWARD):
            self._modules = ModuleHooks(self)
        if self._capture.steps_by is StepsBy.AUTO:
            when_first_parameter(self.parameter_made)

    def _unhook_torch(self) -> None:
        for hooks in (self._optimizers, self._modules):
            if hooks is not None:
                hooks.remove()
        self._optimizers = self._modules = None

    @_guarded
    def finish(self) -> None:
        """The process ends: keep what was recorded."""
        if os.getpid() != self._pid:
            return
        self._window.finish()
        self._switch_off()

    def _finish_and_exit(self, status: int) -> None:
        if os.getpid() == self._pid:
            self.finish()
        self._exit(status)

    @_guarded
    def after_fork(self) -> None:
        """In a forked child: nothing of the parent's recording may go on here."""
        self._pid = os.getpid()
        self._is_root = False
        if self._is_before_window():
            # The child may be a rank of its own; see _may_record.
            self._is_forked = True
            self._leave_window()
            # Tracing that was set up before the fork is set up in the child as well.
            self._reset(self._recorder)
            return
        if self._window.phase is Phase.RECORDING:
            ignore_this_thread()
            sys.setprofile(None)
            self._restore_sigterm()
        self._unhook_torch()
        self.off = True

    def hook_failed(self, error: Exception) -> None:
        """Tell the error once and switch off."""
        if self.off:
            return
        self.off = True
        self._reason = f"recording switched itself off: {type(error).__name__}: {error}"
        print(f"trnscope: {self._reason} (the script goes on)", file=sys.stderr)
        if os.environ.get("TRNSCOPE_DEBUG"):
            traceback.print_exc()
        try:
            self._switch_off()
        except Exception as second:  # nothing is left to be done about it
            print(f"trnscope: {type(second).__name__}: {second}", file=sys.stderr)

    def _switch_off(self) -> None:
        self.off = True
        if self._window.phase in (Phase.PREPARED, Phase.RECORDING):
            self._recorder.cancel()
        os._exit = self._exit
        self._leave_window()
        self._unhook_torch()
        self._write_record()

    # ---- what the script does

    @_guarded
    def parameter_made(self) -> None:
        """A module exists, so steps are to be expected."""
        self._has_parameters = True
        self._drop_time_window()

    @_guarded
    def optimizer_made(self, optimizer: object) -> None:
        """Go by optimizer steps; without the module hooks torch.compile sees torch as it is."""
        self._finder.optimizer_made(optimizer)
        self._drop_time_window()
        if self._modules is None or not self._is_before_window():
            return
        if self._capture.steps_by is StepsBy.AUTO:
            self._modules.remove()
            self._modules = None
            after_seconds_in_main_thread(OPTIMIZER_PATIENCE_SECONDS, self.no_optimizer_steps)

    @_guarded
    def no_optimizer_steps(self) -> None:
        """An optimizer exists but does not step: look at module calls after all."""
        if self._finder.found is None and self._modules is None:
            self._modules = ModuleHooks(self)

    @_guarded
    def optimizer_stepped(self, optimizer: object) -> None:
        """See :class:`HookListener`."""
        if self._is_driver() and self._finder.optimizer_stepped(optimizer):
            self._step_ended()

    @_guarded
    def module_called(self, module: object) -> None:
        """See :class:`HookListener`."""
        if self._is_driver() and self._finder.module_called(module):
            self._step_ended()

    def _is_driver(self) -> bool:
        # The profiler must start and stop on one thread: the first that shows a step.
        if self._thread is None:
            if not self._may_record():
                return False
            self._thread = threading.get_ident()
        return self._thread == threading.get_ident()

    def _may_record(self) -> bool:
        if torch.utils.data.get_worker_info() is not None:
            return False
        return not self._is_forked or is_distributed()

    # ---- the window

    def _is_before_window(self) -> bool:
        return self._window.phase in (Phase.WARMUP, Phase.PREPARED)

    def _step_ended(self) -> None:
        if not self._has_steps and not self._drop_time_window():
            return
        if self._is_before_window() and not self._can_open():
            return
        self._busy = True
        before = self._window.phase
        self._window.step_ended(self._finder.found or StepsBy.AUTO)
        self._busy = False
        if self._window.phase is not before:
            self._phase_changed()

    def _can_open(self) -> bool:
        if not self._claim_name():
            return False
        if self._recorder.excludes_torch_profiler and profiler_is_running():
            self._reason = "the script's own torch profiler was running"
            return False
        return True

    def _phase_changed(self) -> None:
        phase = self._window.phase
        if phase is Phase.PREPARED:
            self._watch_for_another_profiler()
        elif phase is Phase.AFTER:
            self._leave_window()
            self._write_record()
        elif phase is Phase.DONE:
            self._switch_off()

    def _window_opens(self) -> None:
        """Right before recording begins, so that none of this falls into the first step."""
        if self._has_steps:
            self._finder.freeze()
        self._reason = None
        self._watch_for_another_profiler()
        self._catch_sigterm()
        limit = functools.partial(self.time_is_up, self._window)
        after_seconds_in_main_thread(self._hard_limit, limit)

    def _watch_for_another_profiler(self) -> None:
        if self._recorder.excludes_torch_profiler and self._stop_watching is None:
            self._stop_watching = when_another_starts(self.another_profiler_starts)

    def _leave_window(self) -> None:
        if self._stop_watching is not None:
            self._stop_watching()
            self._stop_watching = None
        self._restore_sigterm()

    @_guarded
    def time_is_up(self, window: Window) -> None:
        """The window's hard limit: stop, be it inside a step."""
        if window is not self._window or window.phase is not Phase.RECORDING:
            return
        if self._busy or (self._has_steps and not self._is_driver()):
            return
        if self._has_steps:
            self._reason = "a step took longer than the time limit; it was cut"
        self._window.finish()
        if self._has_steps or self._capture.steps_by is StepsBy.TIME:
            self._switch_off()
        else:
            self._look_for_steps_again()

    @_guarded
    def another_profiler_starts(self, _profiler: object) -> None:
        """The script profiles itself: torch has room for one, and the script goes first."""
        if self._window.phase is Phase.PREPARED:
            # Nothing is recorded yet: make room, and wait until the script's own is done.
            self._window.cancel()
            self._leave_window()
            return
        self._reason = "the script started a torch profiler of its own"
        self._window.finish()
        self._switch_off()

    # ---- the window of time, for a script that shows no steps

    @_guarded
    def idle(self) -> None:
        """Some seconds after the import of torch: a script without modules?"""
        if not self._has_parameters:
            self.idle_for_long()

    @_guarded
    def idle_for_long(self) -> None:
        """No step has shown up: record a window of time."""
        nothing_happened = self._finder.found is None and not self._finder.waiting_optimizers
        is_waiting = self._has_steps and self._window.phase is Phase.WARMUP
        if not nothing_happened or not is_waiting or self._fallback is not None:
            return
        if is_importing():
            # Starting the profiler imports parts of torch, which may be half imported now.
            after_seconds_in_main_thread(1.0, self.idle_for_long)
        elif not _starts_processes():
            self._open_time_window(min(self._capture.max_seconds, TIME_WINDOW_SECONDS))

    def _open_time_window(self, seconds: float) -> None:
        if not self._can_open():
            return
        self._make_window(seconds_without_steps=seconds)
        self._window.record_from_now()

    def _drop_time_window(self) -> bool:
        """Steps are coming: forget a window of time that is open; returns whether that is done."""
        if self._has_steps or self._capture.steps_by is StepsBy.TIME:
            return True
        if threading.current_thread() is not threading.main_thread():
            return False  # it was opened on the main thread, and has to be closed there
        self._window.cancel()
        self._leave_window()
        self._make_window()
        return True

    def _look_for_steps_again(self) -> None:
        """Keep what a window of time holds, until steps show up after all."""
        self._leave_window()
        self._fallback = self._recorder.trace
        self._write_record()
        self._make_window()
        if self._fallback is None:
            # Nothing ran in it: the script was still importing, or preparing its data.
            self._idle_seconds *= 2
            after_seconds_in_main_thread(self._idle_seconds, self.idle)

    def _drop_fallback(self) -> None:
        if self._fallback is not None:
            record_path(self._fallback).unlink(missing_ok=True)
            self._fallback.unlink(missing_ok=True)
            self._fallback = None

    # ---- signals

    def _catch_sigterm(self) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, self._on_sigterm)

    def _restore_sigterm(self) -> None:
        in_main = threading.current_thread() is threading.main_thread()
        if in_main and signal.getsignal(signal.SIGTERM) == self._on_sigterm:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def _on_sigterm(self, number: int, _frame: object) -> None:
        self._reason = "the script was terminated"
        self.finish()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    # ---- names and records

    def _trace_path(self) -> Path:
        return self._settings.out / trace_name(self._name or "process", self._capture.gzip)

    def _claim_name(self) -> bool:
        """Take a name for this process's trace, once; false when it may not record one.

        Each rank records once and so does the script itself; of other processes, a few.
        """
        if self._name is None and not self._is_refused:
            # Kept from here on: the process group may be gone when the record is written.
            self._rank, self._world_size = current_rank(), world_size()
            self._name = claim_name(self._settings.claims, self._pid, self._rank, self._is_root)
            self._is_refused = self._name is None
        return self._name is not None

    def _write_record(self) -> None:
        trace = self._recorder.trace
        if trace is None and (not self._is_root or self._fallback is not None):
            return
        early = _early_record(self._settings)
        self._record(trace).write(early if trace is None else record_path(trace))
        if trace is not None and self._is_root:
            early.unlink(missing_ok=True)
        if self._fallback != trace:
            self._drop_fallback()

    def _record(self, trace: Path | None) -> CaptureRecord:
        # Written when the window ends, and again when the script does, without its workers.
        self._num_workers = max(self._num_workers, _num_workers())
        stretch = self._window.stretch
        lack, hint = self._why_incomplete(trace, stretch.num_steps)
        found = self._finder.found if self._has_steps else StepsBy.TIME
        return CaptureRecord(
            pid=self._pid,
            trace=trace,
            reason=self._reason or lack,
            hint=None if self._reason else hint,
            rank=self._rank,
            world_size=self._world_size,
            is_root=self._is_root,
            device=self._device,
            num_launches=None if self._device is None else virtual_num_launches(),
            steps_by=None if found is None else found.value,
            first_step=stretch.first_step if self._has_steps else None,
            num_steps=stretch.num_steps,
            last_step_cut=stretch.last_step_cut and self._has_steps,
            num_steps_seen=self._window.num_steps_seen,
            activities=self._recorder.activities,
            with_stack=self._capture.with_stack,
            shapes=self._capture.shapes,
            memory=self._capture.memory,
            num_cpus=_num_cpus(),
            num_threads=torch.get_num_threads(),
            num_workers=self._num_workers,
            torch_version=str(torch.__version__),
            python_version=platform.python_version(),
            command=tuple(sys.argv),
            run=self._settings.run,
            overhead=self._window.overhead(),
        )

    def _why_incomplete(self, trace: Path | None, num_steps: int) -> tuple[str | None, str | None]:
        """Why there is no trace or less than was asked for, and what to do about it."""
        if trace is None:
            return self._why_nothing()
        if not self._has_steps or num_steps >= self._capture.steps:
            return None, None
        if self._window.stretch.last_step_cut:
            return f"the script ended after {num_steps} of {self._capture.steps} steps", None
        if self._recorder.ran_out_of_room:
            return (
                f"{num_steps} of {self._capture.steps} steps were recorded: the Python frames of "
                "more would not have fitted into memory",
                "fewer frames: leave out --stack, or move loops over single elements out of Python",
            )
        return f"the time limit was reached after {num_steps} steps", None

    def _why_nothing(self) -> tuple[str, str | None]:
        if not self._has_steps:
            return "no torch operation ran while recording", None
        seen = self._window.num_steps_seen
        if seen:
            kind = "optimizer step" if self._finder.found is StepsBy.OPTIMIZER else "module call"
            return (
                f"the script ended after {seen} {kind}{'' if seen == 1 else 's'}, within the "
                "warm-up",
                "run it for longer or give --warmup 1",
            )
        if self._finder.num_optimizers_made:
            return (
                "an optimizer was made but took no step",
                "give --steps-by forward to go by module calls",
            )
        return (
            "no optimizer took a step and no module was called",
            "give --steps-by time to record from the start",
        )


def claim_name(claims: Path, pid: int, rank: int | None, is_root: bool) -> str | None:
    """Take the name of a process's trace in the folder ``claims``; None when it is taken."""
    if rank is not None:
        return f"rank{rank}" if _claim(claims, f"rank{rank}") else None
    if is_root:
        return "rank0" if _claim(claims, "root") else None
    free = (number for number in range(MAX_PROCESSES) if _claim(claims, f"process{number}"))
    return None if next(free, None) is None else f"process{pid}"


def _claim(claims: Path, name: str) -> bool:
    try:
        (claims / name).touch(exist_ok=False)
    except (FileExistsError, FileNotFoundError):
        # Taken, or the run that this process belongs to is over.
        return False
    return True


def _starts_processes() -> bool:
    """Whether this process is there to start others: a launcher, which runs nothing itself."""
    return "torch.distributed.elastic.agent" in sys.modules or bool(
        multiprocessing.active_children()
    )


def _num_workers() -> int:
    """Child processes that end with this one, as the workers of its data loaders do."""
    return sum(child.daemon for child in multiprocessing.active_children())


def _num_cpus() -> int | None:
    """Processors that this process may run on: a container may grant fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()
