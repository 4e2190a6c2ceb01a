"""The hardware data files: complete, sourced, found by the names that traces carry."""

from __future__ import annotations

import pytest

from tools import hardware_page
from trnscope.errors import UnknownHardwareError
from trnscope.hardware.chips import Chip, Quantity, chips, find, load

_BY_CHIP = pytest.mark.parametrize("chip", chips(), ids=lambda chip: chip.name)


@_BY_CHIP
def test_every_number_has_a_unit_and_a_source(chip: Chip) -> None:
    quantities = [*chip.peaks.values(), *chip.memory.values()]
    assert quantities
    for quantity in quantities:
        assert quantity.value > 0
        assert quantity.unit
        assert quantity.source.strip()


@_BY_CHIP
def test_a_gpu_says_when_its_numbers_were_compared_with_their_source(chip: Chip) -> None:
    assert chip.kind == "neuron" or chip.checked.startswith("20")


@_BY_CHIP
def test_a_chip_has_what_a_roofline_needs(chip: Chip) -> None:
    assert chip.peak("float32") is not None
    bandwidth, size = chip.memory_bandwidth, chip.memory_bytes
    assert bandwidth is not None
    assert (bandwidth.unit, 1e11 < bandwidth.value < 2e13) == ("B/s", True)
    assert size is not None
    assert 10e9 < size.value < 300e9


@_BY_CHIP
def test_narrower_types_are_not_slower(chip: Chip) -> None:
    order = ("float32", "tfloat32", "float16", "float8_e4m3fn")
    known = [peak.value for dtype in order if (peak := chip.peak(dtype)) is not None]
    assert known == sorted(known)


def test_names_and_aliases_belong_to_one_chip() -> None:
    owners: dict[str, str] = {}
    for chip in chips():
        for name in chip.names:
            assert owners.setdefault(name.casefold(), chip.name) == chip.name


@pytest.mark.parametrize(
    ("device_name", "name", "dtype", "peak", "bandwidth"),
    [
        # Dense figures: the data sheets' headline ones count structured sparsity twice.
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb", "bfloat16", 312e12, 2039e9),
        ("A100-SXM4-40GB", "a100-sxm4-40gb", "tfloat32", 156e12, 1555e9),
        ("NVIDIA H100 80GB HBM3", "h100-sxm", "bfloat16", 989.5e12, 3.35e12),
        ("NVIDIA H100 PCIe", "h100-pcie", "float16", 756.5e12, 2.0e12),
        ("NVIDIA H200", "h200", "bfloat16", 989.5e12, 4.8e12),
        ("NVIDIA B200", "b200", "bfloat16", 2.25e15, 7.7e12),
        ("Tesla V100-SXM2-32GB", "v100-sxm2", "float16", 125e12, 900e9),
        ("Tesla T4", "t4", "float16", 65e12, 320e9),
        ("NVIDIA A10", "a10", "bfloat16", 125e12, 600e9),
        ("NVIDIA A10G", "a10g", "bfloat16", 70e12, 600e9),
        ("NVIDIA L40", "l40", "bfloat16", 181.05e12, 864e9),
        ("NVIDIA L40S", "l40s", "bfloat16", 362.05e12, 864e9),
        ("AMD Instinct MI300X", "mi300x", "bfloat16", 1307.4e12, 5.3e12),
        # One die, which is what torch calls a device.
        ("AMD Instinct MI250X", "mi250x", "bfloat16", 191.5e12, 1.6e12),
    ],
)
def test_a_device_is_found_by_the_name_in_its_traces(
    device_name: str, name: str, dtype: str, peak: float, bandwidth: float
) -> None:
    chip = find(device_name)
    assert chip.name == name
    found, memory = chip.peak(dtype), chip.memory_bandwidth
    assert found is not None
    assert memory is not None
    assert (found.value, memory.value) == (peak, bandwidth)


def test_a_name_is_read_without_case_or_vendor() -> None:
    assert find("nvidia  l40s").name == load("L40S").name == "l40s"


def test_one_figure_may_serve_all_eight_bit_floats() -> None:
    chip = Chip("x", "X", "neuron", "1", peaks={"float8": Quantity(2.0, "flop/s", "hand")})
    found = chip.peak("float8_e4m3fn")
    assert found is not None
    assert found.value == 2.0
    assert chip.peak("float16") is None


def test_a_type_without_a_published_peak_has_none() -> None:
    assert load("t4").peak("bfloat16") is None


@pytest.mark.parametrize(
    "name",
    ["NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA H100", "AMD Radeon Graphics", "NVIDIA", ""],
)
def test_no_chip_lends_its_numbers_to_another(name: str) -> None:
    with pytest.raises(UnknownHardwareError, match="not known") as error:
        find(name)
    assert "--peak-flops" in str(error.value)


def test_a_misspelt_name_gets_a_suggestion() -> None:
    with pytest.raises(UnknownHardwareError, match=r"did you mean .*h100-sxm"):
        load("h100-smx")
    with pytest.raises(UnknownHardwareError, match="known are a10, a100-"):
        load("zzz")


def test_the_page_of_the_documentation_is_up_to_date() -> None:
    assert hardware_page.PAGE.read_text(encoding="utf-8") == hardware_page.hardware_page()
