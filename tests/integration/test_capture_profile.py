"""``trnscope.profile``: torch's schedule semantics, one file for each cycle."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path

import pytest

import trnscope
from tests.integration.capture_helpers import events, steps
from trnscope.capture.profile import profile
from trnscope.capture.record import CaptureRecord, record_path
from trnscope.errors import CaptureError, UsageError

torch = pytest.importorskip("torch")


def work() -> None:
    torch.ones(8, 8) @ torch.ones(8, 8)


def count(path: Path, name: str = "aten::mm") -> int:
    return sum(event.get("name") == name for event in events(path))


def test_everything_inside_is_recorded(tmp_path: Path) -> None:
    with trnscope.profile(tmp_path) as run:
        for _ in range(3):
            work()
    assert run.paths == (run.path,)
    assert run.path.parent == tmp_path
    assert run.path.name.startswith("rank0.")
    assert count(run.path) == 3
    what = CaptureRecord.read(record_path(run.path))
    assert what.trace == run.path
    assert "CPU" in what.activities
    assert what.overhead.start_ns is not None


def test_each_cycle_makes_a_file_of_its_steps(tmp_path: Path) -> None:
    with profile(tmp_path, skip_first=1, wait=1, warmup=1, active=2, repeat=2) as run:
        for _ in range(12):
            work()
            run.step()
    # Steps 0; 1 2 [3 4]; 5 6 [7 8]; the rest.
    assert [steps(path) for path in run.paths] == [
        ["ProfilerStep#3", "ProfilerStep#4"],
        ["ProfilerStep#7", "ProfilerStep#8"],
    ]
    assert [count(path) for path in run.paths] == [2, 2]


def test_the_numbers_mean_what_they_mean_to_torch() -> None:
    choices = itertools.product((0, 2), (0, 1), (0, 1), (1, 3), (0, 1, 2))
    for skip_first, wait, warmup, active, repeat in choices:
        numbers = {
            "skip_first": skip_first,
            "wait": wait,
            "warmup": warmup,
            "active": active,
            "repeat": repeat,
        }
        ours = profile(**numbers)._make_schedule()  # type: ignore[arg-type]
        assert ours is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's advice on warmup=0
            theirs = torch.profiler.schedule(**numbers)
        assert [ours(step) for step in range(24)] == [theirs(step) for step in range(24)]


def test_a_schedule_of_torchs_own_and_its_callback(tmp_path: Path) -> None:
    seen = []
    schedule = torch.profiler.schedule(wait=1, warmup=1, active=1)
    with profile(tmp_path, schedule=schedule, on_trace_ready=seen.append, gzip=True) as run:
        for _ in range(6):
            work()
            run.step()
    assert [path.name.endswith(".pt.trace.json.gz") for path in run.paths] == [True, True]
    assert [steps(path) for path in run.paths] == [["ProfilerStep#2"], ["ProfilerStep#5"]]
    assert len(seen) == 2


def test_only_the_warning_that_each_cycle_clears_events_is_silenced(tmp_path: Path) -> None:
    from torch.profiler import profiler as torch_profiler

    torch_profiler._WARNINGS_SHOWN.clear()  # each is told once in a process
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with profile(tmp_path, active=1, repeat=3) as run:
            for _ in range(3):
                work()
                run.step()
        assert len(run.paths) == 3
        assert [str(one.message) for one in told if "clears events" in str(one.message)] == []
        # Torch's other warnings, and the same words from elsewhere, are told.
        torch_profiler._warn_once("another one")
        warnings.warn("Warning: Profiler clears events at the end of each cycle", stacklevel=1)
    assert {str(one.message) for one in told} >= {
        "another one",
        "Warning: Profiler clears events at the end of each cycle",
    }


def test_an_unfinished_cycle_is_written(tmp_path: Path) -> None:
    with profile(tmp_path, active=5) as run:
        work()
        run.step()
        work()
    assert count(run.path) == 2


def test_a_forgotten_step_is_told(tmp_path: Path) -> None:
    run = profile(tmp_path, wait=1, warmup=1, active=2)
    told = "step\\(\\) was called 0 times.*with step 2, counted from 0.*call step"
    with pytest.warns(UserWarning, match=told), run:
        work()
    assert run.paths == ()
    with pytest.raises(CaptureError, match="nothing was recorded"):
        _ = run.path
    assert list(tmp_path.iterdir()) == []


def test_a_decorated_function_is_recorded_at_each_call(tmp_path: Path) -> None:
    run = profile(tmp_path)

    @run
    def double(value: int) -> int:
        """Twice the value."""
        work()
        return 2 * value

    assert (double(2), double(4), double.__doc__) == (4, 8, "Twice the value.")
    assert [count(path) for path in run.paths] == [1, 1]


def test_an_exception_passes_and_the_trace_is_kept(tmp_path: Path) -> None:
    run = profile(tmp_path)
    with pytest.raises(ValueError, match="boom"), run:
        work()
        raise ValueError("boom")
    assert count(run.path) == 1


def test_options_reach_torch(tmp_path: Path) -> None:
    activity = torch.profiler.ProfilerActivity.CPU
    with profile(
        tmp_path, activities=[activity], record_shapes=True, profile_memory=True, with_stack=True
    ) as run:
        work()
    found = events(run.path)
    product = next(event for event in found if event.get("name") == "aten::mm")
    assert product["args"]["Input Dims"] == [[8, 8], [8, 8]]
    assert any(event.get("cat") == "python_function" for event in found)
    assert any(event.get("name") == "[memory]" for event in found)


@pytest.mark.parametrize(
    "wrong",
    [
        {"wait": 1},
        {"active": 0},
        {"active": 1, "warmup": -1},
        {"active": 1, "schedule": lambda _step: None},
    ],
)
def test_contradictions_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        profile(**wrong)  # type: ignore[arg-type]


def test_calls_out_of_turn_are_refused(tmp_path: Path) -> None:
    run = profile(tmp_path)
    with pytest.raises(UsageError, match="outside"):
        run.step()
    with run, pytest.raises(UsageError, match="running already"):
        run.start()
    run.stop()


def test_the_result_opens_as_any_trace_does(tmp_path: Path) -> None:
    with trnscope.profile(tmp_path) as run:
        work()
    profile_read = run.open()
    assert [Path(trace.source.path) for trace in profile_read.traces] == [run.path]
    with pytest.raises(CaptureError, match="cannot open"):
        profile(tmp_path).open()
