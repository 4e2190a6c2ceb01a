"""What the page is told equals what the command line prints, and what the slices themselves say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pyarrow.ipc as ipc
import pytest

import trnscope
from tests.unit.chrome_json import complete, kernel, write
from tests.unit.explorer_server import Client, serving
from trnscope.analysis.window import KIND_WORDS
from trnscope.model.kinds import SliceKind

REPO = Path(__file__).resolve().parents[2]
SMALL = REPO / "docs" / "examples" / "small.json"
CUT = REPO / "docs" / "examples" / "cut.json"


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with serving(trnscope.open(SMALL), tmp_path_factory.mktemp("page")) as started:
        yield started


@pytest.fixture(scope="module")
def profile():
    return trnscope.open(SMALL)


def printed(*args: str) -> object:
    done = subprocess.run(
        [sys.executable, "-m", "trnscope", *args, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("path", "command"),
    [
        ("summary", ["summary"]),
        ("breakdown", ["breakdown"]),
        ("steps", ["steps"]),
        ("health", ["health"]),
        ("explain", ["explain"]),
        ("ops", ["ops"]),
        ("ops?by=shape", ["ops", "--by", "shape"]),
        ("kernels", ["kernels"]),
        ("kernels?by=stream", ["kernels", "--by", "stream"]),
        ("memory", ["memory"]),
        ("roofline", ["roofline"]),
    ],
)
def test_documents_are_those_of_the_command_line(client, path, command):
    assert client.get(f"/api/{path}").document == printed(*command, str(SMALL))


def test_evidence_is_where_the_findings_say(client, profile):
    findings = profile.explain().findings
    document = client.get("/api/evidence").document
    assert findings
    assert [[ref["slice"] for ref in refs] for refs in document["findings"]] == [
        list(finding.evidence[:500]) for finding in findings
    ]
    trace = profile.traces[findings[0].trace]
    ref = document["findings"][0][0]
    assert ref["name"] == trace.strings[int(trace.slices.name[ref["slice"]])]


def test_a_question_that_the_profile_cannot_answer_says_why(client):
    answer = client.get("/api/ops?by=module")
    assert answer.status == 400
    assert "no modules were recorded" in answer.problem
    assert answer.document["error"]["hint"]
    assert client.get("/api/ops?by=colour").status == 400


def test_a_damaged_file_is_marked(tmp_path):
    with serving(trnscope.open(CUT), tmp_path / "page") as client:
        about = client.get("/api/about").document
        sentence = client.get("/api/sentence").document["sentence"]
    assert "cut.json" in about["incomplete"]
    assert sentence.startswith("In the part of the trace that could be read")
    assert about["simulated_by"] is None


def tracks_of(client: Client):
    return client.get("/api/tracks").document


def test_tracks_cover_all_lanes_once_and_devices_come_first(client, profile):
    document = tracks_of(client)
    lanes = [
        lane
        for track in document["tracks"]
        for lane in range(track["first_lane"], track["first_lane"] + track["num_lanes"])
    ]
    trace = profile.traces[0]
    assert sorted(lanes) == list(range(trace.lanes.first.size))
    assert sum(track["num_slices"] for track in document["tracks"]) == len(trace.slices)
    kinds = [track["is_device"] for track in document["tracks"]]
    assert kinds == sorted(kinds, reverse=True)
    assert document["axis"]["length_ns"] == profile.summary().span_ns


def viewport(client: Client, lanes: str, start: int, end: int, px: int):
    answer = client.get(f"/api/timeline?lanes={lanes}&start={start}&end={end}&px={px}")
    assert answer.status == 200
    table = ipc.open_stream(answer.body).read_all()
    names = json.loads(table.schema.metadata[b"names"])
    return [row | {"name": names[row["name"]]} for row in table.to_pylist()]


@pytest.mark.parametrize(("start", "end"), [(0, 30_000_000), (4_000_000, 9_000_001), (-5, 3)])
def test_a_sharp_viewport_holds_exactly_the_slices_that_touch_it(client, profile, start, end):
    trace = profile.traces[0]
    s = trace.slices
    zero = tracks_of(client)["axis"]["zeros_ns"][0]
    rows = viewport(client, f"0-{trace.lanes.first.size - 1}", start, end, 20_000)
    at = s.start_ns - zero
    expected = {
        i: (trace.strings[int(s.name[i])], int(at[i]), int(s.dur_ns[i]), int(s.kind[i]))
        for i in range(len(s))
        if (at[i] < end and at[i] + s.dur_ns[i] > start) or (s.dur_ns[i] == 0 and at[i] == start)
    }
    assert sum(row["count"] for row in rows) == len(expected)
    alone = [row for row in rows if row["count"] == 1]
    assert len(alone) > len(expected) // 2
    for row in alone:
        name, at_ns, dur_ns, kind = expected[row["slice"]]
        assert (row["name"], row["start"], row["length"], row["busy"], row["kind"]) == (
            name,
            at_ns,
            dur_ns,
            dur_ns,
            kind,
        )
        lane = np.searchsorted(trace.lanes.first, row["slice"], side="right") - 1
        assert row["lane"] == lane


def test_a_coarse_viewport_has_few_rows_and_loses_no_slice(client, profile):
    trace = profile.traces[0]
    num_lanes = trace.lanes.first.size
    rows = viewport(client, f"0-{num_lanes - 1}", 0, 30_000_000, 4)
    assert sum(row["count"] for row in rows) == len(trace.slices)
    assert sum(row["busy"] for row in rows) == trace.slices.dur_ns.sum()
    assert len(rows) < len(trace.slices)


@pytest.mark.parametrize(
    "query",
    [
        "lanes=0&start=5&end=5&px=10",
        "lanes=0&start=0&end=5&px=0",
        "lanes=0&start=0&end=5&px=1000000",
        "lanes=9999&start=0&end=5&px=10",
        "lanes=0-999999&start=0&end=5&px=10",
        "lanes=x&start=0&end=5&px=10",
        "lanes=0&start=a&end=5&px=10",
        "lanes=0",
    ],
)
def test_senseless_viewports_are_refused_in_words(client, query):
    answer = client.get(f"/api/timeline?{query}")
    assert answer.status == 400
    assert answer.problem


def test_several_files_have_one_numbering_of_lanes(tmp_path):
    paths = []
    for rank in range(2):
        header = {"distributedInfo": {"rank": rank, "world_size": 2}}
        events = [complete(f"op{rank}", "cpu_op", 100 * rank, 10), kernel(f"k{rank}", 5, 4)]
        paths.append(write(tmp_path / f"rank{rank}.json", events, **header))
    with serving(trnscope.open(*paths), tmp_path / "page") as client:
        document = tracks_of(client)
        assert document["sources"] == ["rank 0", "rank 1"]
        assert [track["source"] for track in document["tracks"]] == [0, 0, 1, 1]
        names = {row["lane"]: row["name"] for row in viewport(client, "0-3", -10, 10**6, 9000)}
        found = client.get("/api/search?q=op1").document["slices"][0]
    assert set(names.values()) == {"op0", "op1", "k0", "k1"}
    assert names[found["lane"]] == "op1"
    assert found["source"] == 1


def test_search_counts_and_orders_by_time(client, profile):
    trace = profile.traces[0]
    names = trace.strings.take(trace.slices.name)
    wanted = [i for i, name in enumerate(names) if "MM" in name.upper()]
    document = client.get("/api/search?q=Mm").document
    assert wanted
    assert document["num_slices"] == len(wanted)
    assert document["num_names"] == len({names[i] for i in wanted})
    assert sorted(found["slice"] for found in document["slices"]) == wanted
    at = [found["at_ns"] for found in document["slices"]]
    assert at == sorted(at)
    assert client.get("/api/search?q=").document["num_slices"] == 0
    assert client.get("/api/search?q=" + quote("<script>")).document["num_slices"] == 0


def launch_chain(tmp_path: Path):
    """An op, its call inside a nested op, and the kernel that it launched."""
    events = [
        complete("outer", "cpu_op", 0, 100, args={"External id": 1}),
        complete("inner", "cpu_op", 10, 50, args={"External id": 2, "Input Dims": [[2, 3]]}),
        complete("cudaLaunchKernel", "cuda_runtime", 20, 5, args={"correlation": 7}),
        kernel("gemm", 200, 30, correlation=7),
        kernel("lonely", 300, 3),
    ]
    return trnscope.open(write(tmp_path / "chain.json", events))


def test_details_follow_the_chain_from_op_to_device_and_back(tmp_path):
    with serving(launch_chain(tmp_path), tmp_path / "page") as client:

        def details(name: str):
            found = client.get(f"/api/search?q={name}").document["slices"][0]
            return client.get(f"/api/slice/{found['source']}/{found['slice']}").document

        def links(document):
            return {
                (link["relation"], link["cause"]["name"], link["effect"]["name"])
                for link in document["links"]
            }

        chain = {("op", "inner", "cudaLaunchKernel"), ("launch", "cudaLaunchKernel", "gemm")}
        for name in ("outer", "inner", "cudaLaunchKernel", "gemm"):
            assert links(details(name)) == chain
        assert links(details("lonely")) == set()
        inner = details("inner")
        assert [parent["name"] for parent in inner["parents"]] == ["outer"]
        assert inner["self_ns"] == 45_000
        assert inner["slice"]["duration_ns"] == 50_000
        assert json.loads(inner["args"])["Input Dims"] == [[2, 3]]
        gemm = details("gemm")
        assert gemm["next"]["name"] == "lonely" and gemm["previous"] is None
        assert "cuda:0" in gemm["track"] and gemm["category"] == "kernel"


def test_args_that_cannot_be_read_any_more_are_explained(tmp_path):
    profile = launch_chain(tmp_path)
    (tmp_path / "chain.json").unlink()
    with serving(profile, tmp_path / "page") as client:
        found = client.get("/api/search?q=inner").document["slices"][0]
        document = client.get(f"/api/slice/0/{found['slice']}").document
    assert document["args"] is None
    assert "chain.json" in document["args_problem"]


def test_slices_that_do_not_exist_are_refused(client):
    for path in ("0/99999999", "7/0"):
        assert client.get(f"/api/slice/{path}").status == 400
    assert client.get("/api/slice/0/x").status == 404
    assert client.get("/api/none").problem


def test_the_whole_range_equals_the_tables(client, profile):
    length = tracks_of(client)["axis"]["length_ns"]
    document = client.get(f"/api/window?start=0&end={length}").document
    kernels = printed("kernels", str(SMALL))
    rows = {
        (row["kind"], row["name"]): (row["count"], row["sum_ns"])
        for row in document["rows"]
        if row["kind"] in ("kernel", "communication", "memcpy", "memset")
    }
    assert rows == {
        (row["kind"], row["name"]): (row["count"], row["sum_ns"]) for row in kernels["kernels"]
    }
    (device,) = document["devices"]
    (summary,) = printed("summary", str(SMALL))["devices"]
    for key in ("busy_ns", "compute_ns", "communication_ns", "memcpy_ns"):
        assert device[key] == summary[key]
    assert device["busy_ns"] + device["idle_ns"] == length


def test_a_part_of_a_range_counts_what_lies_inside(client, profile):
    trace = profile.traces[0]
    s, zero = trace.slices, tracks_of(client)["axis"]["zeros_ns"][0]
    start, end = 3_333_333, 14_444_444
    document = client.get(f"/api/window?start={start}&end={end}").document
    expected: dict[tuple[str, str], list[int]] = {}
    for i in range(len(s)):
        low = max(int(s.start_ns[i]) - zero, start)
        high = min(int(s.start_ns[i]) + int(s.dur_ns[i]) - zero, end)
        if high > low and s.kind[i] != SliceKind.PROFILER:
            kind = KIND_WORDS[SliceKind(s.kind[i])]
            row = expected.setdefault((trace.strings[int(s.name[i])], kind), [0, 0])
            row[0] += 1
            row[1] += high - low
    got = {(row["name"], row["kind"]): [row["count"], row["sum_ns"]] for row in document["rows"]}
    assert {key: row for key, row in got.items() if row[1]} == expected
    assert client.get("/api/window?start=5&end=5").status == 400


def test_the_example_of_the_metrics_page(tmp_path):
    events = [kernel("k", 0, 0.01), kernel("k", 0.015, 0.01)]
    profile = trnscope.open(write(tmp_path / "t.json", events))
    window = profile.window(5, 20)
    (row,), (device,) = window.rows, window.devices
    assert (row.name, row.kind, row.count, row.sum_ns) == ("k", "kernel", 2, 10)
    assert (device.busy_ns, device.idle_ns) == (10, 5)
    assert window.num_slices == 2


def test_every_kind_of_slice_has_a_word():
    assert set(KIND_WORDS) == set(SliceKind)


def test_a_profile_without_slices_is_answered(tmp_path):
    instant = {"ph": "i", "name": "x", "cat": "c", "pid": 1, "tid": 1, "ts": 5, "s": "t"}
    profile = trnscope.open(write(tmp_path / "empty.json", [instant]))
    with serving(profile, tmp_path / "page") as client:
        assert tracks_of(client)["tracks"] == []
        assert "no time to account for" in client.get("/api/sentence").document["sentence"]
        for path in ("summary", "ops", "kernels", "search?q=x", "window?start=0&end=1"):
            assert client.get(f"/api/{path}").status == 200
        assert viewport(client, "", 0, 10, 10) == []


def test_names_of_any_kind_arrive_as_text(tmp_path):
    names = ["<script>alert(1)</script>", "\u202egnp.exe", "x" * 10_000, '"\\', "\ud800"]
    events = [complete(name, "cpu_op", at * 10, 5) for at, name in enumerate(names)]
    with serving(trnscope.open(write(tmp_path / "t.json", events)), tmp_path / "page") as client:
        rows = viewport(client, "0", 0, 100_000, 5000)
        ops = client.get("/api/ops")
        found = client.get("/api/search?q=" + quote("<script>")).document
    assert [row["name"] for row in rows] == [*names[:2], "x" * 160, names[3], "\ufffd"]
    assert ops.headers["Content-Type"] == "application/json"
    assert b"\xe2" not in ops.body
    assert found["slices"][0]["name"] == names[0]


def test_a_query_gives_its_first_rows_with_every_digit(client):
    text = "SELECT i, 9007199254740993 + i AS long, [i] AS list FROM range(1500) AS r(i)"
    document = client.get(f"/api/sql?q={quote(text)}").document
    assert document["columns"] == ["i", "long", "list"]
    assert document["rows"][:2] == [[0, "9007199254740993", "[0]"], [1, "9007199254740994", "[1]"]]
    assert (len(document["rows"]), document["has_more"]) == (1000, True)
    assert client.get("/api/sql?q=SELECT%201").document["has_more"] is False
    assert client.get("/api/sql?q=DELETE%20FROM%20ops").status == 400
