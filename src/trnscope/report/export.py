"""Writes profiles and query results to files: Parquet, Chrome-trace JSON, CSV."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import IO, Any

from trnscope.errors import UsageError
from trnscope.report.chrome_json import ChromeJsonWriter
from trnscope.report.output_file import require_absent, whole_file
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace
from trnscope.store.sql import QueryResult, connect

PARQUET_VIEWS = (
    "sources",
    "tracks",
    "slices",
    "ops",
    "device_work",
    "launches",
    "flows",
    "counters",
    "instants",
    "memory",
    "unfinished",
    "attributes",
)
"""The views that become files; ``kernels`` is a part of device_work, strings are in place."""

# A spreadsheet takes a cell that begins so for a formula, and runs it.
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


@dataclass(frozen=True)
class ExportedFile:
    """One file that was written."""

    path: Path
    size_bytes: int
    num_rows: int
    """Rows of a table, or events of a trace."""
    num_args_left_out: int = 0
    """Events of a trace whose args were damaged beyond reading."""

    def to_json(self) -> dict[str, Any]:
        """The entry in a JSON document."""
        return {
            "path": str(self.path),
            "size_bytes": self.size_bytes,
            "num_rows": self.num_rows,
            "num_args_left_out": self.num_args_left_out,
        }


# Parquet ----------------------------------------------------------------------------------


def export_parquet(
    profile: Profile, directory: Path, *, overwrite: bool = False
) -> tuple[ExportedFile, ...]:
    """Write one zstd Parquet file a view into ``directory``, which is made at need.

    The columns are those of ``docs/reference/sql-views.md``. All files appear together, after
    the last one is complete. Other files in the directory are left alone.
    """
    if directory.exists() and not directory.is_dir():
        raise UsageError(f"{directory}: is a file", "name a directory for the Parquet files")
    targets = [directory / f"{view}.parquet" for view in PARQUET_VIEWS]
    for target in targets:
        require_absent(target, overwrite)
    directory.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(prefix=".trnscope-", dir=directory))
    try:
        with connect(profile) as session:
            counts = [
                _write_parquet(session.batches(f"SELECT * FROM {view}"), part / target.name)
                for view, target in zip(PARQUET_VIEWS, targets, strict=True)
            ]
        for target in targets:
            (part / target.name).replace(target)
    finally:
        shutil.rmtree(part)
    return tuple(
        ExportedFile(target, target.stat().st_size, count)
        for target, count in zip(targets, counts, strict=True)
    )


def _write_parquet(reader: Any, path: Path) -> int:
    import pyarrow.parquet as pq

    num_rows = 0
    with pq.ParquetWriter(path, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)
            num_rows += batch.num_rows
    return num_rows


# Chrome-trace JSON ------------------------------------------------------------------------


def export_chrome_json(
    profile: Profile, path: Path, *, overwrite: bool = False
) -> tuple[ExportedFile, ...]:
    """Write Chrome-trace JSON to ``path``; compressed if the name ends in ``.gz``.

    Of several traces each becomes a file ``rank<N>.json`` (``trace<N>.json`` where they are no
    ranks) in the directory ``path``. Opened again, the slices are the same, to the nanosecond.
    """
    traces = profile.traces
    if len(traces) == 1:
        _require_no_source(profile, [path])
        return (_export_one(traces[0], path, overwrite),)
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path}: is a file", "several traces need a directory")
    targets = [path / name for name in _file_names(profile)]
    _require_no_source(profile, targets)
    for target in targets:
        require_absent(target, overwrite)
    path.mkdir(parents=True, exist_ok=True)
    return tuple(
        _export_one(trace, target, overwrite) for trace, target in zip(traces, targets, strict=True)
    )


def _require_no_source(profile: Profile, targets: Sequence[Path]) -> None:
    """An export holds less than its source may: it must never take the source's place."""
    sources = {Path(trace.source.path).resolve() for trace in profile.traces}
    for target in targets:
        if target.resolve() in sources:
            raise UsageError(f"{target}: is the trace that is read", "name another file")


def _file_names(profile: Profile) -> Sequence[str]:
    if profile.is_multi_rank:
        return [f"rank{trace.source.rank}.json" for trace in profile.traces]
    return [f"trace{number}.json" for number in range(len(profile.traces))]


def _export_one(trace: Trace, path: Path, overwrite: bool) -> ExportedFile:
    with ExitStack() as stack:
        part = stack.enter_context(whole_file(path, overwrite=overwrite))
        writer = ChromeJsonWriter(trace, part.with_suffix(".args"))
        file = stack.enter_context(_binary_output(part, compressed=path.suffix == ".gz"))
        writer.write(file)
    return ExportedFile(path, path.stat().st_size, writer.num_events, writer.num_args_left_out)


def _binary_output(path: Path, *, compressed: bool) -> IO[bytes]:
    if not compressed:
        return path.open("wb")
    from isal import igzip

    opener: Any = igzip.open
    opened: IO[bytes] = opener(path, "wb")
    return opened


# CSV --------------------------------------------------------------------------------------


def export_csv(
    result: QueryResult, path: Path, *, overwrite: bool = False, spreadsheet_safe: bool = True
) -> ExportedFile:
    """Write a query's result as CSV (UTF-8, comma, RFC 4180 quoting, LF). NULL is empty.

    A text that a spreadsheet would run as a formula gets an apostrophe in front;
    ``spreadsheet_safe=False`` leaves every text as it is.
    """
    with ExitStack() as stack:
        part = stack.enter_context(whole_file(path, overwrite=overwrite))
        file = stack.enter_context(part.open("w", encoding="utf-8", errors="replace", newline=""))
        write_csv(result, file, spreadsheet_safe=spreadsheet_safe)
    return ExportedFile(path, path.stat().st_size, len(result.rows))


def write_csv(result: QueryResult, file: IO[str], *, spreadsheet_safe: bool = True) -> None:
    """Write a query's result as CSV to an open text file."""
    for row in chain((result.columns,), result.rows):
        file.write(_csv_line([_cell(value, spreadsheet_safe) for value in row]))


def _csv_line(cells: Sequence[str]) -> str:
    if len(cells) == 1 and not cells[0]:
        return '""\n'  # an empty line would be no row
    return ",".join(map(_quoted, cells)) + "\n"


def _quoted(cell: str) -> str:
    # The csv module leaves a lone carriage return bare in some releases of Python.
    if any(mark in cell for mark in ',"\r\n'):
        return '"' + cell.replace('"', '""') + '"'
    return cell


def _cell(value: Any, spreadsheet_safe: bool) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float | Decimal):
        return str(value)
    if isinstance(value, list | tuple | dict):
        value = json.dumps(value, default=str)
    text = value.hex() if isinstance(value, bytes) else str(value)
    if spreadsheet_safe and text.startswith(_FORMULA_STARTS):
        return f"'{text}"
    return text
