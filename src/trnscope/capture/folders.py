"""Finds what ``trnscope run`` and ``trnscope.profile`` wrote: a run is opened by its folder."""

from __future__ import annotations

from pathlib import Path

from trnscope.capture.record import SUFFIX, record_path
from trnscope.errors import UsageError


def traces_in(folder: Path) -> list[Path]:
    """The traces that were recorded into a folder."""
    return sorted(path for path in folder.glob("*.pt.trace.json*") if record_path(path).exists())


def traces_of_run(folder: Path) -> list[Path]:
    """The same; none where it is no folder of a run.

    Raises :class:`UsageError` for a folder of several runs, and names the latest.
    """
    if traces := traces_in(folder):
        return traces
    runs = {path.parent for path in folder.glob(f"*/*{SUFFIX}")}
    if not runs:
        return []
    latest = max(runs, key=lambda run: (run.stat().st_mtime_ns, run.name))
    many = "a recorded run" if len(runs) == 1 else f"{len(runs)} recorded runs"
    raise UsageError(
        f"{folder}: holds {many}", hint=f"name {'it' if len(runs) == 1 else 'one'}: {latest}"
    )


def without_records(paths: list[Path]) -> list[Path]:
    """Paths less the records that lie beside traces, which a pattern finds as well."""
    traces = [path for path in paths if not path.name.endswith(SUFFIX)]
    return traces or paths
