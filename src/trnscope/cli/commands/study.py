"""``trnscope study``: a question about performance, measured several ways side by side."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from trnscope.cli.options import Debug, Json


class Topic(str, Enum):
    """What there are studies of."""

    RMSNORM = "rmsnorm"


def study(
    topic: Annotated[Topic, typer.Argument(metavar="TOPIC", help="The study: rmsnorm.")],
    device: Annotated[
        str,
        typer.Option(
            "--device", metavar="DEVICE", help="cpu, cuda, neuron, or a simulated one: sim:trn2."
        ),
    ] = "sim:trn2",
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where to put the traces.")
    ] = Path("trnscope-out/rmsnorm"),
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Compute RMSNorm op by op, with torch.rms_norm and with torch.compile, and compare.

    Each way runs in a process of its own under torch's profiler. Shown are torch's own tables,
    and executions, traffic, device and host time of one call side by side. Needs torch.

    \b
    Example:
      trnscope study rmsnorm
      trnscope study rmsnorm --device cpu
    """
    from trnscope.cli.output import print_json, print_lines, text_width
    from trnscope.report.view import View
    from trnscope.study.rmsnorm.lines import study_lines
    from trnscope.study.rmsnorm.plan import Way
    from trnscope.study.rmsnorm.run import study_rmsnorm

    def progress(way: Way) -> None:
        if not as_json:
            typer.echo(f"Measuring {topic.value} on {device}: {way.value} ...", err=True)

    result = study_rmsnorm(device, out, progress)
    if as_json:
        print_json(result.to_json())
        return
    print_lines(study_lines(result, View(width=text_width(), simulated=result.simulated_by)))
