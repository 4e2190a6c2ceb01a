"""``trnscope run``: profiles a script as it is and says where its steps went."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, get_type_hints

import typer

from trnscope.cli.options import Debug, Json

SETTINGS = {"allow_interspersed_args": False}
"""For ``app.command``: what follows the script belongs to the script."""


class StepsFrom(str, Enum):
    """Choices of ``--steps-by``; the same as those of the recorder, loaded only when needed."""

    AUTO = "auto"
    OPTIMIZER = "optimizer"
    FORWARD = "forward"
    TIME = "time"


def run(
    script: Annotated[
        str,
        typer.Argument(
            metavar="SCRIPT",
            help="A Python script, a module with --module, or a program such as torchrun.",
        ),
    ],
    args: Annotated[
        list[str] | None, typer.Argument(metavar="ARGS", help="What the script is given.")
    ] = None,
    module: Annotated[
        bool, typer.Option("--module", "-m", help="SCRIPT is a module's name, as in python -m.")
    ] = False,
    steps: Annotated[int, typer.Option("--steps", min=1, metavar="N", help="Steps to record.")] = 8,
    warmup: Annotated[
        int | None,
        typer.Option(
            "--warmup", min=0, metavar="N", help="Steps to skip first. [default: until they settle]"
        ),
    ] = None,
    max_seconds: Annotated[
        float,
        typer.Option("--max-seconds", metavar="SECONDS", help="Stop recording after so long."),
    ] = 30.0,
    steps_by: Annotated[
        StepsFrom,
        typer.Option(
            "--steps-by",
            help="What ends a step: the optimizer's step, the outermost module call; "
            "or record for a time, without steps.",
        ),
    ] = StepsFrom.AUTO,
    stack: Annotated[
        bool, typer.Option("--stack", help="Record Python stacks too (slower).")
    ] = False,
    shapes: Annotated[bool, typer.Option("--shapes", help="Record input shapes too.")] = False,
    memory: Annotated[
        bool, typer.Option("--memory", help="Record allocations and frees too.")
    ] = False,
    gzip: Annotated[bool, typer.Option("--gzip", help="Compress the trace.")] = False,
    device: Annotated[
        str | None,
        typer.Option(
            "--device",
            metavar="DEVICE",
            help="Run on a simulated Trainium: sim:trn2, sim:trn1, sim:trn3, sim:inf2, or an "
            "instance type as in sim:trn2.48xlarge. All times are then simulated.",
        ),
    ] = None,
    lnc: Annotated[
        int | None,
        typer.Option(
            "--lnc",
            metavar="N",
            help="Simulated: physical NeuronCores for each device. [default: the instance's]",
        ),
    ] = None,
    numerics: Annotated[
        bool,
        typer.Option(
            "--numerics/--no-numerics",
            help="Simulated: compute values, or leave every one zero to be fast.",
        ),
    ] = True,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FOLDER", help="Where to put the traces. [default: trnscope-out]"
        ),
    ] = None,
    as_json: Json = False,
    _debug: Debug = False,
) -> int:
    """Profile a script, unchanged, and say where its steps went.

    Options for trnscope stand before the script; what follows it is the script's own. The
    exit code is the script's own too. With --json the document is the last line of output.

    The first use of a simulated device compiles it for the installed torch, for a minute or two.

    \b
    Example:
      trnscope run train.py --epochs 1
      trnscope run --steps 4 --stack -m package.train
      trnscope run torchrun --nproc-per-node 2 train.py
      trnscope run --device sim:trn2 train.py
    """
    from trnscope.capture.options import CaptureSettings, RunOptions, StepsBy
    from trnscope.capture.run import run_script
    from trnscope.cli.capture_report import report
    from trnscope.cli.misplaced import misplaced
    from trnscope.cli.output import print_warning

    settings = CaptureSettings(
        steps=steps,
        warmup=warmup,
        max_seconds=max_seconds,
        steps_by=StepsBy(steps_by.value),
        with_stack=stack,
        shapes=shapes,
        memory=memory,
        gzip=gzip,
        device=device,
        lnc=lnc,
        numerics=numerics,
    )
    result = run_script(RunOptions(script, tuple(args or ()), module, out, settings))
    code = report(result, as_json=as_json)
    if result.ending is not None and not result.traces:
        for hint in misplaced(args or (), own_options(), simulated=device is not None):
            print_warning(hint)
    return code


def own_options() -> frozenset[str]:
    """The long options of this command."""
    kinds = get_type_hints(run, include_extras=True).values()
    infos = [one for kind in kinds for one in getattr(kind, "__metadata__", ())]
    # Where the value's own default is the function's, the first name stands in its place.
    names = [str(name) for one in infos for name in (one.default, *(one.param_decls or ()))]
    return frozenset(part for name in names for part in name.split("/") if part.startswith("--"))
