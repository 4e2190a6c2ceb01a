"""Measure trnscope against other readers on generated traces, and check every answer.

``make bench`` (``python -m benchmarks``) measures at full size and writes the tables of
``docs/benchmarks.md``; ``python -m benchmarks --quick`` only checks answers on 100 MB.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import platform
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks import readers
from benchmarks.expected import Expected, load_expected
from benchmarks.process import CommandFailed, ProcessRun
from benchmarks.results import Goal, Results, Row, median

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
GZIP_LEVEL = 6


@dataclass(frozen=True)
class Plan:
    """Sizes in megabytes, and rounds."""

    main: int = 2000
    slice: int = 250
    large: int | None = 6000
    rounds: int = 3
    with_hta: bool = True


QUICK = Plan(main=100, slice=20, large=None, rounds=1, with_hta=False)


@dataclass(frozen=True)
class Input:
    """A generated trace."""

    name: str
    path: Path
    expected: Expected


def prepare(megabytes: int) -> Input:
    """Generate a trace (in another process, see :mod:`benchmarks.process`), or reuse it."""
    say(f"preparing {megabytes} MB")
    subprocess.run(
        [sys.executable, "-m", "benchmarks.generate", str(megabytes)],
        check=True,
        cwd=Path(__file__).parents[1],
        stdout=subprocess.DEVNULL,
    )
    path = readers.DATA / f"k{megabytes}.json"
    expected = load_expected(path)
    if expected is None:
        raise FileNotFoundError(path)
    warm(path)
    return Input(path.stem, path, expected)


def warm(path: Path) -> None:
    """Read a file into the page cache."""
    block = bytearray(1 << 20)
    with path.open("rb", buffering=0) as file:
        while file.readinto(block):
            pass


def compressed(trace: Input) -> Input:
    """The same trace as one gzip member at level 6."""
    path = trace.path.with_name(trace.path.name + ".gz")
    if not path.exists() or path.stat().st_mtime < trace.path.stat().st_mtime:
        say(f"compressing {trace.path.name}")
        packer = zlib.compressobj(GZIP_LEVEL, wbits=31)
        unfinished = path.with_suffix(".partial")
        with trace.path.open("rb") as source, unfinished.open("wb") as target:
            while block := source.read(1 << 20):
                target.write(packer.compress(block))
            target.write(packer.flush())
        unfinished.rename(path)
    warm(path)
    return Input(f"{trace.name}.gz", path, trace.expected)


class Measurement:
    """Runs readers in turn, and keeps every figure by reader and file."""

    def __init__(self) -> None:
        self._runs: dict[tuple[str, str], list[ProcessRun]] = {}
        self._inputs: dict[str, Input] = {}

    def fresh(self, trace: Input) -> None:
        """Ours with an empty cache: read, index, answer."""
        readers.clear_cache()
        self._keep("trnscope ops", trace, readers.run_ops(trace.path, trace.expected))

    def again(self, trace: Input) -> None:
        """Ours with the index in place."""
        run = readers.run_ops(trace.path, trace.expected)
        self._keep("trnscope ops, again", trace, run)

    def msgspec(self, way: str, trace: Input) -> None:
        """The msgspec reader."""
        run = readers.run_msgspec(way, trace.path, trace.expected)
        self._keep(f"msgspec, {way}", trace, run)

    def hta(self, trace: Input) -> None:
        """HTA 0.5.0."""
        self._keep("HTA 0.5.0", trace, readers.run_hta(trace.path, trace.expected))

    def _keep(self, reader: str, trace: Input, run: ProcessRun) -> None:
        self._inputs[trace.name] = trace
        self._runs.setdefault((reader, trace.name), []).append(run)
        times = f"{run.seconds:.2f} s, CPU {run.cpu_seconds:.2f} s"
        say(f"{reader}, {trace.name}: {times}, peak {run.peak_bytes / 1e6:.0f} MB")

    def seconds(self, reader: str, trace: Input) -> list[float]:
        """Wall times, one a round."""
        return [run.seconds for run in self._runs[reader, trace.name]]

    def peak_bytes(self, reader: str, trace: Input) -> int:
        """Highest peak over the rounds."""
        return max(run.peak_bytes for run in self._runs[reader, trace.name])

    def rate(self, reader: str, trace: Input) -> float:
        """MB of JSON a second, by the median wall time."""
        return trace.expected.num_bytes / 1e6 / median(self.seconds(reader, trace))

    def ratio(self, slower: str, faster: str, trace: Input) -> float:
        """Median over the rounds of the ratio of wall times within a round."""
        pairs = zip(self.seconds(slower, trace), self.seconds(faster, trace), strict=True)
        return median([theirs / ours for theirs, ours in pairs])

    def rows(self) -> list[Row]:
        """One row for each reader and file."""
        return [
            Row(
                reader,
                name,
                self._inputs[name].expected.num_bytes,
                [run.seconds for run in runs],
                [run.cpu_seconds for run in runs],
                max(run.peak_bytes for run in runs),
            )
            for (reader, name), runs in self._runs.items()
        ]


def measure(plan: Plan) -> Results:
    """All readers, in turn, round after round."""
    main, small = prepare(plan.main), prepare(plan.slice)
    packed = compressed(main)
    measured = Measurement()
    opened: list[readers.OpenedRun] = []
    index_bytes = 0
    turns: list[Callable[[], None]] = [
        partial(measured.msgspec, way, main) for way in readers.MSGSPEC_WAYS
    ]
    if plan.with_hta:
        readers.hta_python()
        turns.append(partial(measured.hta, small))
    for number in range(plan.rounds):
        say(f"round {number + 1} of {plan.rounds}")
        measured.fresh(small)
        measured.fresh(packed)
        measured.fresh(main)
        index_bytes = readers.index_bytes()
        measured.again(main)
        opened.append(readers.run_opened(main.path, main.expected))
        for turn in turns:
            turn()
    large = prepare(plan.large) if plan.large else None
    if large:
        measured.fresh(large)
    readers.clear_cache()
    results = Results(machine_facts(), plan.rounds, measured.rows())
    results.notes = notes(main, packed, index_bytes, opened)
    over_cores = measured.ratio("msgspec, processes", "trnscope ops", main)
    results.notes.append(
        f"The goal compares with one msgspec process, whichever of its ways is faster; against "
        f"the same reader spread over all cores the ratio on {main.name} is {over_cores:.1f}x."
    )
    if plan is not QUICK:
        results.goals = goals(measured, opened, main, small, packed, large)
    return results


def notes(
    main: Input, packed: Input, index_bytes: int, opened: list[readers.OpenedRun]
) -> list[str]:
    """Facts that the table has no column for."""
    size = main.expected.num_bytes
    group_by = median([run.group_by_seconds for run in opened]) * 1e3
    reopen = median([run.open_seconds for run in opened]) * 1e3
    peak = max(run.process.peak_bytes for run in opened) / 1e6
    return [
        f"{main.name} holds {main.expected.num_events:,} events, of which "
        f"{main.expected.num_slices:,} slices in {len(main.expected.groups)} groups, over "
        f"{main.expected.num_steps} steps; our index of it takes {index_bytes / 1e6:.0f} MB "
        f"({100 * index_bytes / size:.0f} % of the JSON).",
        f"{packed.name} is {packed.path.stat().st_size / 1e6:.0f} MB (gzip level {GZIP_LEVEL}).",
        f"In a process of its own, opening the indexed {main.name} takes {reopen:.1f} ms and a "
        f"group-by of its slices (count and sum by category and name) {group_by:.0f} ms; that "
        f"process peaks at {peak:.0f} MB, mapped index pages included.",
        "Every answer of every reader was compared with the generator's, group by group.",
    ]


def goals(
    measured: Measurement,
    opened: list[readers.OpenedRun],
    main: Input,
    small: Input,
    packed: Input,
    large: Input | None,
) -> list[Goal]:
    """The figures that are asked for."""
    ours, hta = "trnscope ops", "HTA 0.5.0"
    fastest = min(
        (f"msgspec, {way}" for way in readers.MSGSPEC_SINGLE),
        key=lambda reader: median(measured.seconds(reader, main)),
    )
    ratio = measured.ratio(fastest, ours, main)
    out = [Goal(f"faster than {fastest}, {main.name}", ratio, 4, 8, "x", True)]
    rate = measured.rate(hta, small)
    whole, same = measured.rate(ours, main) / rate, measured.rate(ours, small) / rate
    out += [
        Goal(f"MB/s on {main.name} over HTA's on {small.name}", whole, 60, 120, "x", True),
        Goal(f"MB/s on {small.name} over HTA's on {small.name}", same, 60, 120, "x", True),
        Goal(f"peak memory, {main.name}", _peak(measured, main), 700, None, " MB", False),
        Goal(f".gz, {packed.name}", measured.rate(ours, packed), 400, None, " MB/s", True),
        Goal("reopen", median([run.open_seconds for run in opened]), 0.3, None, " s", False),
        Goal(
            f"group-by over {main.expected.num_events / 1e6:.1f} M events",
            median([run.group_by_seconds for run in opened]) * 1e3,
            150,
            None,
            " ms",
            False,
        ),
    ]
    if large:
        out.append(
            Goal(f"peak memory, {large.name}", _peak(measured, large), 1000, None, " MB", False)
        )
    return out


def _peak(measured: Measurement, trace: Input) -> float:
    return measured.peak_bytes("trnscope ops", trace) / 1e6


def machine_facts() -> list[tuple[str, str]]:
    """What the figures depend on."""
    info = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    models = [line.partition(":")[2].strip() for line in info.splitlines() if "model name" in line]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    packages = ("trnscope", "numpy", "pyarrow", "isal", "msgspec")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    return [
        ("cores", f"{os.cpu_count()} ({models[0] if models else platform.machine()})"),
        ("memory", f"{memory / 1e9:.0f} GB"),
        ("system", f"{platform.system()} {platform.release()}, Python {platform.python_version()}"),
        ("versions", f"{versions}; HTA 0.5.0 with pandas 2"),
        ("page cache", "warm: each file was read before it is measured"),
    ]


def write_page(results: Results) -> None:
    """Put the tables between the markers of the page."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{results.markdown()}\n\n{END}{after}")


def say(text: str) -> None:
    """Progress, apart from the result."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="check answers on 100 MB, no HTA")
    arguments = parser.parse_args()
    try:
        results = measure(QUICK if arguments.quick else Plan())
    except (readers.WrongAnswer, CommandFailed) as error:
        print(f"benchmark failed: {error}", file=sys.stderr)
        return 1
    print(results.markdown())
    if not arguments.quick:
        write_page(results)
    return 0
