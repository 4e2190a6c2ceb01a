"""The NeuronCore's figures: complete, sourced, and unknown ones refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from trnscope.errors import UnknownHardwareError
from trnscope.hardware import neuroncore
from trnscope.hardware.neuroncore import DATA, instance_names, load_core, load_instance

CHIPS = ("inf2", "trn1", "trn2", "trn3")
FILES = [*(DATA / f"{chip}.toml" for chip in CHIPS), *(DATA / "neuron").glob("*.toml")]


def tables_with_value(table: object) -> list[dict[str, object]]:
    if isinstance(table, list):
        return [found for part in table for found in tables_with_value(part)]
    if not isinstance(table, dict):
        return []
    if "value" in table:
        return [table]
    return [found for part in table.values() for found in tables_with_value(part)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_number_has_a_unit_and_a_source(path: Path) -> None:
    numbers = tables_with_value(neuroncore._read(path))
    assert numbers or path.name == "collectives.toml"
    for number in numbers:
        assert number["unit"], number
        assert len(str(number["source"])) > 8, number


@pytest.mark.parametrize(
    ("chip", "clock_ghz", "peak_tflops"), [("trn1", 2.8, 91.75), ("trn2", 2.4, 78.64)]
)
def test_the_peak_is_the_array_times_its_clock(
    chip: str, clock_ghz: float, peak_tflops: float
) -> None:
    core = load_core(chip)
    array = 2 * core.tensor.rows * core.tensor.columns * core.engine("tensor").clock_hz
    assert core.engine("tensor").clock_hz == clock_ghz * 1e9
    assert dict(core.peak_flops)["bfloat16"] == pytest.approx(array, rel=0.001)
    assert array == pytest.approx(peak_tflops * 1e12, rel=0.001)


def test_a_core_of_trn1_reads_as_fast_as_its_dma_engines() -> None:
    assert load_core("trn1").dma_bytes_per_ns == 272.0


@pytest.mark.parametrize(
    ("name", "lnc", "cores"),
    [
        ("trn1.2xlarge", 1, 2),
        ("trn1.32xlarge", 1, 32),
        ("trn2.3xlarge", 2, 4),
        ("trn2.3xlarge", 1, 8),
        ("trn2.48xlarge", 2, 64),
        ("inf2.48xlarge", 1, 24),
    ],
)
def test_logical_cores_by_instance(name: str, lnc: int, cores: int) -> None:
    assert load_instance(name, lnc).num_logical_cores == cores


def test_a_chips_name_stands_for_its_smallest_instance() -> None:
    assert load_instance("trn2").name == "trn2.3xlarge"
    assert load_instance("trn2").lnc == 2


@pytest.mark.parametrize("name", instance_names())
def test_every_instance_loads(name: str) -> None:
    assert load_instance(name).num_logical_cores > 0


def test_unknown_hardware_is_refused_with_what_is_known() -> None:
    with pytest.raises(UnknownHardwareError, match=r"trn2\.48xlarge"):
        load_instance("trn9.large")
    with pytest.raises(UnknownHardwareError, match="inf2, trn1, trn2, trn3"):
        load_core("h100")
    with pytest.raises(UnknownHardwareError, match="use 1"):
        load_instance("trn1.2xlarge", 2)
