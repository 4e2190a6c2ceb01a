"""NeuronCores and the instances that hold them, read from the data files beside this module.

Every number there has its unit and its source; what has no entry is unknown and raises.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from trnscope.errors import UnknownHardwareError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DATA = Path(__file__).parent / "data"


class Numbers:
    """A data file's numbers by section and key."""

    def __init__(self, tables: Mapping[str, Any], file: str) -> None:
        self.tables = tables
        self.file = file

    def get(self, section: str, key: str) -> float:
        """The value of ``[section] key``; a missing one is an error of the data file."""
        try:
            return float(self.tables[section][key]["value"])
        except KeyError:
            raise KeyError(f"{self.file} has no [{section}] {key}") from None

    def whole(self, section: str, key: str) -> int:
        """The same, for numbers that count something."""
        return int(self.get(section, key))


@dataclass(frozen=True)
class EngineFigures:
    """One engine of a core."""

    name: str
    clock_hz: float
    min_cycles: int
    """The least time between two instructions."""
    fixed_ns: float
    """From an instruction's start to its first element."""
    half_rate: float = 1.0
    """Elements of two bytes a cycle and lane, in the fastest mode."""

    def ns(self, cycles: float) -> float:
        """Cycles of this engine's clock as nanoseconds."""
        return cycles * 1e9 / self.clock_hz


@dataclass(frozen=True)
class TensorFigures:
    """The matrix engine."""

    rows: int
    columns: int
    float32_passes: int
    fp8_rate: float
    load_stationary_cycles: int
    sustained_rate: float
    """Share of the peak that a long run of matrix instructions reaches."""
    throttled_rate: float
    """Share of the peak in a burst after a quiet window (dI/dt)."""


@dataclass(frozen=True)
class DmaFigures:
    """The DMA engines of one core."""

    engines: int
    engine_bytes_per_ns: float
    ring_descriptor_ns: float
    """The least time of a descriptor that was prepared in a ring."""
    hardware_descriptors: bool
    """Descriptors are made by hardware while the program runs."""
    issue_ns: float
    """A queue's time for one transfer instruction, and"""
    issue_descriptor_ns: float
    """for each of its descriptors."""
    hardware_descriptor_ns: float
    """Added to a descriptor's data where hardware makes it."""
    trigger_ns: float
    completion_ns: float
    done_to_engine_ns: float
    engine_to_trigger_ns: float
    software_packet_ns: float
    transpose_rate: float


@dataclass(frozen=True)
class NeuronCore:
    """A physical core and its share of the chip."""

    name: str
    title: str
    version: str
    generation: str
    cores_per_chip: int
    hbm_bytes_per_chip: int
    hbm_bytes_per_ns: float
    """Bandwidth of the chip."""
    hbm_sustained: float
    """Share of it that long transfers reach."""
    sbuf_bytes_per_partition: int
    """What a program may use."""
    psum_banks: int
    psum_bank_bytes: int
    engines: tuple[EngineFigures, ...]
    tensor: TensorFigures
    dma: DmaFigures
    activation_table_ns: float
    shares_port: bool
    """Vector and GpSimd engines take turns at SBUF."""
    peak_flops: tuple[tuple[str, float], ...]

    def engine(self, name: str) -> EngineFigures:
        """The engine of that name."""
        for engine in self.engines:
            if engine.name == name:
                return engine
        raise KeyError(f"no engine {name!r}")

    @property
    def dma_bytes_per_ns(self) -> float:
        """What one core moves at most: its engines, or its share of the chip's HBM."""
        share = self.hbm_bytes_per_ns * self.hbm_sustained / self.cores_per_chip
        return min(self.dma.engines * self.dma.engine_bytes_per_ns, share)

    @property
    def dma_efficient_bytes(self) -> float:
        """Of a descriptor: what an engine moves at the full rate in the least time of one."""
        return self.dma.ring_descriptor_ns * self.dma_bytes_per_ns / self.dma.engines


@dataclass(frozen=True)
class Instance:
    """An instance type."""

    name: str
    core: NeuronCore
    num_chips: int
    lnc: int
    """Physical cores that make one logical core."""
    efa_bytes_per_ns: float

    @property
    def num_logical_cores(self) -> int:
        """Devices that torch enumerates."""
        return self.num_chips * self.core.cores_per_chip // self.lnc


def _read(path: Path) -> Mapping[str, Any]:
    with path.open("rb") as file:
        return tomllib.load(file)


def read_neuron_file(name: str) -> Mapping[str, Any]:
    """A file of ``data/neuron``: ``instances``, ``runtime`` or ``collectives``."""
    return _read(DATA / "neuron" / f"{name}.toml")


def _engine(numbers: Numbers, name: str) -> EngineFigures:
    section = numbers.tables[name]
    return EngineFigures(
        name,
        numbers.get(name, "clock_hz"),
        numbers.whole(name, "min_cycles"),
        numbers.get(name, "fixed_ns"),
        numbers.get(name, "half_rate") if "half_rate" in section else 1.0,
    )


def _tensor(numbers: Numbers) -> TensorFigures:
    return TensorFigures(
        numbers.whole("tensor", "rows"),
        numbers.whole("tensor", "columns"),
        numbers.whole("tensor", "float32_passes"),
        numbers.get("tensor", "fp8_rate"),
        numbers.whole("tensor", "load_stationary_cycles"),
        numbers.get("tensor", "sustained_rate"),
        numbers.get("tensor", "throttled_rate"),
    )


def _dma(numbers: Numbers) -> DmaFigures:
    fields = DmaFigures.__dataclass_fields__
    values = {key: numbers.get("dma", key) for key in fields}
    engines = int(values.pop("engines"))
    hardware = bool(values.pop("hardware_descriptors"))
    return DmaFigures(engines=engines, hardware_descriptors=hardware, **values)


@cache
def load_core(name: str) -> NeuronCore:
    """The core of a chip: ``trn1``, ``trn2``, ``trn3`` or ``inf2``."""
    path = DATA / f"{name}.toml"
    tables = _read(path) if path.is_file() else {}
    if tables.get("kind") != "neuron":
        raise UnknownHardwareError(f"no NeuronCore figures for {name!r}", _known(_chip_names()))
    numbers = Numbers(tables, path.name)
    return NeuronCore(
        name=name,
        title=tables["title"],
        version=tables["version"],
        generation=tables["generation"],
        cores_per_chip=numbers.whole("chip", "cores"),
        hbm_bytes_per_chip=numbers.whole("memory", "hbm_bytes"),
        hbm_bytes_per_ns=numbers.get("memory", "hbm_bandwidth") / 1e9,
        hbm_sustained=numbers.get("memory", "hbm_sustained"),
        sbuf_bytes_per_partition=numbers.whole("memory", "sbuf_usable_bytes_per_partition"),
        psum_banks=numbers.whole("memory", "psum_banks"),
        psum_bank_bytes=numbers.whole("memory", "psum_bank_bytes"),
        engines=tuple(_engine(numbers, e) for e in ("tensor", "vector", "scalar", "gpsimd")),
        tensor=_tensor(numbers),
        dma=_dma(numbers),
        activation_table_ns=numbers.get("scalar", "table_load_ns"),
        shares_port=bool(numbers.whole("core", "shares_vector_and_gpsimd_port")),
        peak_flops=tuple((key, numbers.get("peaks", key)) for key in tables["peaks"]),
    )


def _chip_names() -> list[str]:
    return sorted(p.stem for p in DATA.glob("*.toml") if _read(p).get("kind") == "neuron")


@cache
def least_dma_efficient_bytes() -> float:
    """Of all chips with figures: a shorter descriptor is slow on each of them."""
    return min(load_core(name).dma_efficient_bytes for name in _chip_names())


def _known(names: list[str]) -> str:
    return "known: " + ", ".join(names)


def instance_names() -> list[str]:
    """Instance types with sourced figures."""
    return sorted(
        key for key, row in read_neuron_file("instances").items() if isinstance(row, dict)
    )


@cache
def load_instance(name: str, lnc: int | None = None) -> Instance:
    """An instance type by its full name, or by its chip's name for the smallest one."""
    rows = read_neuron_file("instances")
    found = name if isinstance(rows.get(name), dict) else _first_of_chip(rows, name)
    if found is None:
        raise UnknownHardwareError(f"unknown instance {name!r}", _known(instance_names()))
    row = rows[found]
    chosen = row["lnc"][0] if lnc is None else lnc
    if chosen not in row["lnc"]:
        options = " or ".join(str(n) for n in sorted(row["lnc"]))
        raise UnknownHardwareError(
            f"{found} has no logical cores of {chosen} physical ones", f"use {options}"
        )
    efa_bits = float(row["efa_bits_per_s"]["value"])
    return Instance(
        found, load_core(row["chip"]), int(row["chips"]["value"]), chosen, efa_bits / 8e9
    )


def _first_of_chip(rows: Mapping[str, Any], chip: str) -> str | None:
    for key, row in rows.items():
        if isinstance(row, dict) and row["chip"] == chip:
            return key
    return None
