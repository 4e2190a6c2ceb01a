"""What the hardware can do at most: one data file a chip, every number with its source.

A file in ``data/`` holds ``name``, ``title``, ``kind``, ``version``, ``checked`` (when and against
what the numbers were compared again), ``aliases`` (the names by which torch and its traces call the
device) and tables of quantities, each with ``value``, ``unit`` and ``source``:

``[peaks.<dtype>]``
    Dense peak of one device in that type, or of one core where ``per_core = true``. Where the
    chip has a matrix unit for the type, it is the matrix unit's. ``tfloat32`` is float32 data
    multiplied at reduced precision.
``[memory.<kind>_bandwidth]``, ``[memory.<kind>_bytes]``
    Of the whole chip, in ``B/s`` and ``B``; ``kind`` is ``hbm``, ``gddr`` or ``dram``.
``[chip.cores]``
    Cores of one chip; only where a core, not the chip, is what torch sees as a device.

Other tables are left to those who know them. A device that no file names is unknown: none of
the numbers is ever lent to another chip.
"""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from trnscope.errors import UnknownHardwareError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DATA = Path(__file__).parent / "data"
"""Where the data files are."""

_MEMORY_KINDS = ("hbm", "gddr", "dram")


@dataclass(frozen=True)
class Quantity:
    """A number with its unit and where it was published."""

    value: float
    unit: str
    source: str
    per_core: bool = False
    """Whether it counts one physical core rather than one chip."""


@dataclass(frozen=True)
class Chip:
    """One kind of device and its peaks."""

    name: str
    """What a user writes."""
    title: str
    kind: str
    """``cuda``, ``hip``, ``neuron``, ``cpu``."""
    version: str
    """Version of the numbers; shown with whatever is computed from them."""
    checked: str = ""
    """When and against what the numbers were compared again; empty: they were not."""
    aliases: tuple[str, ...] = ()
    peaks: Mapping[str, Quantity] = field(default_factory=lambda: MappingProxyType({}))
    memory: Mapping[str, Quantity] = field(default_factory=lambda: MappingProxyType({}))
    cores: Quantity | None = None
    """Physical cores of one chip, where peaks count cores."""

    def peak(self, dtype: str) -> Quantity | None:
        """Dense peak for a type as torch names it; absent where none is published.

        A file that gives one figure for all 8-bit floats calls them ``float8``.
        """
        return self.peaks.get(dtype) or self.peaks.get(dtype.partition("_")[0])

    @property
    def memory_bandwidth(self) -> Quantity | None:
        """Bandwidth of the device's main memory."""
        found = (self.memory.get(f"{kind}_bandwidth") for kind in _MEMORY_KINDS)
        return next((quantity for quantity in found if quantity is not None), None)

    @property
    def memory_bytes(self) -> Quantity | None:
        """Size of the device's main memory."""
        found = (self.memory.get(f"{kind}_bytes") for kind in _MEMORY_KINDS)
        return next((quantity for quantity in found if quantity is not None), None)

    @property
    def names(self) -> tuple[str, ...]:
        """Its name, its title and its aliases."""
        return (self.name, self.title, *self.aliases)


def load(name: str) -> Chip:
    """The chip of that name or alias. Raises :class:`UnknownHardwareError`."""
    chip = _by_name().get(_normal(name))
    if chip is None:
        raise UnknownHardwareError(f"no hardware is named {name!r}", hint=_suggestion(name))
    return chip


def find(device_name: str) -> Chip:
    """The chip that a trace or torch calls so. Raises :class:`UnknownHardwareError`.

    The whole name has to match: a slice of a device (MIG) or a sibling is another device.
    """
    chip = _by_name().get(_normal(device_name))
    if chip is None:
        raise UnknownHardwareError(
            f"the peaks of {device_name!r} are not known",
            hint="name a known chip with --hardware, or give --peak-flops and --peak-bandwidth",
        )
    return chip


@lru_cache(maxsize=1)
def chips() -> tuple[Chip, ...]:
    """All known chips, by name."""
    return tuple(read_chip(path) for path in sorted(DATA.glob("*.toml")) if _is_chip(path))


def _is_chip(path: Path) -> bool:
    """A data file may hold other constants; a chip's has its name in it."""
    return "peaks" in _parsed(path)


def read_chip(path: Path) -> Chip:
    """The chip that one data file describes."""
    data = _parsed(path)
    return Chip(
        name=data["name"],
        title=data["title"],
        kind=data["kind"],
        version=data["version"],
        checked=data.get("checked", ""),
        aliases=tuple(data.get("aliases", ())),
        peaks=_quantities(data.get("peaks", {})),
        memory=_quantities(data.get("memory", {})),
        cores=_quantities(data.get("chip", {})).get("cores"),
    )


@lru_cache(maxsize=64)
def _parsed(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _quantities(tables: Mapping[str, Any]) -> Mapping[str, Quantity]:
    return MappingProxyType(
        {
            key: Quantity(
                value=float(table["value"]),
                unit=table["unit"],
                source=table["source"],
                per_core=table.get("per_core", False),
            )
            for key, table in tables.items()
        }
    )


@lru_cache(maxsize=1)
def _by_name() -> Mapping[str, Chip]:
    return {_normal(name): chip for chip in chips() for name in chip.names}


def _normal(name: str) -> str:
    """Without case, repeated spaces and the vendor's word, which drivers began to write in 2021."""
    words = name.casefold().split()
    return " ".join(words[1:] if words[:1] == ["nvidia"] and len(words) > 1 else words)


def _suggestion(name: str) -> str:
    known = [chip.name for chip in chips()]
    close = difflib.get_close_matches(name.casefold(), known, n=4, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?" if close else f"known are {', '.join(known)}"
