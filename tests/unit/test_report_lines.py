"""Rendered tables: what is shown, what is left out, and the marks on every one of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

from trnscope.analysis.breakdown import breakdown
from trnscope.analysis.health import health
from trnscope.analysis.kernels import kernels
from trnscope.analysis.launch import launches
from trnscope.analysis.memory import memory
from trnscope.analysis.ops import ops
from trnscope.analysis.overlap import overlap
from trnscope.analysis.steps import steps
from trnscope.analysis.summary import summarize
from trnscope.model.health import Health, HealthWarning
from trnscope.model.kinds import DeviceKind, SliceKind
from trnscope.report.breakdown import breakdown_lines
from trnscope.report.health import health_lines
from trnscope.report.kernels import kernels_lines
from trnscope.report.launch import launch_lines
from trnscope.report.marks import view_of
from trnscope.report.memory import memory_lines
from trnscope.report.ops import ops_lines, sorted_ops
from trnscope.report.overlap import overlap_lines
from trnscope.report.steps import steps_lines
from trnscope.report.summary import summary_lines
from trnscope.report.table import Column, Table
from trnscope.report.view import View
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile

Analysis = Callable[[Profile], Any]
Render = Callable[[Any, View], Iterable[Text]]

REPORTS: list[tuple[Analysis, Render]] = [
    (summarize, summary_lines),
    (steps, steps_lines),
    (breakdown, breakdown_lines),
    (ops, ops_lines),
    (kernels, kernels_lines),
    (overlap, overlap_lines),
    (launches, launch_lines),
    (memory, memory_lines),
    (health, health_lines),
]
CUT = Health(False, 7, 0, 1, (HealthWarning("truncated", "cut off at byte 99\x1b[2J", 1),))
HOSTILE = "evil\x1b[2J\n\u202ename"


def training(
    path: Path, *, device: bool = True, simulated: bool = False, health: Health | None = None
) -> Profile:
    """Two steps of 1 ms, an op of 200 µs in each; on the device a kernel of 400 µs."""
    builder = TraceBuilder(path)
    host = builder.thread()
    name = "TRN2 model 1.0" if simulated else None
    stream = builder.stream(name=name, simulated=simulated, kind=DeviceKind.NEURON)
    for step in range(2):
        at = step * 1_000_000
        builder.slice(host, f"ProfilerStep#{step}", at, 1_000_000, SliceKind.ANNOTATION)
        builder.slice(host, HOSTILE, at + 10_000, 200_000)
        if device:
            call = step + 1
            builder.slice(host, "nrt_execute", at + 20_000, 10_000, SliceKind.RUNTIME,
                          correlation=call)  # fmt: skip
            builder.slice(stream, HOSTILE, at + 300_000, 400_000, SliceKind.KERNEL,
                          correlation=call)  # fmt: skip
    return Profile((builder.build(health),))


def text_of(profile: Profile, analysis: Analysis, render: Render, **view: Any) -> str:
    lines = list(render(analysis(profile), view_of(profile, **view)))
    return "\n".join(line.plain for line in lines)


@pytest.mark.parametrize(("analysis", "render"), REPORTS)
def test_every_report_is_safe_and_marked(
    tmp_path: Path, analysis: Analysis, render: Render
) -> None:
    profile = training(tmp_path / "t", simulated=True, health=CUT)
    text = text_of(profile, analysis, render)
    assert all(line.isprintable() for line in text.split("\n"))
    assert "simulated (TRN2 model 1.0)" in text
    assert "INCOMPLETE: " in text
    assert "cut off at byte 99\\x1b[2J; figures hold only what could be read" in text


@pytest.mark.parametrize(("analysis", "render"), REPORTS)
def test_a_whole_measured_trace_has_no_marks(
    tmp_path: Path, analysis: Analysis, render: Render
) -> None:
    text = text_of(training(tmp_path / "t"), analysis, render)
    assert "INCOMPLETE" not in text
    assert "simulated" not in text


@pytest.mark.parametrize(("analysis", "render"), REPORTS)
def test_without_a_device_no_device_figures(
    tmp_path: Path, analysis: Analysis, render: Render
) -> None:
    text = text_of(training(tmp_path / "t", device=False), analysis, render)
    assert "neuron:0" not in text
    assert "self device" not in text
    assert "device, by" not in text


def test_ops_table(tmp_path: Path) -> None:
    lines = text_of(training(tmp_path / "t"), ops, ops_lines).split("\n")
    op = next(line for line in lines if line.startswith("evil"))
    assert op.split("  ")[0] == "evil\\x1b[2J\\n\\u202ename"
    # 2 calls of 200 µs with a 10 µs launch each inside; both kernels of 400 µs are theirs.
    assert op.split()[1:] == ["2", "380.000", "µs", "19.0", "%", "400.000", "µs",
                              "800.000", "µs", "100.0", "%", "800.000", "µs"]  # fmt: skip


def test_a_total_above_all_time_is_explained(tmp_path: Path) -> None:
    # 100 ns hold, deep inside, 60 of the same name: a total of 160 ns of the 100 there are.
    builder = TraceBuilder(tmp_path / "t")
    host = builder.thread()
    builder.slice(host, "aten::to", 0, 100)
    builder.slice(host, "aten::copy_", 10, 80)
    builder.slice(host, "aten::to", 20, 60)
    text = text_of(Profile((builder.build(),)), ops, ops_lines)
    assert "160 ns" in text
    assert "a call within one of the same name counts again" in text
    assert "counts again" not in text_of(training(tmp_path / "other"), ops, ops_lines)


def test_heads_are_made_printable() -> None:
    table = Table("na\x1b[2Jme", [Column("sum\x07"), Column("\u202e", is_text=True)], [["a"] * 3])
    lines = [line.plain for line in table.lines(None)]
    assert lines[0] == "na\\x1b[2Jme  sum\\x07  \\u202e"
    assert lines[2] == "a" + " " * 18 + "a  a"


def test_ops_are_sorted_by_what_was_asked(tmp_path: Path) -> None:
    table = ops(training(tmp_path / "t"))
    by_cpu = [row.name for row in sorted_ops(table, "cpu").rows]
    assert by_cpu == ["ProfilerStep*", HOSTILE, "nrt_execute"]
    by_name = [row.name for row in sorted_ops(table, "name").rows]
    assert by_name == ["ProfilerStep*", HOSTILE, "nrt_execute"]
    by_device = [row.name for row in sorted_ops(table, "self-device").rows]
    assert by_device[0] == HOSTILE


def test_breakdown_adds_up_and_hides_empty_columns(tmp_path: Path) -> None:
    text = text_of(training(tmp_path / "t"), breakdown, breakdown_lines)
    header = next(line for line in text.split("\n") if line.startswith("step  "))
    assert "exposed communication" not in header
    total = next(line for line in text.split("\n") if line.startswith("step") and "%" in line)
    assert total.split() == ["step", "2.000", "ms", "1.000", "ms", "100.0", "%"]


def test_limit_says_what_it_leaves_out(tmp_path: Path) -> None:
    text = text_of(training(tmp_path / "t"), steps, steps_lines, limit=1)
    assert "ProfilerStep#0" in text
    assert "ProfilerStep#1" not in text
    assert "... and 1 more step (--limit 0 shows all)" in text


def test_long_names_give_way_to_the_terminal(tmp_path: Path) -> None:
    builder = TraceBuilder(tmp_path / "t")
    builder.slice(builder.thread(), "aten::" + "x" * 400, 0, 100)
    profile = Profile((builder.build(),))
    lines = text_of(profile, ops, ops_lines, width=80).split("\n")
    row = next(line for line in lines if line.startswith("aten::"))
    assert len(row) == 80
    assert "…" in row


def test_an_empty_trace_says_so_everywhere(tmp_path: Path) -> None:
    profile = Profile((TraceBuilder(tmp_path / "t").build(),))
    for analysis, render in REPORTS:
        text = text_of(profile, analysis, render)
        assert "nan" not in text.lower().replace("nano", "")
        assert len(text.split("\n")) >= 2


def busy_streams(path: Path) -> Profile:
    """Device 0 only computes; device 1 copies for 30 beside no compute, device 2 for 50 of 70."""
    builder = TraceBuilder(path)
    host = builder.thread()
    track = functools.cache(builder.stream)
    works = (
        (0, 7, SliceKind.KERNEL, 0, 100),
        (1, 7, SliceKind.KERNEL, 0, 10),
        (1, 8, SliceKind.MEMCPY, 20, 30),
        (2, 7, SliceKind.KERNEL, 0, 20),
        (2, 8, SliceKind.MEMCPY, 0, 70),
        (2, 9, SliceKind.KERNEL, 5, 5),
    )
    for device, stream, kind, start, length in works:
        builder.slice(track(device, stream), f"work {device}", start, length, kind)
    for call in range(1, 4):
        builder.slice(host, "cudaLaunchKernel", 200, 1, SliceKind.RUNTIME, correlation=call)
        builder.slice(track(2, 9 if call < 3 else 7), "work 2", 300 + 10 * call, 1,
                      SliceKind.KERNEL, correlation=call)  # fmt: skip
    return Profile((builder.build(),))


def test_overlap_starts_with_the_most_exposed_and_counts_what_it_leaves_out(tmp_path: Path) -> None:
    lines = text_of(busy_streams(tmp_path / "t"), overlap, overlap_lines).split("\n")
    rows = [line.split() for line in lines if line.startswith("cuda:")]
    # Copies, of them overlapped, in %, exposed.
    assert rows[:2] == [
        ["cuda:2", "70", "ns", "20", "ns", "28.6", "%", "50", "ns"],
        ["cuda:1", "30", "ns", "0", "ns", "0.0", "%", "30", "ns"],
    ]
    # A stream and its busy time, another and its, both.
    assert rows[2:] == [
        ["cuda:2", "7", "21", "ns", "8", "70", "ns", "20", "ns"],
        ["cuda:2", "7", "21", "ns", "9", "7", "ns", "5", "ns"],
        ["cuda:2", "8", "70", "ns", "9", "7", "ns", "5", "ns"],
    ]
    assert "1 device with neither communication nor copies left out" in lines
    assert "1 pair of streams never busy at the same time left out" in lines


def test_launches_start_with_the_busiest_stream_and_count_those_without(tmp_path: Path) -> None:
    lines = text_of(busy_streams(tmp_path / "t"), launches, launch_lines).split("\n")
    waits = [line.split()[:5] for line in lines if line.startswith("cuda:") and "delay" in line]
    assert waits == [
        ["cuda:2", "stream", "9", "delay", "2"],
        ["cuda:2", "stream", "7", "delay", "1"],
    ]
    assert "4 streams left out: the launches of their work are not in the trace" in lines
    queues = [line.split()[:4] for line in lines if line.startswith("cuda:")][4:]
    assert queues[0] == ["cuda:2", "stream", "9", "3"]
    assert queues[1] == ["cuda:2", "stream", "7", "2"]
    assert len(queues) == 6


def test_files_that_state_no_rank_are_called_files(tmp_path: Path) -> None:
    profile = Profile(tuple(training(tmp_path / str(number)).traces[0] for number in range(2)))
    text = text_of(profile, summarize, summary_lines)
    assert "file 1 neuron:0" in text
    assert "rank file" not in text
    assert "Span of all work, first start to last end over all files: 2.000 ms" in text
    assert "file: its place in the list of files; ranks do not tell the files apart" in text


def test_shapes_that_were_not_recorded_are_named(tmp_path: Path) -> None:
    def by_shape(profile: Profile) -> Any:
        return ops(profile, "shape")

    missing = "Input shapes were not recorded"
    assert missing in text_of(training(tmp_path / "without"), by_shape, ops_lines)
    assert missing not in text_of(training(tmp_path / "by name"), ops, ops_lines)
    builder = TraceBuilder(tmp_path / "with")
    builder.slice(builder.thread(), "aten::mm", 0, 1, input_dims="[[2, 2], [2, 2]]")
    assert missing not in text_of(Profile((builder.build(),)), by_shape, ops_lines)
