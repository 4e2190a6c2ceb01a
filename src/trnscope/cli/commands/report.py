"""``trnscope report``: a profile as one HTML file to send to somebody."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trnscope.cli.options import Debug, Json, Paths


def report(
    paths: Paths,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The HTML file to write.")
    ] = Path("report.html"),
    redact: Annotated[
        bool,
        typer.Option("--redact", help="Leave out folders, and the names of this user and host."),
    ] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that exists.")
    ] = False,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Write what the Explorer shows into one file that opens in any browser.

    Overview, ops, kernels, memory and roofline are in it, with no server and no network. It is at
    most 5 MB; rows that did not fit are counted in it. The timeline needs trnscope open.

    \b
    Example:
      trnscope report trace.json
      trnscope report runs/today --out today.html --redact
    """
    from trnscope.cli.inputs import open_profile
    from trnscope.cli.output import print_json
    from trnscope.report.output_file import require_absent, whole_file
    from trnscope.server.report_file import report_html

    require_absent(out, overwrite)
    text = report_html(open_profile(paths), redact=redact)
    with whole_file(out, overwrite=overwrite) as part:
        part.write_text(text, "utf-8")
    size_bytes = len(text.encode())
    if as_json:
        print_json({"schema": 1, "path": str(out), "size_bytes": size_bytes})
    else:
        typer.echo(f"Report: {out} ({size_bytes / 1e6:.1f} MB)")
