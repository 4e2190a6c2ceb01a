"""NeuronConfig: its values survive the text that torch carries, wrong ones give one clear error."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from trnscope.errors import UsageError  # noqa: E402
from trnscope.sim.neuronx import folders  # noqa: E402
from trnscope.sim.neuronx.config import NeuronConfig, ProfileMode  # noqa: E402
from trnscope.sim.neuronx.cores import parse_cores  # noqa: E402
from trnscope.sim.neuronx.errors import ProfileArgumentError  # noqa: E402
from trnscope.sim.neuronx.inspect_settings import inspect_settings  # noqa: E402

TRICKY = "./out=1 #2\nhere:there;"


def test_defaults_are_the_documented_ones() -> None:
    config = NeuronConfig()
    assert config.modes == [ProfileMode.DEVICE, ProfileMode.RUNTIME]
    assert config.max_events_per_nc == 1_000_000
    assert (config.capture_enabled_for_nc, config.cores()) == (None, None)
    assert config.profile_output_dir == "./output"
    assert config.precache_node_info is True
    assert isinstance(config, torch._C._profiler._ExperimentalConfig)


def test_kineto_can_read_every_value() -> None:
    config = NeuronConfig(profile_output_dir=TRICKY)
    text = config.custom_profiler_config
    assert not set("=#\n") & set(text)
    assert json.loads(text)["profile_output_dir"] == TRICKY
    assert config.profile_output_dir == TRICKY


def test_torch_profiles_with_it_on_the_cpu_alone() -> None:
    # A character that Kineto cannot read ends the process here.
    config = NeuronConfig(profile_output_dir=TRICKY, capture_enabled_for_nc="0,2-3")
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, experimental_config=config) as prof:
        torch.ones(2) + 1
    assert any(row.key == "aten::add" for row in prof.key_averages())


def test_a_copy_holds_the_same(tmp_path: Path) -> None:
    config = NeuronConfig(
        ["runtime", ProfileMode.CPU_UTIL], 7, "1,3-4", tmp_path, tmp_path / "neffs", False, True
    )
    for other in (copy.copy(config), copy.deepcopy(config)):
        assert other.modes == [ProfileMode.RUNTIME, ProfileMode.CPU_UTIL]
        assert (other.max_events_per_nc, other.cores()) == (7, frozenset({1, 3, 4}))
        assert other.profile_output_dir == str(tmp_path)
        assert other.neff_cache_dir == str(tmp_path / "neffs")
        assert (other.precache_node_info, other.correlate_device_time) == (False, True)


def test_the_cache_folder_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert NeuronConfig().neff_cache_dir is None
    monkeypatch.setenv("TORCH_NEURONX_NEFF_CACHE_DIR", "/neffs")
    assert NeuronConfig().neff_cache_dir == "/neffs"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"modes": []}, "modes is empty"),
        ({"modes": ["devise"]}, "no ProfileMode: 'devise'"),
        ({"modes": "device"}, "modes is no list"),
        ({"max_events_per_nc": 0}, "no number of events: 0"),
        ({"max_events_per_nc": True}, "no number of events: True"),
        ({"capture_enabled_for_nc": "0;1"}, 'no list of NeuronCores: "0;1"'),
        ({"capture_enabled_for_nc": "4-2"}, 'no list of NeuronCores: "4-2"'),
        ({"capture_enabled_for_nc": 3}, "capture_enabled_for_nc is no text"),
        ({"profile_output_dir": ""}, "profile_output_dir is no path"),
        ({"precache_node_info": "yes"}, "precache_node_info is neither"),
    ],
)
def test_wrong_arguments(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ProfileArgumentError, match=message) as error:
        NeuronConfig(**arguments)  # type: ignore[arg-type]
    assert isinstance(error.value, UsageError)
    assert isinstance(error.value, ValueError)
    assert "\n" not in str(error.value)


def test_lists_of_cores() -> None:
    assert parse_cores("0") == {0}
    assert parse_cores(" 0, 2-5 ,9") == {0, 2, 3, 4, 5, 9}


def test_folders_are_the_documented_ones(tmp_path: Path) -> None:
    first = folders.new_session_folder(tmp_path, "trn2.3xlarge")
    second = folders.new_session_folder(tmp_path, "trn2.3xlarge")
    assert first != second
    assert first.is_dir() and second.is_dir()
    assert first.parent == folders.process_folder(tmp_path, "trn2.3xlarge")
    assert first.parent.name.startswith("sim-trn2.3xlarge_pid_")


def test_a_timestamp_sorts_by_time() -> None:
    second = 1_000_000_000
    text = folders.timestamp(second * 1_780_000_000 + 45_000_000)
    assert text.endswith("_045")
    assert text < folders.timestamp(second * 1_780_000_001)


def test_no_capture_without_the_variable() -> None:
    assert inspect_settings({}) is None
    assert inspect_settings({"NEURON_RT_INSPECT_ENABLE": "0"}) is None


def test_capture_by_environment() -> None:
    settings = inspect_settings(
        {
            "NEURON_RT_INSPECT_ENABLE": "1",
            "NEURON_RT_INSPECT_DEVICE_PROFILE": "session",
            "NEURON_RT_INSPECT_OUTPUT_DIR": "/out",
            "NEURON_RT_INSPECT_EVENT_FILTER_NC": "0-1",
            "NEURON_RT_INSPECT_EVENT_FILTER_TYPE": "hardware,^cc_running",
            "NEURON_RT_INSPECT_SYS_TRACE_MAX_EVENTS_PER_NC": "5",
        }
    )
    assert settings is not None
    assert settings.modes == (ProfileMode.RUNTIME, ProfileMode.DEVICE)
    assert (settings.output_dir, settings.cores) == ("/out", frozenset({0, 1}))
    assert settings.max_events_per_nc == 5
    assert settings.event_types == ("hardware", "^cc_running")


@pytest.mark.parametrize(
    ("name", "value"), [("CPU_UTIL", "perhaps"), ("SYS_TRACE_MAX_EVENTS_PER_NC", "many")]
)
def test_wrong_variables(name: str, value: str) -> None:
    with pytest.raises(ProfileArgumentError, match=f"NEURON_RT_INSPECT_{name}"):
        inspect_settings({"NEURON_RT_INSPECT_ENABLE": "1", f"NEURON_RT_INSPECT_{name}": value})
