"""Every public sample trace opens, complete and with the right totals; the rest is refused.

The oracles are Python's own ``json`` with exact decimals, and the device times that the table
in the samples' README states.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import trnscope
from trnscope.analysis.devices import device_work
from trnscope.cli.main import run
from trnscope.errors import TraceFormatError
from trnscope.model.kinds import SliceKind
from trnscope.store.reader import Trace

TRACES = Path(__file__).resolve().parents[3] / "shared" / "traces"
_NO_TRACE = re.compile(r"chakra/|_et\.json|execution_details|memory_timeline|\.pb$|\.tar\.gz$")
_NOT_CHROME = {".csv", ".md", ".sqlite"}
_LARGE_BYTES = 1_000_000


def _files() -> list[Path]:
    found = sorted(p for p in TRACES.rglob("*") if p.is_file() and p.suffix not in _NOT_CHROME)
    return [p.relative_to(TRACES) for p in found]


def _is_trace(path: Path) -> bool:
    return _NO_TRACE.search(path.as_posix()) is None


def _param(path: Path) -> Any:
    marks = pytest.mark.slow if (TRACES / path).stat().st_size > _LARGE_BYTES else ()
    return pytest.param(path, id=path.as_posix(), marks=marks)


CHROME = [_param(path) for path in _files() if _is_trace(path)]
OTHERS = [_param(path) for path in _files() if not _is_trace(path)]


def test_the_samples_are_found(shared: Path) -> None:
    assert shared / "traces" == TRACES
    assert len(CHROME) > 50 and len(OTHERS) > 10


def events_of(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    text = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
    document = json.loads(text, parse_float=Decimal)
    events: list[dict[str, Any]] = (
        document["traceEvents"] if isinstance(document, dict) else document
    )
    return events


def opened(path: Path) -> Trace:
    (trace,) = trnscope.open(TRACES / path).traces
    return trace


@pytest.mark.parametrize("path", CHROME)
def test_every_event_is_where_it_belongs(path: Path) -> None:
    events, trace = events_of(TRACES / path), opened(path)
    assert trace.source.num_events == trace.health.num_events_read == len(events)
    assert trace.health.num_events_unreadable == 0
    phases = Counter(event["ph"] for event in events)
    complete = [
        event
        for event in events
        if event["ph"] == "X" and event.get("cat") != "cpu_instant_event" and event["dur"] >= 0
    ]
    slices, categories = trace.slices, np.array(trace.categories)
    paired = min(phases["B"], phases["E"]) + 9 * ("async_begin_end" in path.name)
    assert len(slices) == len(complete) + paired
    if not paired:
        count, total = Counter[str](), Counter[str]()
        for event in complete:
            category = event.get("cat", "")
            count[category] += 1
            total[category] += int(Decimal(event["dur"]) * 1000)
        names = categories[slices.category]
        for category, number in count.items():
            mine = names == category
            assert np.count_nonzero(mine) == number
            assert int(slices.dur_ns[mine].sum()) == total[category]
        first = min(int(Decimal(event["ts"]) * 1000) for event in complete)
        assert int(slices.start_ns.min()) == first + trace.source.base_time_ns
    instants = phases["i"] + phases["T"]
    assert trace.instants.ts_ns.size + trace.memory.ts_ns.size == instants
    memory = [e["args"]["Bytes"] for e in events if e["name"] == "[memory]"]
    assert int(trace.memory.size_bytes.sum()) == sum(memory)


@pytest.mark.parametrize("path", CHROME)
def test_links_stay_within_the_file(path: Path) -> None:
    trace = opened(path)
    slices, launches = trace.slices, trace.launches
    assert np.all(slices.dur_ns >= 0) and np.all(slices.self_ns >= 0)
    calls = launches.launch_slice[launches.has_launch]
    assert np.all(slices.kind[calls] == SliceKind.RUNTIME)
    correlation = trace.attribute("correlation")
    if correlation is not None and calls.size:
        work = launches.device_slice[launches.has_launch]
        has_work, of_work = correlation.of(work)
        has_call, of_call = correlation.of(calls)
        both = has_work & has_call
        assert both.any() and np.all(of_work[both] == of_call[both])
    for track in trace.tracks:
        assert track.stream is None or 0 <= track.stream < 1 << 31


def stated_times() -> dict[str, tuple[int, int]]:
    """Device time by file, from the README's table: sum and busy, µs."""
    found, folder = {}, ""
    readme = TRACES / "README.md"
    for line in readme.read_text(encoding="utf-8").splitlines() if readme.is_file() else ():
        if line.startswith("## "):
            folder = line[3:].split(" ")[0]
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 5 and (numbers := re.fullmatch(r"(\d+)/(\d+)", cells[5])):
            found[f"{folder}/{cells[1]}"] = (int(numbers[1]), int(numbers[2]))
    return found


STATED = [
    pytest.param(Path(name), want, id=name, marks=_param(Path(name)).marks)
    for name, want in stated_times().items()
]


@pytest.mark.parametrize(("path", "want"), STATED)
def test_device_times_are_those_stated(path: Path, want: tuple[int, int]) -> None:
    works, slices = device_work(opened(path)), opened(path).slices
    total = sum(int(slices.dur_ns[work.slices].sum()) for work in works)
    busy = sum(work.busy.total for work in works)
    assert (total, busy) == (
        pytest.approx(want[0] * 1000, abs=1000),
        pytest.approx(want[1] * 1000, abs=1000),
    )


@pytest.mark.parametrize("path", CHROME)
def test_summary_prints_the_contract(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["summary", str(TRACES / path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    assert {"sources", "health", "span_ns", "devices", "steps"} <= document.keys()
    (source,) = document["sources"]
    assert {"path", "format", "rank", "num_events"} <= source.keys()
    assert source["format"] in ("kineto", "chrome")
    health = document["health"]
    assert {"complete", "warnings", "num_events_read"} <= health.keys()
    assert isinstance(document["span_ns"], int)


@pytest.mark.parametrize("path", OTHERS)
def test_what_is_no_trace_is_refused_in_one_line(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(TraceFormatError) as caught:
        trnscope.open(TRACES / path)
    assert "\n" not in str(caught.value) and caught.value.hint
    assert run(["summary", str(TRACES / path)]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1


RANKS = {
    "HTA/tests/data/cpu_only/rank-34.Jul_15_10_52_41.1074.pt.trace.json.gz": (34, 300),
    "HTA/tests/data/df_index_resolver/df_index_resolver.json.gz": (1, 2),
    "HTA/tests/data/large_integer_trace/rank-70.Mar_25_20_48_12.2861.pt.trace.json.gz": (70, None),
    "HTA/tests/data/rank_non_gpu/rank_non_gpu.json.gz": (0, None),
    "HTA/tests/data/rank_unavailable/rank_not_found.json.gz": (None, None),
    "HTA/tests/data/trace_filter/sampled_rank-1.json.gz": (1, 128),
    "kineto/tb_plugin/samples/resnet50_num_workers_0/worker0.pt.trace.json.gz": (None, None),
}


@pytest.mark.parametrize(("name", "want"), RANKS.items())
def test_ranks(shared: Path, name: str, want: tuple[int | None, int | None]) -> None:
    source = opened(shared / "traces" / name).source
    assert (source.rank, source.world_size) == want


def test_two_files_of_one_worker_are_no_ranks(shared: Path) -> None:
    folder = shared / "traces/kineto/tb_plugin/samples/resnet50_num_workers_0"
    profile = trnscope.open(*sorted(folder.glob("worker0.1623*.gz")))
    assert len(profile.traces) == 2
    assert not profile.is_multi_rank


def test_eight_files_of_one_job_are_ranks(shared: Path) -> None:
    folder = shared / "traces/param/et_replay/tests/inputs/dlrm_kineto"
    profile = trnscope.open(*sorted(folder.glob("worker*.json")))
    assert profile.is_multi_rank
    assert [trace.source.rank for trace in profile.traces] == list(range(8))
