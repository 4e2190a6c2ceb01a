"""``trnscope estimate``: what a step of a script would take on a Trainium instance."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trnscope.cli.options import Debug, Json


def estimate(
    script: Annotated[
        str, typer.Argument(metavar="SCRIPT", help="A Python script that runs on device 'neuron'.")
    ],
    args: Annotated[
        list[str] | None, typer.Argument(metavar="ARGS", help="What the script is given.")
    ] = None,
    instance: Annotated[
        str,
        typer.Option(
            "--instance", metavar="TYPE", help="Instance type, or a chip for its smallest one."
        ),
    ] = "trn2.48xlarge",
    lnc: Annotated[
        int | None,
        typer.Option(
            "--lnc",
            metavar="N",
            help="Physical NeuronCores for each device. [default: the instance's]",
        ),
    ] = None,
    dp: Annotated[
        int,
        typer.Option("--dp", min=1, metavar="N", help="Data parallel: copies of the model."),
    ] = 1,
    fsdp: Annotated[
        int,
        typer.Option(
            "--fsdp", min=1, metavar="N", help="Fully sharded: cores that share one copy."
        ),
    ] = 1,
    tp: Annotated[
        int,
        typer.Option(
            "--tp", min=1, metavar="N", help="Tensor parallel: cores that share each layer."
        ),
    ] = 1,
    steps: Annotated[int, typer.Option("--steps", min=1, metavar="N", help="Steps to record.")] = 1,
    warmup: Annotated[
        int, typer.Option("--warmup", min=0, metavar="N", help="Steps to skip first.")
    ] = 1,
    tokens: Annotated[
        int | None,
        typer.Option(
            "--tokens",
            min=1,
            metavar="N",
            help="Tokens of a step on one core. [default: by the model's first argument]",
        ),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option("--samples", min=1, metavar="N", help="Samples, likewise."),
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", "-o", metavar="FOLDER", help="Where to put the step's timeline."),
    ] = Path("trnscope-out/estimate"),
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Estimate a step of a script on a Trainium instance: time, memory, MFU, what binds it.

    The script runs on a simulated device without computing values, so a model may be too large
    for this machine; it is ended after the recorded steps. All figures are simulated. Options
    for trnscope stand before the script. With --json the document is the last line of output.

    \b
    Example:
      trnscope estimate train.py
      trnscope estimate --fsdp 8 --dp 4 train.py --batch 1
      trnscope estimate --tp 8 --dp 8 train.py
      trnscope estimate --instance trn1.32xlarge --json infer.py
    """
    from trnscope.cli.output import print_compact_json, print_lines, text_width
    from trnscope.estimate.layout import Layout
    from trnscope.estimate.lines import estimate_lines
    from trnscope.estimate.options import EstimateOptions
    from trnscope.estimate.run import estimate_script
    from trnscope.report.view import View

    layout = Layout(dp, fsdp, tp)
    result = estimate_script(
        EstimateOptions(
            script,
            tuple(args or ()),
            instance,
            lnc,
            layout,
            steps,
            warmup,
            tokens,
            samples,
            out,
        )
    )
    if as_json:
        print_compact_json(result.to_json())
        return
    view = View(width=text_width(), simulated=result.recorded.hardware_model)
    print_lines(estimate_lines(result, view))
