"""``ops`` against torch's rules written down again, slice by slice, on random traces."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from trnscope.analysis.ops import ops
from trnscope.model.kinds import SliceKind
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile

UTILITY = {"aten::is_leaf", "aten::_version"}
COLLECTIVE = "gloo:all_reduce"
NAMES = ["f", "g", "aten::is_leaf", COLLECTIVE]
KINDS = [SliceKind.CPU_OP, SliceKind.ANNOTATION, SliceKind.PYTHON, SliceKind.RUNTIME]


@dataclass
class Event:
    """One slice, and what the rules make of it."""

    thread: int
    name: str
    start: int
    dur: int
    kind: SliceKind
    parent: Event | None = None
    children: list[Event] = field(default_factory=list)

    @property
    def end(self) -> int:
        return self.start + self.dur

    @property
    def is_apart(self) -> bool:
        return self.name == COLLECTIVE and self.kind is SliceKind.ANNOTATION

    @property
    def is_duplicate(self) -> bool:
        parent = self.parent
        return parent is not None and parent.name == self.name and len(parent.children) == 1

    @property
    def owner(self) -> Event:
        return self.parent.owner if self.is_duplicate and self.parent is not None else self

    @property
    def own(self) -> int:
        if self.is_apart:
            return 0
        left = self.dur - sum(child.dur for child in self.children)
        return left if left >= 0 else self.uncovered

    @property
    def uncovered(self) -> int:
        covered = {t for child in self.children for t in range(child.start, child.end)}
        return self.dur - len(covered)


EVENTS = st.lists(
    st.builds(
        Event,
        thread=st.integers(0, 1),
        name=st.sampled_from(NAMES),
        start=st.integers(0, 30),
        dur=st.integers(0, 20),
        kind=st.sampled_from(KINDS),
    ),
    min_size=1,
    max_size=25,
)

Rows = dict[tuple[str, bool], tuple[int, int, int]]


def expected_rows(events: list[Event], python: bool) -> Rows:
    """torch's table: (name, is annotation) to (calls, self, total)."""
    calls = [
        event
        for event in events
        if event.name not in UTILITY and (python or event.kind is not SliceKind.PYTHON)
    ]
    for thread in (0, 1):
        open_ones: list[Event] = []
        mine = [event for event in calls if event.thread == thread and not event.is_apart]
        for event in sorted(mine, key=lambda event: (event.start, -event.dur)):
            while open_ones and (event.start >= open_ones[-1].end or event.end > open_ones[-1].end):
                open_ones.pop()
            if open_ones:
                event.parent = open_ones[-1]
                event.parent.children.append(event)
            open_ones.append(event)
    rows: dict[tuple[str, bool], list[int]] = defaultdict(lambda: [0, 0, 0])
    for event in calls:
        owner = event.owner
        row = rows[owner.name, owner.kind is SliceKind.ANNOTATION]
        row[1] += event.own
        if owner is event:
            row[0] += 1
            row[2] += event.dur
    return {key: (calls, own, total) for key, (calls, own, total) in rows.items()}


@settings(max_examples=150, deadline=None)
@given(EVENTS, st.booleans())
def test_rows_follow_the_rules(events: list[Event], python: bool) -> None:
    if all(event.kind is SliceKind.PYTHON for event in events):
        return
    with TemporaryDirectory() as folder:
        builder = TraceBuilder(Path(folder) / "t")
        threads = [builder.thread(tid=number) for number in (1, 2)]
        for event in events:
            builder.slice(threads[event.thread], event.name, event.start, event.dur, event.kind)
        table = ops(Profile((builder.build(),)), python=python)
    ours = {
        (row.name, row.key.is_annotation): (row.calls, row.self_cpu_ns, row.cpu_total_ns)
        for row in table.rows
    }
    assert ours == expected_rows(events, python)
