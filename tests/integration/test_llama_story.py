"""The Llama of the examples: its edits keep the numbers, and the story follows the findings."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("torch")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "llama"


@pytest.fixture(scope="module")
def story() -> ModuleType:
    spec = importlib.util.spec_from_file_location("llama_story", EXAMPLES / "story.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # A dataclass looks its own module up.
    sys.modules["llama_story"] = module
    spec.loader.exec_module(module)
    return module


def trained(*options: str) -> str:
    command = [sys.executable, str(EXAMPLES / "train.py"), "--steps", "6", *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def losses(output: str) -> list[float]:
    return [float(loss) for loss in re.findall(r"loss ([\d.]+)", output)]


def test_edits_keep_the_losses() -> None:
    first = losses(trained())
    assert len(first) == 7 and first[0] == pytest.approx(3.7, abs=0.3) and first[-1] < first[0]
    assert losses(trained("--tokenize-once")) == first
    fused = losses(trained("--tokenize-once", "--fused-optimizer", "--log-every", "5"))
    # Every fifth step is logged, and the last loss.
    assert fused == pytest.approx([first[0], first[5], first[6]], abs=2e-4)


def test_the_script_says_how_long_a_step_takes(story: ModuleType) -> None:
    assert story.step_ms(("--tokenize-once",), 4) > 0


def test_the_edit_of_the_first_finding_that_has_one_is_chosen(story: ModuleType) -> None:
    findings = [
        story.Finding("CA02", "warm-up", 9.0),
        story.Finding("OP02", "optimizer", 5.0),
        story.Finding("IN03", "samples", 3.0),
    ]
    finding, edit = story.choose(findings, list(story.EDITS))
    assert (finding.code, edit.option) == ("OP02", "--fused-optimizer")
    rest = [one for one in story.EDITS if one.option != "--fused-optimizer"]
    assert story.choose(findings, rest)[1].option == "--tokenize-once"
    assert story.choose(findings[:1], list(story.EDITS)) is None


def test_every_edit_answers_rules_that_exist(story: ModuleType) -> None:
    from trnscope.advisor.registry import find_rule

    for edit in (*story.EDITS, *story.NEURON_EDITS):
        for code in edit.answers:
            assert find_rule(code).code == code


def test_what_is_slower_is_not_kept(story: ModuleType) -> None:
    finding = story.Finding("OP02", "optimizer", 5.0)
    assert story.Turn(finding, story.EDITS[1], 10.0, 9.0).kept
    assert not story.Turn(finding, story.EDITS[1], 10.0, 9.9).kept
