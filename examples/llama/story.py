"""Makes train.py faster by doing what `trnscope explain` says, and measures each edit.

make demo-llama                     # the CPU, then a simulated Trainium; under ten minutes
python story.py --page PAGE.md      # writes the story down as well

Each turn records train.py, asks for the first finding that an edit of train.py answers, and times
the script without recording before and after that edit, in alternation. What is not faster is
undone. The model's code is never touched.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

HEAD = """# How far does following the doctor get?

Written by `python examples/llama/story.py --page docs/llama.md`; `make demo-llama` tells it anew.

[`examples/llama/train.py`](../examples/llama/train.py) trains a small Llama the way people first
write it: text is tokenized when a sample is asked for, the optimizer is the default one, the
accuracy is counted in Python at every step, and norm, attention and activation are written out
([`first_model.py`](../examples/llama/first_model.py)). Each turn below records it, takes the first
finding of `trnscope explain` that an edit of `train.py` answers, and times the script without
recording before and after that edit, in alternation. What is not faster is undone. The model's code
stays as it is. Only the two times of one turn compare with one another: between turns, what else
the machine does may change.
"""
SCRIPT = Path(__file__).with_name("train.py")
ROUNDS = 3
"""Runs of either version of the script. The least of their mean steps counts: what other programs
do on the machine only makes steps longer."""
LEAST_GAIN = 0.02
"""An edit is kept if it takes at least this share off a step; less may be noise. Ours."""
STEPS = 40
DEVICE = "sim:trn2"


@dataclass(frozen=True)
class Edit:
    """One change of train.py, which an option of it makes."""

    option: str
    line: str
    """What changes in the code."""
    answers: tuple[str, ...]
    """Codes of the rules that it is an answer to."""


COMPILED = ("NE02", "HO02", "OP01", "OP03", "OP04", "OP08")
EDITS = (
    Edit(
        "--tokenize-once", "self.tokens = [tokenizer(text) for text in documents]", ("IN02", "IN03")
    ),
    Edit("--fused-optimizer", "torch.optim.AdamW(..., fused=True)", ("OP02",)),
    Edit("--log-every=20", "if step % 20 == 0: print(...)", ("HO01", "HO03", "HO06")),
    Edit("--compile=inductor", "run = torch.compile(model)", COMPILED),
)
NEURON_EDITS = (
    Edit("--compile=neuron", 'run = torch.compile(model, backend="neuron")', COMPILED),
    *EDITS[1:3],
)


@dataclass(frozen=True)
class Finding:
    """What trnscope explain put in a place of its list."""

    code: str
    title: str
    likely_ms: float


@dataclass(frozen=True)
class Turn:
    """One edit, why, and what came of it."""

    finding: Finding
    edit: Edit
    before_ms: float
    after_ms: float

    @property
    def kept(self) -> bool:
        """Whether the steps became shorter."""
        return self.after_ms <= (1 - LEAST_GAIN) * self.before_ms


def main() -> None:
    """Tell the story."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--page", type=Path, help="write the story to this file as well")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of a timed run")
    options = parser.parse_args()
    lines = []
    with TemporaryDirectory() as folder:
        for line in story(Path(folder), options.steps):
            print(line, flush=True)
            lines.append(line)
    if options.page:
        options.page.write_text("\n".join([HEAD, *lines]) + "\n", "utf-8")


def story(folder: Path, steps: int) -> Iterator[str]:
    """Both halves, line by line."""
    yield "## On the CPU"
    yield from on_cpu(folder, steps)
    yield ""
    yield f"## On a simulated Trainium ({DEVICE})"
    yield from on_neuron(folder)


def on_cpu(folder: Path, steps: int) -> Iterator[str]:
    """Follow the findings until none is left that an edit answers."""
    options: tuple[str, ...] = ()
    turns: list[Turn] = []
    while True:
        findings, answer = explain(folder / f"cpu{len(turns)}", (), options)
        if not turns:
            yield from quoted(answer)
        tried = {turn.edit.option for turn in turns}
        chosen = choose(findings, [edit for edit in EDITS if edit.option not in tried])
        if chosen is None:
            break
        finding, edit = chosen
        yield f"- {finding.code}: {finding.title}. About {finding.likely_ms:.1f} ms of a step."
        yield f"  Edit: `{edit.line}`"
        before, after = times(options, (*options, edit.option), steps)
        turns.append(Turn(finding, edit, before, after))
        yield f"  Step without recording: {before:.1f} ms before, {after:.1f} ms after."
        if turns[-1].kept:
            options = (*options, edit.option)
        else:
            yield "  Not faster: undone."
    yield "- No finding is left that an edit of train.py answers."
    first, last = times((), options, steps)
    yield f"All edits together: {first:.1f} ms to {last:.1f} ms, {1 - last / first:.0%} less."


def on_neuron(folder: Path) -> Iterator[str]:
    """The first finding's edit on the simulated device, where times are virtual and exact."""
    options: tuple[str, ...] = ("--device=neuron", "--tokenize-once")
    findings, answer = explain(folder / "neuron0", ("--device", DEVICE), options)
    yield from quoted(answer)
    chosen = choose(findings, list(NEURON_EDITS))
    if chosen is None:
        yield "- No finding that an edit of train.py answers."
        return
    finding, edit = chosen
    yield f"- {finding.code}: {finding.title}. About {finding.likely_ms:.1f} ms of a step."
    yield f"  Edit: `{edit.line}`"
    before = mean_step_ms(folder / "neuron0")
    options = (*options, edit.option)
    record(folder / "neuron1", ("--device", DEVICE), options)
    after = mean_step_ms(folder / "neuron1")
    yield f"  Simulated step: {before:.1f} ms before, {after:.1f} ms after."


def explain(
    out: Path, run: tuple[str, ...], options: tuple[str, ...]
) -> tuple[list[Finding], list[str]]:
    """Record the script and ask; the findings, and the first five lines for people."""
    record(out, run, options)
    document = json.loads(trnscope("explain", str(out), "--json"))
    found = [
        Finding(
            one["code"],
            one["title"],
            one["recoverable_ns_per_step"][1] / 1e6,
        )
        for one in document["findings"]
        if one["recoverable_ns_per_step"] is not None
    ]
    return found, trnscope("explain", str(out)).splitlines()[:5]


def record(out: Path, run: tuple[str, ...], options: tuple[str, ...]) -> None:
    """Record a few steps of the script."""
    trnscope("run", *run, "--out", str(out), str(SCRIPT), *options)


def mean_step_ms(profile: Path) -> float:
    """The mean of the recorded steps."""
    steps = json.loads(trnscope("steps", str(profile), "--json"))["steps"]
    durations = [step["duration_ns"] for step in steps]
    return sum(durations) / len(durations) / 1e6


def choose(findings: list[Finding], edits: list[Edit]) -> tuple[Finding, Edit] | None:
    """The first finding that one of these edits answers."""
    for finding in findings:
        for edit in edits:
            if finding.code in edit.answers:
                return finding, edit
    return None


def times(first: tuple[str, ...], second: tuple[str, ...], steps: int) -> tuple[float, float]:
    """Mean step of either version in ms, the least of runs in alternation."""
    pairs = [(step_ms(first, steps), step_ms(second, steps)) for _ in range(ROUNDS)]
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


def step_ms(options: tuple[str, ...], steps: int) -> float:
    """What train.py says of its steps, ms."""
    output = run_command(sys.executable, str(SCRIPT), f"--steps={steps}", *options)
    found = re.search(r"mean step ([\d.]+) ms", output)
    if found is None:
        raise SystemExit(f"train.py did not say how long a step takes:\n{output}")
    return float(found.group(1))


def trnscope(*arguments: str) -> str:
    """What a command of trnscope prints."""
    return run_command(sys.executable, "-m", "trnscope", *arguments)


def run_command(*command: str) -> str:
    """The standard output of a command, which must not fail."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr}")
    return done.stdout


def quoted(lines: list[str]) -> Iterator[str]:
    """Lines of a terminal, as Markdown shows them."""
    yield "```text"
    yield from lines
    yield "```"


if __name__ == "__main__":
    main()
