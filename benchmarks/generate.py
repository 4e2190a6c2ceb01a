"""Write Kineto traces of any size, and the exact answers that a reader of them must give.

``python -m benchmarks.generate 2000`` writes ``benchmarks/data/k2000.json`` (2 GB) and
``k2000.expected.json``, or does nothing when both are there. The steps of ``template.py`` are
repeated: each repeat is shifted in time, stretched by its own factor (0.9 to 1.1, from the
seed), and gets ids of its own; sections come in Kineto's order over the whole file.
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.expected import GENERATOR_VERSION, Expected, Group, load_expected
from benchmarks.template import (
    ARGS_LINE_BREAK,
    HOST_CATEGORIES,
    Event,
    Template,
    load_template,
    merged_rows,
    recorded_text,
)

DATA = Path(__file__).with_name("data")
ORIGIN_NS = 5_175_944_825_136_251
"""Time of the first repeat, relative to ``BASE_TIME_NS``."""
BASE_TIME_NS = 1_790_857_026_000_000_000
GAP_NS = 50_000
"""Pause between two repeats."""

I64 = npt.NDArray[np.int64]

_ID_KEYS = (
    "External id",
    "Ev Idx",
    "Python id",
    "Python parent id",
    "Sequence number",
    "correlation",
    "Seq",
)
_ID_FIELD = re.compile(r'"(' + "|".join(_ID_KEYS) + r')": (\d+)')
_TOKEN = re.compile("\0([a-z0-9 ]+):(\\d+)\0", re.IGNORECASE)
_SHARED_COUNTER = {"Python parent id": "Python id", "ac2g": "correlation"}


def multi_line(event: Event) -> str:
    """The event as torch 2.13's C++ writer lays it out, with tokens where repeats differ."""
    head = [f'"ph": "{event.ph}"']
    tail: list[str] = []
    if event.ph in "sf":
        head.append(f'"id": {_token(str(event.cat), event.id or 0)}')
        tail = [f'"cat": "{event.cat}"', f'"name": "{event.name}"']
    elif event.ph == "i":
        category = f'"cat": "{event.cat}",\n    ' if event.cat else ""
        head.append(f'\n    {category}"s": "{event.scope}"')
        head.append(f'"name": "{_name(event)}"')
    else:
        head += [f'"cat": "{event.cat}"'] if event.cat else []
        head.append(f'"name": "{_name(event)}"')
    place = [f'"pid": {event.pid}', f'"tid": {event.tid}']
    times = _times(event, ": ")
    place = [*times, *place] if event.ph == "M" else [*place, *times]
    text = "\n  {\n    " + ",\n    ".join(head + place + tail)
    return text + _multi_line_end(event) + "\n  },"


def _multi_line_end(event: Event) -> str:
    if event.ph in "sf":
        return '\n    , "bp": "e"' if event.ph == "f" else "\n    "
    if event.args is None:
        return "\n    "
    separator = "" if event.ph == "M" else "\n    "
    return separator + ',\n    "args": {\n      ' + _args(event) + "\n    }"


def one_line(event: Event) -> str:
    """The event as torch 2.13's Python writer lays it out, with tokens where repeats differ."""
    fields = [f'"ph":"{event.ph}"']
    if event.ph in "sf":
        fields.append(f'"id":{_token(str(event.cat), event.id or 0)}')
    elif event.cat:
        fields.append(f'"cat":"{event.cat}"')
    fields += [f'"s":"{event.scope}"'] if event.scope else []
    fields += [] if event.ph in "sf" else [f'"name":"{_name(event)}"']
    place = [f'"pid":{event.pid}', f'"tid":{event.tid}']
    times = _times(event, ":")
    fields += [*times, *place] if event.ph == "M" else [*place, *times]
    if event.ph in "sf":
        fields += [f'"cat":"{event.cat}"', f'"name":"{event.name}"']
        fields += ['"bp":"e"'] if event.ph == "f" else []
    fields += (
        [] if event.args is None else [f'"args":{{{_args(event).replace(ARGS_LINE_BREAK, ", ")}}}']
    )
    return "\n{" + ",".join(fields) + "},"


LAYOUTS: dict[str, Callable[[Event], str]] = {"kineto": multi_line, "lines": one_line}


def _token(kind: str, value: int) -> str:
    return f"\0{_SHARED_COUNTER.get(kind, kind)}:{value}\0"


def _times(event: Event, colon: str) -> list[str]:
    times = [f'"ts"{colon}\0ts us:0\0.\0ts ns:0\0']
    return times if event.dur_ns is None else [*times, f'"dur"{colon}\0dur us:0\0.\0dur ns:0\0']


def _name(event: Event) -> str:
    return re.sub(r"(ProfilerStep#)(\d+)", lambda m: m[1] + _token("step", int(m[2])), event.name)


def _args(event: Event) -> str:
    def field(found: re.Match[str]) -> str:
        return f'"{found[1]}": {_token(found[1], int(found[2]))}'

    return _ID_FIELD.sub(field, event.args or "")


class Section:
    """One section of the template as a format string and the numbers that go into it."""

    def __init__(self, events: tuple[Event, ...], layout: Callable[[Event], str]) -> None:
        self.events = events
        self._start = np.array([e.start_ns for e in events], np.int64)
        self._end = np.array([e.end_ns for e in events], np.int64)
        pieces: list[str] = []
        kinds: list[str] = []
        values: list[int] = []
        owners: list[int] = []
        for index, event in enumerate(events):
            text = layout(event)
            parts = _TOKEN.split(text.replace("%", "%%"))
            for literal, kind, value in zip(parts[::3], parts[1::3], parts[2::3], strict=False):
                pieces += [literal, "%03d" if kind.endswith(" ns") else "%d"]
                kinds.append(kind)
                values.append(int(value))
                owners.append(index)
            pieces.append(parts[-1])
        self._format = "".join(pieces).encode()
        self._values = np.array(values, np.int64)
        kind_array, owner_array = np.array(kinds), np.array(owners, np.int64)
        self.kinds = tuple(sorted(set(kinds)))
        self._slots = {kind: np.flatnonzero(kind_array == kind) for kind in self.kinds}
        self._owners = {kind: owner_array[slots] for kind, slots in self._slots.items()}

    def largest(self, kind: str) -> int:
        """The largest template value of an id."""
        slots = self._slots.get(kind)
        return 0 if slots is None or slots.size == 0 else int(self._values[slots].max())

    def times(self, scale_permille: int) -> tuple[I64, I64]:
        """Starts and durations of one repeat, from its own beginning. The map is monotone, so
        slices nest as they do in the template."""
        start = self._start * scale_permille // 1000
        return start, self._end * scale_permille // 1000 - start

    def text(self, repeat: Repeat, strides: dict[str, int]) -> bytes:
        """The events of one repeat."""
        start, dur = self.times(repeat.scale_permille)
        start = start + repeat.start_ns
        values = self._values.copy()
        by_time = {
            "ts us": start // 1000,
            "ts ns": start % 1000,
            "dur us": dur // 1000,
            "dur ns": dur % 1000,
        }
        for kind, slots in self._slots.items():
            if kind in by_time:
                values[slots] = by_time[kind][self._owners[kind]]
            else:
                values[slots] += strides[kind] * repeat.index
        return self._format % tuple(values.tolist())


@dataclass(frozen=True)
class Repeat:
    """Where and how long one repeat of the template is."""

    index: int
    start_ns: int
    scale_permille: int


class Generator:
    """Repeats the template often enough for a file of a wanted size."""

    def __init__(self, template: Template, layout: str, seed: int) -> None:
        self._template = template
        self._layout = layout
        self._seed = seed
        write = LAYOUTS[layout]
        self._sections = [Section(section, write) for section in template.sections]
        self._head = Section(template.head, write)
        self._write = write
        kinds = {kind for section in self._sections for kind in section.kinds}
        self._strides = {k: max(s.largest(k) for s in self._sections) for k in kinds}
        self._strides["step"] = template.num_steps

    def repeats(self, count: int) -> list[Repeat]:
        """The first ``count`` repeats."""
        rng = random.Random(self._seed)
        start, out = ORIGIN_NS, []
        for index in range(count):
            scale = 900 + int(201 * rng.random())
            out.append(Repeat(index, start, scale))
            start += self._template.span_ns * scale // 1000 + GAP_NS
        return out

    def _tail(self, repeats: list[Repeat]) -> tuple[Section, Repeat]:
        """The profiler's own rows: its window is that of all repeats."""
        last = repeats[-1]
        span = last.start_ns + self._template.span_ns * last.scale_permille // 1000 - ORIGIN_NS
        events = [
            replace(e, start_ns=span if e.pid == '""' else 0, dur_ns=span if e.dur_ns else None)
            for e in self._template.tail
        ]
        return Section(tuple(events), self._write), Repeat(0, ORIGIN_NS, 1000)

    def num_repeats(self, num_bytes: int) -> int:
        """How many repeats make a file of about ``num_bytes``."""
        one = Repeat(1, ORIGIN_NS, 1000)
        size = sum(len(section.text(one, self._strides)) for section in self._sections)
        return max(1, round(num_bytes / size))

    def chunks(self, repeats: list[Repeat]) -> Iterator[bytes]:
        """The file, piece by piece."""
        yield _opening(self._layout)
        yield self._head.text(Repeat(0, ORIGIN_NS, 1000), {})
        for section in self._sections:
            for repeat in repeats:
                yield section.text(repeat, self._strides)
        tail, whole = self._tail(repeats)
        yield tail.text(whole, {})[:-1]
        yield _closing(self._layout)

    def expected(self, repeats: list[Repeat], num_bytes: int) -> Expected:
        """The answers for the file of these repeats."""
        tally, calls = _Tally(), _Tally()
        merged = merged_rows(self._template.sections)
        for section, dropped in zip(self._sections, merged, strict=True):
            rows = [i for i, event in enumerate(section.events) if event.ph == "X"]
            tally.add(section, rows, repeats, self._template.num_steps)
            rows = [i for i in rows if section.events[i].cat in HOST_CATEGORIES]
            rows = [i for i in rows if i not in dropped]
            calls.add(section, rows, repeats, self._template.num_steps)
        tail, whole = self._tail(repeats)
        tally.add(tail, [i for i, e in enumerate(tail.events) if e.ph == "X"], [whole], 0)
        events_each = sum(len(section.events) for section in self._sections)
        fixed = len(self._template.head) + len(self._template.tail)
        groups = tally.groups()
        return Expected(
            generator=GENERATOR_VERSION,
            layout=self._layout,
            seed=self._seed,
            num_bytes=num_bytes,
            num_events=events_each * len(repeats) + fixed,
            num_slices=sum(group.count for group in groups),
            num_steps=self._template.num_steps * len(repeats),
            groups=groups,
            calls=calls.groups(),
        )


class _Tally:
    """Adds up slices by category and name."""

    def __init__(self) -> None:
        self._totals: dict[tuple[str, str], tuple[int, int]] = {}

    def add(self, section: Section, rows: list[int], repeats: list[Repeat], num_steps: int) -> None:
        """Count these slices of a section over the repeats."""
        durations = {r.scale_permille: section.times(r.scale_permille)[1] for r in repeats}
        for row in rows:
            event = section.events[row]
            for repeat in repeats if "ProfilerStep#" in event.name else ():
                prefix, _, number = event.name.partition("#")
                name = f"{prefix}#{int(number) + num_steps * repeat.index}"
                self._count(event, name, 1, int(durations[repeat.scale_permille][row]))
        common = [row for row in rows if "ProfilerStep#" not in section.events[row].name]
        sums = np.zeros(len(section.events), np.int64)
        for repeat in repeats:
            sums += durations[repeat.scale_permille]
        for row in common:
            event = section.events[row]
            self._count(event, event.name, len(repeats), int(sums[row]))

    def _count(self, event: Event, name: str, count: int, total_ns: int) -> None:
        key = (str(event.cat), name)
        old_count, old_total = self._totals.get(key, (0, 0))
        self._totals[key] = (old_count + count, old_total + total_ns)

    def groups(self) -> tuple[Group, ...]:
        """All groups, by category and name."""
        return tuple(
            Group(category, name, *total)
            for (category, name), total in sorted(self._totals.items())
        )


_DEVICE = (
    '{"id": 0, "name": "Bench GPU", "totalGlobalMem": 85045477376, "computeMajor": 9, '
    '"computeMinor": 0, "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, '
    '"regsPerBlock": 65536, "warpSize": 32, "sharedMemPerBlock": 49152, "numSms": 132}'
)
_DISTRIBUTED = (
    '"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8, "pg_count": 1, '
    '"pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", '
    '"pg_size": 8, "ranks": [0, 1, 2, 3, 4, 5, 6, 7]}], "nccl_version": "2.27.5"}'
)


def _opening(layout: str) -> bytes:
    text = recorded_text() if layout == "kineto" else _LINES_OPENING
    text = text[: text.index('"traceEvents": [')] + '"traceEvents": ['
    text = text.replace('"deviceProperties": []', f'"deviceProperties": [{_DEVICE}]')
    text = re.sub(r'("baseTimeNanoseconds": )\d+', rf"\g<1>{BASE_TIME_NS}", text)
    return (text + ("\n    " if layout == "kineto" else "")).encode()


_LINES_OPENING = (
    '{\n"schemaVersion": 1,\n"deviceProperties": [],\n"profile_memory": 1,\n"with_stack": 1,\n'
    '"record_shapes": 1,\n"displayTimeUnit": "ms",\n"baseTimeNanoseconds": 0,\n"traceEvents": ['
)


def _closing(layout: str) -> bytes:
    if layout == "kineto":
        return f'\n  ],{_DISTRIBUTED},"traceName": "bench.pt.trace.json" }}'.encode()
    return f'\n],\n{_DISTRIBUTED},\n"traceName": "bench.pt.trace.json"\n}}\n'.encode()


def generate(path: Path, num_bytes: int, layout: str = "kineto", seed: int = 0) -> Expected:
    """Write about ``num_bytes`` of trace to ``path``, or reuse it; return the answers."""
    found = load_expected(path)
    if found and path.exists():
        made = (found.layout, found.seed, found.num_bytes)
        if made == (layout, seed, path.stat().st_size):
            return found
    path.parent.mkdir(parents=True, exist_ok=True)
    generator = Generator(load_template(), layout, seed)
    repeats = generator.repeats(generator.num_repeats(num_bytes))
    written = 0
    with path.open("wb") as file:
        for chunk in generator.chunks(repeats):
            written += file.write(chunk)
    expected = generator.expected(repeats, written)
    expected.save(path)
    return expected


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("megabytes", type=int, help="size of the file, in 10^6 bytes")
    parser.add_argument("--layout", choices=sorted(LAYOUTS), default="kineto")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    path = DATA / f"{arguments.layout[0]}{arguments.megabytes}.json"
    start = time.perf_counter()
    expected = generate(path, arguments.megabytes * 10**6, arguments.layout, arguments.seed)
    seconds = time.perf_counter() - start
    print(
        f"{path}: {expected.num_bytes} bytes, {expected.num_events} events, "
        f"{expected.num_slices} slices, {seconds:.2f} s"
    )


if __name__ == "__main__":
    main()
