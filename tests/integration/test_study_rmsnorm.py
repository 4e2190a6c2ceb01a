"""The RMSNorm study: what each way asks of the device follows from the shapes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.sim_checks import has_compiler
from trnscope.study.rmsnorm.plan import ROWS, WIDTH

pytestmark = pytest.mark.slow
INPUT_BYTES = ROWS * WIDTH * 4


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    if not has_compiler():
        pytest.skip("no C++ compiler for the simulated device")
    return run("sim:trn2", tmp_path_factory.mktemp("study"))


def run(device: str, out: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "trnscope", "study", "rmsnorm", "--json"]
    done = subprocess.run(
        [*command, "--device", device, "-o", str(out)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def by_way(study: dict[str, Any], member: str) -> list[Any]:
    return [way[member] for way in study["ways"]]


def test_the_document_says_that_it_is_simulated(study: dict[str, Any]) -> None:
    assert (study["device"], study["simulated"]) == ("sim:trn2", True)
    assert study["hardware_model"].startswith("trn2 model v")
    assert by_way(study, "way") == ["op by op", "torch.rms_norm", "torch.compile"]


def test_a_fused_norm_is_one_execution_and_the_ops_are_six(study: dict[str, Any]) -> None:
    assert by_way(study, "executions_per_call") == [6, 1, 1]


def test_traffic_follows_from_the_shapes(study: dict[str, Any]) -> None:
    """pow, and both products, read and write the input; mean reads it; fused ways do so once."""
    op_by_op, fused, compiled = (
        traffic / INPUT_BYTES for traffic in by_way(study, "hbm_bytes_per_call")
    )
    assert op_by_op == pytest.approx(7, rel=0.002)
    assert fused == pytest.approx(2, rel=0.002)
    assert compiled == pytest.approx(2, rel=0.002)


def test_all_ways_compute_the_same(study: dict[str, Any]) -> None:
    assert max(by_way(study, "max_difference")) < 1e-5


def test_fusing_saves_device_and_host_time(study: dict[str, Any]) -> None:
    device, host = by_way(study, "device_ns_per_call"), by_way(study, "host_ns_per_call")
    assert device[1] < device[0] / 2
    assert host[1] == host[0] / 6


def test_each_table_is_torchs_own_with_the_devices_columns(study: dict[str, Any]) -> None:
    tables = by_way(study, "key_averages")
    assert all("Self NEURON" in table and "NEURON total" in table for table in tables)
    assert "aten::pow" in tables[0]
    assert "aten::_fused_rms_norm" in tables[1]


def test_on_the_cpu_there_is_no_device(tmp_path: Path) -> None:
    study = run("cpu", tmp_path)
    assert (study["simulated"], study["hardware_model"]) == (False, None)
    assert by_way(study, "executions_per_call") == by_way(study, "device_ns_per_call") == [None] * 3
    assert min(by_way(study, "host_ns_per_call")) > 0
    assert max(by_way(study, "max_difference")) < 1e-5


def test_an_unknown_device_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "trnscope", "study", "rmsnorm", "--device", "sim:none"]
    done = subprocess.run(
        [*command, "-o", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("trnscope: error: no simulated device: sim:none; give one")
    assert len(done.stderr.splitlines()) == 1
