"""When recording starts, how long it lasts and what it is compared with."""

from __future__ import annotations

import pytest

from trnscope.capture.options import CaptureSettings, StepsBy
from trnscope.capture.window import Phase, Window

MS = 1_000_000
S = 1000 * MS


class FakeClock:
    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


class FakeRecorder:
    """Writes down what it is told; each action takes the time it is given."""

    def __init__(self, clock: FakeClock, needs_prepare: bool = False) -> None:
        self.needs_prepare = needs_prepare
        self.told: list[str] = []
        self.num_asked, self.full_after = 0, 1000
        self._clock = clock

    def _do(self, what: str, takes: int) -> None:
        self.told.append(what)
        self._clock.now += takes

    def prepare(self) -> None:
        self._do("prepare", 5 * MS)

    def opening(self) -> None:
        self._do("opening", 2 * MS)

    def begin(self, step: int) -> None:
        self._do(f"begin {step}", 10 * MS)

    def next_step(self) -> None:
        self._do("next", 0)

    def has_room(self) -> bool:
        self.num_asked += 1
        return self.num_asked < self.full_after

    def stop(self, inside_step: bool) -> None:
        self._do("stop inside" if inside_step else "stop", 20 * MS)

    def export(self) -> None:
        self._do("export", 40 * MS)

    def cancel(self) -> None:
        self._do("cancel", 0)


class Run:
    """A script whose steps take the given times."""

    def __init__(
        self, settings: CaptureSettings, needs_prepare: bool = False, certain: bool = True
    ) -> None:
        self.clock = FakeClock()
        self.recorder = FakeRecorder(self.clock, needs_prepare)
        self.window = Window(
            settings, self.recorder, self.clock, lambda: certain, self.recorder.opening
        )

    @property
    def told(self) -> list[str]:
        return self.recorder.told

    @property
    def beginning(self) -> str:
        """When recording began."""
        return next(what for what in self.told if what.startswith("begin"))

    def steps(self, *durations_ms: int, kind: StepsBy = StepsBy.OPTIMIZER) -> Run:
        for duration in durations_ms:
            self.clock.now += duration * MS
            self.window.step_ended(kind)
        return self


def recorded(begin: int, *rest: str) -> list[str]:
    """What a recorder is told that begins with step ``begin``."""
    return ["prepare", "opening", f"begin {begin}", *rest]


def test_steady_steps_are_recorded_after_three() -> None:
    run = Run(CaptureSettings(steps=2)).steps(*[100] * 20)
    assert run.told == recorded(3, "next", "stop", "export")
    assert run.window.stretch.first_step == 3
    assert run.window.stretch.num_steps == 2
    assert not run.window.stretch.last_step_cut
    assert run.window.phase is Phase.DONE


def test_recording_ends_when_the_recorder_is_full() -> None:
    run = Run(CaptureSettings(steps=5))
    run.recorder.full_after = 3
    run.steps(*[100] * 20)
    assert run.told == recorded(3, "next", "next", "stop", "export")
    assert run.window.stretch.num_steps == 3 and not run.window.stretch.last_step_cut


def test_recording_waits_until_step_times_settle() -> None:
    # Between step ends 2-3 and 3-4: 400 and 200 ms; 4-5: 190 ms, within 20 % of it.
    run = Run(CaptureSettings(steps=1)).steps(900, 800, 400, 200, 190, 100)
    assert run.beginning == "begin 5"


def test_recording_starts_after_six_steps_though_times_never_settle() -> None:
    run = Run(CaptureSettings(steps=1)).steps(*[100, 300] * 6)
    assert run.beginning == "begin 6"


def test_an_unfinished_round_of_optimizers_is_waited_for_up_to_twelve() -> None:
    run = Run(CaptureSettings(steps=1), certain=False).steps(*[100] * 14)
    assert run.beginning == "begin 12"


def test_a_warm_up_that_was_asked_for_is_kept_to() -> None:
    run = Run(CaptureSettings(steps=1, warmup=7)).steps(*[100] * 10)
    assert run.beginning == "begin 7"


def test_the_first_step_is_never_recorded_because_its_start_is_unknown() -> None:
    run = Run(CaptureSettings(steps=1, warmup=0)).steps(100, 100)
    assert run.told == recorded(1, "stop", "export")


def test_long_steps_are_not_skipped_for_more_than_a_minute() -> None:
    run = Run(CaptureSettings(steps=1, max_seconds=600)).steps(300_000, 61_000, 61_000)
    assert run.beginning == "begin 2"


def test_the_profiler_is_prepared_one_step_ahead() -> None:
    run = Run(CaptureSettings(steps=1)).steps(100, 100)
    assert run.told == ["prepare"]
    assert run.window.phase is Phase.PREPARED
    run.steps(100)
    # What the session does to open the window comes before the first recorded step begins.
    assert run.told == ["prepare", "opening", "begin 3"]


@pytest.mark.parametrize(("warmup", "begin"), [(0, 1), (1, 1), (2, 2), (5, 5)])
def test_preparing_costs_no_step(warmup: int, begin: int) -> None:
    run = Run(CaptureSettings(steps=1, warmup=warmup)).steps(*[100] * 8)
    assert run.told == recorded(begin, "stop", "export")


def test_the_profiler_stays_prepared_until_step_times_settle() -> None:
    run = Run(CaptureSettings(steps=1)).steps(900, 800, 400, 200)
    assert run.told == ["prepare"]
    run.steps(190)
    assert run.told == recorded(5)


@pytest.mark.parametrize(("warmup", "begin"), [(0, 2), (1, 2), (2, 2), (5, 5), (None, 3)])
def test_devices_get_a_step_to_prepare(warmup: int | None, begin: int) -> None:
    run = Run(CaptureSettings(steps=1, warmup=warmup), needs_prepare=True).steps(*[100] * 8)
    assert run.told == recorded(begin, "stop", "export")


def test_recording_ends_with_the_step_that_passes_the_time_limit() -> None:
    run = Run(CaptureSettings(steps=8, max_seconds=1.0)).steps(*[400] * 10)
    # Recorded from step 3 on: 400, 800, 1200 ms.
    assert run.told == recorded(3, "next", "next", "stop", "export")
    assert run.window.stretch.num_steps == 3


def test_a_script_that_ends_inside_a_step_keeps_what_was_recorded() -> None:
    run = Run(CaptureSettings(steps=8)).steps(*[100] * 5)
    run.window.finish()
    assert run.told == recorded(3, "next", "next", "stop inside", "export")
    assert run.window.stretch.num_steps == 2
    assert run.window.stretch.last_step_cut


def test_a_script_that_ends_while_preparing_leaves_nothing() -> None:
    run = Run(CaptureSettings()).steps(*[100] * 2)
    run.window.finish()
    assert run.told == ["prepare", "cancel"]
    assert run.window.stretch.first_step is None


def test_another_kind_of_step_starts_the_warm_up_again() -> None:
    run = Run(CaptureSettings(steps=1))
    run.steps(100, 100, kind=StepsBy.FORWARD).steps(*[100] * 4)
    # Prepared for the first kind, which serves the second as well.
    assert run.told == recorded(3, "stop", "export")
    assert run.window.num_steps_seen == 4


def test_another_kind_of_step_right_before_recording_would_begin() -> None:
    run = Run(CaptureSettings(steps=1, warmup=3))
    run.steps(100, 100, kind=StepsBy.FORWARD).steps(100)
    assert run.told == ["prepare"]
    assert run.window.num_steps_seen == 1
    run.steps(100, 100)
    assert run.told == recorded(3)


def test_a_prepared_profiler_that_had_to_go_is_prepared_again() -> None:
    run = Run(CaptureSettings(steps=1, warmup=4)).steps(*[100] * 3)
    run.window.cancel()
    run.steps(100)
    assert run.told == ["prepare", "cancel", *recorded(4)]


def test_overhead_compares_with_the_steps_after_and_leaves_out_start_and_stop() -> None:
    run = Run(CaptureSettings(steps=3))
    run.steps(900, 100, 100)  # warm-up; 5 ms to prepare, 2 to open and 10 to begin
    run.steps(120, 130, 150)  # recorded, then 20 ms to stop and 40 ms to write
    run.steps(500, 100, 104, 96, 100, 100)
    overhead = run.window.overhead()
    assert overhead.profiled_step_ns == 130 * MS
    assert overhead.unprofiled_step_ns == 100 * MS
    assert (overhead.num_profiled_steps, overhead.num_unprofiled_steps) == (3, 5)
    assert overhead.profiled_range_ns == (120 * MS, 150 * MS)
    assert overhead.unprofiled_range_ns == (96 * MS, 104 * MS)
    assert overhead.slowdown_ratio == pytest.approx(0.3)
    assert overhead.start_ns == 17 * MS
    assert overhead.stop_ns == 20 * MS
    assert overhead.export_ns == 40 * MS
    assert overhead.total_ns == 77 * MS


def test_overhead_compares_with_the_steps_before_when_none_come_after() -> None:
    run = Run(CaptureSettings(steps=2, warmup=4)).steps(900, 130, 110, 100, 120, 120)
    overhead = run.window.overhead()
    assert overhead.unprofiled_step_ns == 110 * MS
    assert overhead.num_unprofiled_steps == 3


def test_nothing_recorded_means_nothing_measured() -> None:
    overhead = Run(CaptureSettings()).steps(100, 100).window.overhead()
    assert overhead.profiled_step_ns is None
    assert overhead.slowdown_ratio is None
    assert (overhead.start_ns, overhead.stop_ns, overhead.export_ns) == (None, None, None)
    assert overhead.total_ns is None


def test_a_window_without_steps_ends_where_it_stands() -> None:
    run = Run(CaptureSettings())
    run.window.record_from_now()
    run.window.finish()
    assert run.told == recorded(0, "stop inside", "export")


def test_a_window_without_steps_gives_way_to_steps() -> None:
    run = Run(CaptureSettings())
    run.window.record_from_now()
    run.window.cancel()
    assert run.told == recorded(0, "cancel")
    assert run.window.phase is Phase.WARMUP
    assert run.window.overhead().start_ns is None


def test_late_steps_after_the_window_end_the_measurement() -> None:
    run = Run(CaptureSettings(steps=1)).steps(100, 100, 100, 100, 21_000)
    assert run.window.phase is Phase.DONE
