"""Arguments that stand on the wrong side of the script."""

from __future__ import annotations

from trnscope.cli.commands.run import own_options
from trnscope.cli.misplaced import misplaced


def hints(*args: str, simulated: bool = False) -> list[str]:
    return list(misplaced(args, own_options(), simulated=simulated))


def test_an_option_of_ours_after_the_script_is_told() -> None:
    (hint,) = hints("--epochs", "1", "--stack", "3")
    assert hint.startswith("--stack stands after the script")
    (hint,) = hints("--max-seconds=3")
    assert hint.startswith("--max-seconds stands after")
    assert hints("--epochs", "1", "-m", "stack") == []


def test_the_device_neuron_needs_to_be_simulated() -> None:
    for arg in ("neuron", "neuron:0", "--place=neuron"):
        (hint,) = hints(arg)
        assert "--device sim:trn2 before the script" in hint
        assert hints(arg, simulated=True) == []
