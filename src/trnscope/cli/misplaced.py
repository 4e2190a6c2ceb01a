"""What a script that failed was given by mistake: trnscope's own options, a simulated device."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

_NEURON = "neuron"


def misplaced(args: Sequence[str], own: Collection[str], *, simulated: bool) -> Iterator[str]:
    """What to try, for the arguments after the script; ``own`` are the options of ``run``."""
    options = [name for arg in args if (name := arg.split("=")[0]) in own]
    if options:
        yield (
            f"{options[0]} stands after the script, so the script was given it; if it is meant for "
            "trnscope, write it before the script"
        )
    if not simulated and any(_is_neuron(arg) for arg in args):
        yield (
            "the script was given the device neuron, which this run does not have; to simulate "
            "it, write --device sim:trn2 before the script"
        )


def _is_neuron(arg: str) -> bool:
    return arg.split("=")[-1].split(":")[0] == _NEURON
