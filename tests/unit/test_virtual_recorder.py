"""The recorder of trnscope run on a simulated device, over a device that is made up here."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from tests.unit.recordings import TRN2, host, recording
from trnscope.capture.virtual_recorder import VirtualRecorder, simulated_target
from trnscope.errors import CaptureError
from trnscope.sim.neuronx import install, op_tracking
from trnscope.sim.virtual_trace import device
from trnscope.sim.virtual_trace.observed import Program
from trnscope.sim.virtual_trace.recording import HostKind
from trnscope.sim.virtual_trace.steps import Step, with_steps

SCRIPTS_OWN_STEP = (9, 7, 1, 0, 0, 1, -1, 0, -1, 0)


EMPTY = ("launches", "waits", "memory", "inputs", "collectives")


class MadeUpDevice:
    """A clock that moves by hand, and an observer that saw one op and a step of the script's."""

    def __init__(self) -> None:
        self.now = 0
        self.running: set[int] = set()
        self.launches = 0
        self.header: tuple[str, str] | None = None
        self.last: dict[str, Any] | None = None
        self.asked_for_python: list[bool] = []
        self.has_hook = True

    def now_ns(self) -> int:
        return self.now

    def observer_begin(self, with_inputs: bool, with_python: bool = False) -> int:  # noqa: ARG002
        self.asked_for_python.append(with_python)
        self.running.add(self.now)
        return self.now

    def observer_end(self, handle: int) -> dict[str, Any]:
        self.running.remove(handle)
        empty: dict[str, list[Any]] = {key: [] for key in EMPTY}
        ranges = [(8, 0, 0, 0, handle, self.now, -1, 0, -1, 0), SCRIPTS_OWN_STEP]
        names = ["aten::mm", "ProfilerStep#0"]
        return {
            **empty, "start_ns": handle, "end_ns": self.now, "ranges": ranges, "names": names,
            "with_python": self.asked_for_python[-1] and self.has_hook,
        }  # fmt: skip

    def profiler_has_last(self) -> bool:
        return self.last is not None

    def profiler_take_last(self) -> dict[str, Any]:
        assert self.last is not None
        last, self.last = self.last, None
        return last

    def executions(self) -> list[tuple[int, str, int, int, bool]]:
        return [
            (0, "aten::mm", 0, self.launches, False),
            (1, "aten::sort", 0, self.launches, True),
            (2, "Memcpy h2d", 1, self.launches, False),
        ]

    def set_profiler_header(self, device_properties: str, simulation: str) -> None:
        self.header = (device_properties, simulation)


@pytest.fixture
def made_up() -> Iterator[MadeUpDevice]:
    extension = MadeUpDevice()
    before = list(device._connected)
    device.connect(device.SimulatedDevice(extension, TRN2, lambda _: Program("op")))
    yield extension
    device._connected[:] = before


def test_steps_are_recorded_in_virtual_time(made_up: MadeUpDevice, tmp_path: Path) -> None:
    recorder = VirtualRecorder(True, lambda: tmp_path / "trace.json.gz")
    recorder.prepare()
    made_up.now = 100
    recorder.begin(5)
    made_up.now = 250
    recorder.next_step()
    made_up.now = 400
    recorder.stop(inside_step=False)
    recorder.export()
    assert recorder.trace == tmp_path / "trace.json.gz"
    document = json.loads(gzip.decompress(recorder.trace.read_bytes()))
    steps = {
        row["name"]: (row["ts"], row["dur"])
        for row in document["traceEvents"]
        if str(row["name"]).startswith("ProfilerStep")
    }
    # The script's own step is not shown beside ours.
    assert steps == {"ProfilerStep#5": (0.1, 0.15), "ProfilerStep#6": (0.25, 0.15)}
    assert not made_up.running


def test_stacks_are_recorded_when_asked_for(made_up: MadeUpDevice, tmp_path: Path) -> None:
    recorder = VirtualRecorder(False, lambda: tmp_path / "trace.json", with_stack=True)
    recorder.begin(0)
    made_up.now = 10
    recorder.stop(inside_step=False)
    recorder.export()
    assert made_up.asked_for_python == [True]
    assert json.loads((tmp_path / "trace.json").read_text())["with_stack"] == 1


def test_stacks_that_another_profiler_prevented_are_told(
    made_up: MadeUpDevice, tmp_path: Path
) -> None:
    made_up.has_hook = False
    recorder = VirtualRecorder(False, lambda: tmp_path / "trace.json", with_stack=True)
    recorder.begin(0)
    made_up.now = 10
    with pytest.warns(UserWarning, match="no Python stacks were recorded"):
        recorder.stop(inside_step=False)
    recorder.export()
    assert "with_stack" not in json.loads((tmp_path / "trace.json").read_text())


def test_a_step_that_was_cut_is_left_out(made_up: MadeUpDevice, tmp_path: Path) -> None:
    recorder = VirtualRecorder(True, lambda: tmp_path / "trace.json")
    recorder.begin(1)
    made_up.now = 10
    recorder.next_step()
    recorder.stop(inside_step=True)
    recorder.export()
    text = (tmp_path / "trace.json").read_text()
    assert "ProfilerStep#1" in text
    assert "ProfilerStep#2" not in text


def test_a_cancelled_recording_leaves_nothing(made_up: MadeUpDevice, tmp_path: Path) -> None:
    recorder = VirtualRecorder(True, lambda: tmp_path / "trace.json")
    recorder.begin(0)
    recorder.cancel()
    recorder.export()
    assert recorder.trace is None
    assert not made_up.running
    assert list(tmp_path.iterdir()) == []


def test_torchs_traces_are_told_what_is_simulated(made_up: MadeUpDevice) -> None:
    assert made_up.header is not None
    properties = json.loads(f"[{made_up.header[0]}]")
    assert [one["simulated"] for one in properties] == [True, True]
    simulation = json.loads(made_up.header[1])
    assert simulation["model"] == "trn2 model v1"
    assert simulation["clock"] == "host real, device simulated"
    assert simulated_target() == "sim:trn2.3xlarge"


def test_a_profile_can_be_taken_once_or_shared(made_up: MadeUpDevice) -> None:
    assert device.take_profiled() is None
    made_up.last = made_up.observer_end(made_up.observer_begin(True))
    found = device.take_profiled()
    assert found is not None
    assert device.take_profiled() is None
    with device.kept(found):
        assert device.take_profiled() is found
    assert device.take_profiled() is None


def test_a_capture_stops_once(made_up: MadeUpDevice) -> None:
    capture = device.VirtualCapture()
    capture.start()
    assert capture.is_running
    capture.stop()
    with pytest.raises(CaptureError, match="not running"):
        capture.stop()


def test_without_a_device_the_error_says_what_to_do() -> None:
    before = list(device._connected)
    device._connected.clear()
    try:
        with pytest.raises(CaptureError, match="trnscope run --device sim:trn2"):
            device.connected()
        assert simulated_target() is None
    finally:
        device._connected[:] = before


def test_ops_since_the_last_clear(made_up: MadeUpDevice) -> None:
    op_tracking._before.clear()
    assert op_tracking.get_executed_ops() == []
    made_up.launches = 2
    assert op_tracking.get_executed_ops() == ["aten::mm"]
    assert op_tracking.get_fallback_ops() == ["aten::sort"]
    op_tracking.clear_op_tracking()
    assert op_tracking.get_executed_ops() == op_tracking.get_fallback_ops() == []


def test_steps_enclose_what_starts_with_them() -> None:
    whole = recording(host=(host(4, "ProfilerStep#9", 0, 5), host(5, "aten::mm", 0, 9)))
    found = with_steps(whole, [Step(3, 0, 9)]).host
    assert [(row.id, row.name, row.kind) for row in found] == [
        (6, "ProfilerStep#3", HostKind.ANNOTATION),
        (5, "aten::mm", HostKind.OP),
    ]
    assert with_steps(whole, []) is whole


def test_the_real_package_goes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not install.is_real_installed()
    (tmp_path / "torch_neuronx.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    assert install.is_real_installed()
    assert install.install() is False
