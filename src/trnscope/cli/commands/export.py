"""``trnscope export``: a trace as files that other programs read."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trnscope.cli.options import Debug, Json, Paths
from trnscope.errors import UsageError

if TYPE_CHECKING:
    from trnscope.report.export import ExportedFile
    from trnscope.store.profile import Profile


class ExportFormat(str, Enum):
    """Choices of ``--to``."""

    PARQUET = "parquet"
    CHROME = "chrome"
    CSV = "csv"


def export(
    paths: Paths,
    to: Annotated[
        ExportFormat,
        typer.Option(
            "--to", help="Parquet tables, Chrome-trace JSON, or the rows of a query as CSV."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="PATH",
            help="A folder for parquet (and for several traces as chrome), else a file; a name "
            "that ends in .gz is compressed.",
        ),
    ],
    query: Annotated[
        str | None,
        typer.Option("--query", metavar="SQL", help="For csv: the query whose rows to write."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that exist.")
    ] = False,
    raw: Annotated[
        bool,
        typer.Option("--raw", help="For csv: leave texts alone that a spreadsheet would run."),
    ] = False,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Write a trace to files that other programs read.

    \b
    Example:
      trnscope export trace.json --to parquet --out tables
      trnscope export rank0.json --to chrome --out whole.json.gz
      trnscope export trace.json --to csv --out ops.csv --query "SELECT * FROM ops"
    """
    from trnscope.cli.inputs import open_profile
    from trnscope.cli.output import print_json, print_lines, print_warning
    from trnscope.report.exported import exported_lines
    from trnscope.report.marks import incomplete_reason

    if (to is ExportFormat.CSV) != (query is not None):
        raise UsageError("--query and --to csv belong together", 'see "trnscope export --help"')
    profile = open_profile(paths)
    files = _write(profile, to, out, query, overwrite=overwrite, raw=raw)
    reason = incomplete_reason(profile)
    if reason is not None:
        print_warning(f"incomplete: {reason}")
    if as_json:
        print_json({"schema": 1, "files": [file.to_json() for file in files]})
    else:
        print_lines(exported_lines(files))


def _write(
    profile: Profile,
    to: ExportFormat,
    out: Path,
    query: str | None,
    *,
    overwrite: bool,
    raw: bool,
) -> tuple[ExportedFile, ...]:
    from trnscope.report.export import export_chrome_json, export_csv, export_parquet
    from trnscope.store.sql import connect

    if to is ExportFormat.PARQUET:
        return export_parquet(profile, out, overwrite=overwrite)
    if to is ExportFormat.CHROME:
        return export_chrome_json(profile, out, overwrite=overwrite)
    with connect(profile) as session:
        result = session.query(query or "")
    return (export_csv(result, out, overwrite=overwrite, spreadsheet_safe=not raw),)
