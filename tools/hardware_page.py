"""Writes docs/reference/hardware.md from the hardware data: ``python -m tools.hardware_page``."""

from __future__ import annotations

from pathlib import Path

from trnscope.hardware.chips import Chip, Quantity, chips
from trnscope.hardware.neuroncore import instance_names
from trnscope.model.units import format_rate
from trnscope.sim.cost import CostModel
from trnscope.sim.cost.collectives import TITLES

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "hardware.md"

_TYPES = {
    "float32": "float32",
    "tfloat32": "tfloat32",
    "bfloat16": "bfloat16",
    "float16": "float16",
    "float8": "float8_e4m3fn",
}
"""Column to a type of it."""

_HEAD = """# Hardware whose peaks are known

Generated from `src/trnscope/hardware/data/` by `make docs`. Peaks are dense; of one device as torch
counts devices, or of one core where the row says so. `--hardware NAME` takes a name or an alias, in
any case. A trace names its device by one of the aliases; a device that is not listed has no peaks,
and a slice of one (MIG) is another device. Memory is that of the whole chip. Data sheets often give
peaks with sparsity: those are halved here, and the source says so.
"""

_COLLECTIVES = """
## Collectives of the simulated chips

Simulated times of collectives follow laws fitted on published measurements
(`data/neuron/collectives.toml`). Where a chip has no public measurement, the law of another one is
used, and the row says so; `trnscope estimate` repeats it beside its collectives, and
`CostModel.notes` holds it for a program.

"""
_COLLECTIVES += (
    "| Chip | " + " | ".join(TITLES.values()) + " |\n" + "|---" * (len(TITLES) + 1) + "|"
)


def hardware_page() -> str:
    """The page: a table of figures, then the sources of each chip."""
    lines = [_HEAD, "| Name | " + " | ".join(_TYPES) + " | memory |"]
    lines.append("|---" * (len(_TYPES) + 2) + "|")
    lines += [_row(chip) for chip in chips()]
    lines.append("\n## Names and sources\n")
    lines += [_sources(chip) for chip in chips()]
    lines.append(_COLLECTIVES)
    lines += _borrowed()
    return "\n".join(lines) + "\n"


def _row(chip: Chip) -> str:
    per_core = ", one core" if any(peak.per_core for peak in chip.peaks.values()) else ""
    peaks = [_figure(_peak(chip, dtype), "FLOP/s") for dtype in _TYPES.values()]
    memory = _figure(chip.memory_bandwidth, "B/s")
    return f"| `{chip.name}`{per_core} | " + " | ".join([*peaks, memory]) + " |"


def _peak(chip: Chip, dtype: str) -> Quantity | None:
    """AMD's chips before MI350 have another 8-bit format of the same speed."""
    return chip.peak(dtype) or (chip.peak(f"{dtype}uz") if dtype.startswith("float8") else None)


def _figure(quantity: Quantity | None, unit: str) -> str:
    return "-" if quantity is None else format_rate(quantity.value, unit)


def _sources(chip: Chip) -> str:
    every = [*chip.peaks.values(), chip.memory_bandwidth, chip.memory_bytes]
    sources = dict.fromkeys(each.source for each in every if each is not None)
    names = ", ".join(f"`{alias}`" for alias in chip.aliases)
    checked = f" Checked {chip.checked}." if chip.checked else ""
    return (
        f"- **{chip.title}** (data version {chip.version}): {names}. {'; '.join(sources)}.{checked}"
    )


def _borrowed() -> list[str]:
    """A row for each law of each chip."""
    rows: dict[str, list[str]] = {}
    for name in instance_names():
        model = CostModel.for_instance(name)
        borrowed = {one.law: one.chip for one in model.collectives.borrowed}
        rows[model.core.name] = [borrowed.get(law, "measured") for law in TITLES.values()]
    return [
        f"| `{chip}` | "
        + " | ".join(cell if cell == "measured" else f"borrowed from {cell}" for cell in cells)
        + " |"
        for chip, cells in sorted(rows.items())
    ]


if __name__ == "__main__":
    PAGE.write_text(hardware_page(), encoding="utf-8")
