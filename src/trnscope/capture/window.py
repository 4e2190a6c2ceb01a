"""When to record: skip the warm-up, record a bounded number of steps, time the steps around.

Pure bookkeeping over step ends and a clock; what records is behind :class:`StepRecorder`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from trnscope.capture.options import CaptureSettings, StepsBy
from trnscope.capture.record import Overhead, median_ns, range_ns

NS_PER_S = 1_000_000_000

MIN_WARMUP = 3
MAX_WARMUP = 6
"""Steps skipped at most, whether or not their times have settled."""
MAX_UNCERTAIN_WARMUP = 12
"""The same, while optimizers exist that have not stepped yet."""
SETTLED_RATIO = 1.2
"""Step times have settled when the last two differ by less than this."""
WARMUP_SECONDS = 60
"""Long steps: skip no more once the warm-up has taken this long."""
AFTER_STEPS = 6
"""Steps timed, not recorded, after the window; the first of them is left out."""
AFTER_SECONDS = 20
NUM_BEFORE = 3
"""Steps before the window that stand in when too few came after it."""


class StepRecorder(Protocol):
    """Records a stretch of a program, in steps."""

    needs_prepare: bool
    """Whether a step must pass between :meth:`prepare` and the first recorded one."""

    def prepare(self) -> None:
        """Get ready to record; nothing is recorded yet, for as many steps as it takes."""

    def begin(self, step: int) -> None:
        """Start recording; the step that starts now has number ``step``."""

    def next_step(self) -> None:
        """A recorded step has ended, the next one starts."""

    def has_room(self) -> bool:
        """Whether another step may be recorded; asked at the end of each."""

    def stop(self, inside_step: bool) -> None:
        """Stop recording; ``inside_step`` when a step is still going on."""

    def export(self) -> None:
        """Write the trace."""

    def cancel(self) -> None:
        """Stop without keeping anything."""


class Phase(Enum):
    """Where the window is."""

    WARMUP = auto()
    PREPARED = auto()
    RECORDING = auto()
    AFTER = auto()
    DONE = auto()


@dataclass(frozen=True)
class Stretch:
    """What of the run was recorded."""

    first_step: int | None
    num_steps: int
    last_step_cut: bool


class Window:
    """Drives a recorder over the steps of a script.

    Call :meth:`step_ended` at the end of each step. Recording lasts ``settings.steps`` steps
    or, whichever comes first, until the end of the step that passes ``settings.max_seconds`` or
    after which the recorder has no room.

    The profiler is prepared one step ahead of the first that may be recorded, and ``opening``
    is called right before recording begins: neither costs the first recorded step anything.
    """

    def __init__(
        self,
        settings: CaptureSettings,
        recorder: StepRecorder,
        clock: Callable[[], int],
        certain: Callable[[], bool] = lambda: True,
        opening: Callable[[], None] = lambda: None,
    ) -> None:
        self._settings = settings
        self._recorder = recorder
        self._clock = clock
        self._certain = certain
        self._opening = opening
        self._kind: StepsBy | None = None
        self._before: list[int] = []
        self._profiled: list[int] = []
        self._after: list[int] = []
        self._start_ns = 0
        self._stop_ns: int | None = None
        self._export_ns: int | None = None
        self._phase_start = clock()
        self._last_end: int | None = None
        self._ends = 0
        self.phase = Phase.WARMUP
        self.first_step: int | None = None
        self._cut = False

    @property
    def num_steps_seen(self) -> int:
        """Steps whose end was seen, of the kind that counts now."""
        return self._ends

    @property
    def stretch(self) -> Stretch:
        """What has been recorded so far."""
        return Stretch(self.first_step, len(self._profiled), self._cut)

    def overhead(self) -> Overhead:
        """The cost of recording, from the steps timed so far."""
        unprofiled = self._after[1:] if len(self._after) > 3 else self._before[-NUM_BEFORE:]
        return Overhead(
            profiled_step_ns=median_ns(self._profiled),
            unprofiled_step_ns=median_ns(unprofiled),
            num_profiled_steps=len(self._profiled),
            num_unprofiled_steps=len(unprofiled),
            profiled_range_ns=range_ns(self._profiled),
            unprofiled_range_ns=range_ns(unprofiled),
            start_ns=None if self.first_step is None else self._start_ns,
            stop_ns=self._stop_ns,
            export_ns=self._export_ns,
        )

    def step_ended(self, kind: StepsBy) -> None:
        """A step has ended; ``kind`` says by which rule, and a new rule starts the count again."""
        now = self._clock()
        if kind is not self._kind and self.phase in (Phase.WARMUP, Phase.PREPARED):
            self._kind, self._last_end, self._ends = kind, None, 0
            self._before.clear()
            self._phase_start = now
        self._ends += 1
        duration = None if self._last_end is None else now - self._last_end
        _ON_STEP_END[self.phase](self, now, duration)
        self._last_end = self._clock()

    def record_from_now(self) -> None:
        """Record without steps, from here on."""
        self._timed(self._recorder.prepare)
        self._begin()

    def finish(self) -> None:
        """The script ends, or time is up: stop where it stands and keep what there is."""
        if self.phase is Phase.RECORDING:
            self._end(inside_step=True)
        elif self.phase is Phase.PREPARED:
            self._recorder.cancel()
        self.phase = Phase.DONE

    def cancel(self) -> None:
        """Stop recording, keep nothing and wait for steps again."""
        self._recorder.cancel()
        self.first_step = None
        self._start_ns = 0
        self.phase = Phase.WARMUP

    def _warm_up(self, now: int, duration: int | None) -> None:
        if duration is not None:
            self._before.append(duration)
        is_warm = self._is_warm(now)
        is_ready = self.phase is Phase.PREPARED or not self._recorder.needs_prepare
        if self.phase is Phase.WARMUP and (is_warm or self._ends + 1 >= self._least_warmup):
            self._timed(self._recorder.prepare)
            self.phase = Phase.PREPARED
        if is_warm and is_ready:
            self._begin()

    @property
    def _least_warmup(self) -> int:
        return MIN_WARMUP if self._settings.warmup is None else self._settings.warmup

    def _is_warm(self, now: int) -> bool:
        if self._settings.warmup is not None:
            return self._ends >= self._settings.warmup
        if now - self._phase_start > WARMUP_SECONDS * NS_PER_S:
            return True
        certain = self._certain()
        if self._ends >= (MAX_WARMUP if certain else MAX_UNCERTAIN_WARMUP):
            return True
        if self._ends < MIN_WARMUP or not certain:
            return False
        shorter, longer = sorted(self._before[-2:])
        return longer <= SETTLED_RATIO * shorter

    def _begin(self) -> None:
        self._timed(self._opening)
        self._timed(lambda: self._recorder.begin(self._ends))
        self.first_step = self._ends
        self.phase = Phase.RECORDING
        self._phase_start = self._clock()

    def _timed(self, action: Callable[[], None]) -> None:
        started = self._clock()
        action()
        self._start_ns += self._clock() - started

    def _record(self, now: int, duration: int | None) -> None:
        if duration is not None:
            self._profiled.append(duration)
        enough = len(self._profiled) >= self._settings.steps
        late = now - self._phase_start >= self._settings.max_seconds * NS_PER_S
        if enough or late or not self._recorder.has_room():
            self._end(inside_step=False)
        else:
            self._recorder.next_step()

    def _end(self, inside_step: bool) -> None:
        self._cut = inside_step
        started = self._clock()
        self._recorder.stop(inside_step)
        stopped = self._clock()
        self._recorder.export()
        self._phase_start = self._clock()
        self._stop_ns, self._export_ns = stopped - started, self._phase_start - stopped
        self.phase = Phase.AFTER

    def _rest(self, now: int, duration: int | None) -> None:
        if duration is not None:
            self._after.append(duration)
        late = now - self._phase_start > AFTER_SECONDS * NS_PER_S
        if late or len(self._after) >= AFTER_STEPS:
            self.phase = Phase.DONE

    def _ignore(self, _now: int, _duration: int | None) -> None:
        """Nothing is measured any more."""


_ON_STEP_END: dict[Phase, Callable[[Window, int, int | None], None]] = {
    Phase.WARMUP: Window._warm_up,
    Phase.PREPARED: Window._warm_up,
    Phase.RECORDING: Window._record,
    Phase.AFTER: Window._rest,
    Phase.DONE: Window._ignore,
}
