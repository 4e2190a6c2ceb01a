"""SQL over hand-made traces, the fence around it, and its documentation."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from trnscope.errors import UsageError
from trnscope.model.kinds import SliceKind
from trnscope.store.builder import TraceBuilder
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace
from trnscope.store.sql import VIEW_NAMES, QueryResult, SqlSession, connect

DOCS = Path(__file__).resolve().parents[2] / "docs"
DOC = DOCS / "reference/sql-views.md"
BIG = 13_835_058_055_282_163_713


def small_trace(folder: Path, rank: int | None = None) -> Trace:
    """Two ops, one inside the other, that launch a kernel of 30 and a copy of 5 ns."""
    b = TraceBuilder(folder, rank=rank)
    cpu, gpu = b.thread(name="main"), b.stream(device=0, stream=7, name="Test GPU")
    b.slice(cpu, "aten::linear", 0, 100, external_id=1, input_dims="[[2, 3]]", flops=12)
    b.slice(cpu, "aten::mm", 10, 50, external_id=2)
    b.slice(cpu, "cudaLaunchKernel", 20, 8, SliceKind.RUNTIME, correlation=BIG)
    b.slice(cpu, "cudaMemcpyAsync", 70, 4, SliceKind.RUNTIME, correlation=9)
    b.slice(gpu, "gemm", 40, 30, SliceKind.KERNEL, correlation=BIG, grid="[1, 2, 3]")
    b.slice(gpu, "Memcpy HtoD", 80, 5, SliceKind.MEMCPY, correlation=9, bytes=64)
    b.slice(gpu, "lonely", 90, 1, SliceKind.KERNEL)
    b.flow(3, "ac2g", out=(cpu, 22), into=(gpu, 41))
    b.instant(cpu, "mark", 33)
    b.counter(gpu, "clock", "MHz", 15, 1.5)
    b.memory(cpu, 12, 0xFFFF_FFFF_FFFF_0000, 400, total_allocated=900, total_reserved=1000)
    b.memory(cpu, 120, 16, -400)
    b.unfinished(cpu, "open", 95)
    return b.build()


@pytest.fixture
def session(tmp_path: Path) -> Iterator[SqlSession]:
    with connect(Profile((small_trace(tmp_path / "t"),))) as opened:
        yield opened


def rows(session: SqlSession, text: str) -> list[tuple[Any, ...]]:
    return session.query(text).rows


def test_slices(session: SqlSession) -> None:
    assert rows(
        session,
        "SELECT name, start_ns, dur_ns, end_ns, self_ns, op_self_ns, kind, category, depth "
        "FROM slices WHERE kind = 'cpu_op' ORDER BY start_ns",
    ) == [
        ("aten::linear", 0, 100, 100, 46, 46, "cpu_op", "cpu_op", 0),
        ("aten::mm", 10, 50, 60, 42, 42, "cpu_op", "cpu_op", 1),
    ]
    assert rows(session, "SELECT count(*), count(parent) FROM slices") == [(7, 3)]
    assert rows(
        session,
        "SELECT c.name, p.name FROM slices c JOIN slices p ON p.id = c.parent ORDER BY c.start_ns",
    ) == [
        ("aten::mm", "aten::linear"),
        ("cudaLaunchKernel", "aten::mm"),
        ("cudaMemcpyAsync", "aten::linear"),
    ]
    assert rows(
        session, "SELECT DISTINCT text = name FROM slices JOIN strings ON strings.id = name_id"
    ) == [(True,)]


def test_tracks(session: SqlSession) -> None:
    assert rows(session, "SELECT * EXCLUDE (source, rank) FROM tracks ORDER BY track") == [
        (0, "cpu_thread", "100", "100", None, "main", None, None, None, None),
        (1, "device_stream", "0", "7", None, None, "cuda:0", "Test GPU", False, 7),
    ]


def test_ops(session: SqlSession) -> None:
    assert rows(
        session,
        "SELECT name, op_self_ns, external_id, input_dims, flops, call_stack FROM ops "
        "ORDER BY op_self_ns DESC",
    ) == [
        ("aten::linear", 46, 1, "[[2, 3]]", 12, None),
        ("aten::mm", 42, 2, None, None, None),
    ]


def test_device_work_and_kernels(session: SqlSession) -> None:
    assert rows(
        session,
        "SELECT name, kind, dur_ns, device, stream, op_name, correlation, bytes, grid "
        "FROM device_work ORDER BY start_ns",
    ) == [
        ("gemm", "kernel", 30, "cuda:0", 7, "aten::mm", BIG, None, "[1, 2, 3]"),
        ("Memcpy HtoD", "memcpy", 5, "cuda:0", 7, "aten::linear", 9, 64, None),
        ("lonely", "kernel", 1, "cuda:0", 7, None, None, None, None),
    ]
    assert rows(session, "SELECT name FROM kernels ORDER BY start_ns") == [("gemm",), ("lonely",)]


def test_launches(session: SqlSession) -> None:
    assert rows(
        session,
        "SELECT d.name, launch_name, launch_start_ns, launch_dur_ns, launch_latency_ns, "
        "launch_delay_ns, op_slice IS NULL "
        "FROM launches JOIN slices d ON d.id = device_slice ORDER BY d.start_ns",
    ) == [
        ("gemm", "cudaLaunchKernel", 20, 8, 20, 12, False),
        ("Memcpy HtoD", "cudaMemcpyAsync", 70, 4, 10, 6, False),
        ("lonely", None, None, None, None, None, True),
    ]


def test_the_other_views(session: SqlSession) -> None:
    assert rows(
        session,
        "SELECT flows.kind, o.name, i.name FROM flows JOIN slices o ON o.id = slice_out "
        "JOIN slices i ON i.id = slice_in",
    ) == [("ac2g", "cudaLaunchKernel", "gemm")]
    assert rows(session, "SELECT name, ts_ns, track FROM instants") == [("mark", 33, 0)]
    assert rows(session, "SELECT track, name, key, ts_ns, value FROM counters") == [
        (1, "clock", "MHz", 15, 1.5)
    ]
    assert rows(session, "SELECT name, start_ns, category FROM unfinished") == [
        ("open", 95, "cpu_op")
    ]
    assert rows(
        session,
        "SELECT ts_ns, address, size_bytes, total_allocated_bytes, total_reserved_bytes, s.name "
        "FROM memory LEFT JOIN slices s ON s.id = memory.op ORDER BY ts_ns",
    ) == [
        (12, 0xFFFF_FFFF_FFFF_0000, 400, 900, 1000, "aten::mm"),
        (120, 16, -400, None, None, None),
    ]
    assert rows(session, "SELECT num_events, format, complete, rank FROM sources") == [
        (14, "kineto", True, None)
    ]


def test_attributes_keep_64_bits(session: SqlSession) -> None:
    assert rows(
        session,
        "SELECT int_value, count(*) FROM attributes WHERE key = 'correlation' "
        "GROUP BY 1 ORDER BY 1",
    ) == [(9, 2), (BIG, 2)]
    assert rows(
        session, "SELECT key, text_value FROM attributes WHERE text_value IS NOT NULL ORDER BY key"
    ) == [("grid", "[1, 2, 3]"), ("input_dims", "[[2, 3]]")]


def test_ids_that_a_float_would_merge(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    gpu = b.stream()
    for i, comms in enumerate((BIG, BIG + 1)):
        correlation = (1 << 53) + i
        b.slice(gpu, "k", 10 * i, 5, SliceKind.KERNEL, correlation=correlation, comms_id=comms)
    with connect(Profile((b.build(),))) as session:
        assert rows(session, "SELECT correlation, comms_id FROM kernels ORDER BY 1") == [
            (1 << 53, BIG),
            ((1 << 53) + 1, BIG + 1),
        ]
        assert rows(session, "SELECT count(DISTINCT comms_id), sum(comms_id) FROM kernels") == [
            (2, 2 * BIG + 1)
        ]


def test_several_ranks_are_one_set_of_views(tmp_path: Path) -> None:
    traces = tuple(small_trace(tmp_path / f"r{rank}", rank) for rank in (3, 5))
    with connect(Profile(traces)) as session:
        assert rows(
            session, "SELECT source, rank, sum(dur_ns) FROM device_work GROUP BY 1, 2 ORDER BY 1"
        ) == [(0, 3, 36), (1, 5, 36)]
        assert rows(session, "SELECT rank, source FROM sources ORDER BY 1") == [(3, 0), (5, 1)]
        assert rows(
            session,
            "SELECT count(*) FROM slices s JOIN tracks t USING (source, track) "
            "WHERE t.kind = 'cpu_thread'",
        ) == [(8,)]
        assert rows(session, "SELECT args(1, 0)") == [(None,)]
        with pytest.raises(UsageError):
            session.query("SELECT args(0)")


def test_a_trace_of_nothing(tmp_path: Path) -> None:
    with connect(Profile((TraceBuilder(tmp_path / "t").build(),))) as session:
        for view in VIEW_NAMES:
            expected = 1 if view == "sources" else 0
            assert rows(session, f"SELECT count(*) FROM {view}") == [(expected,)]


def test_args_come_from_the_source(tmp_path: Path) -> None:
    trace = small_trace(tmp_path / "t")
    texts = {2: b'{"Concrete Inputs": ["", "1"], "big": 18446744073709551615}'}
    trace.args_text = lambda slice_id: texts.get(slice_id, b"")  # type: ignore[method-assign]
    with connect(Profile((trace,))) as session:
        assert rows(session, "SELECT id FROM slices WHERE args(id) IS NOT NULL") == [(2,)]
        assert rows(session, "SELECT args(2)->>'big', args(0, 2)->'Concrete Inputs'->>1") == [
            ("18446744073709551615", "1")
        ]
        assert rows(session, "SELECT args(-1), args(999), args(NULL), args(7, 2)") == [
            (None, None, None, None)
        ]


def test_names_with_quotes_wide_and_broken_characters(tmp_path: Path) -> None:
    b = TraceBuilder(tmp_path / "t")
    cpu = b.thread()
    for i, name in enumerate(('it\'s "x"', "größe 日本 🚀", "half \ud83d", "")):
        b.slice(cpu, name, 10 * i, 5)
    with connect(Profile((b.build(),))) as session:
        assert rows(session, "SELECT name FROM slices ORDER BY start_ns") == [
            ('it\'s "x"',),
            ("größe 日本 🚀",),
            ("half \ufffd",),
            ("",),
        ]


# What a query may not do -----------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM '{file}'",
        "SELECT * FROM read_csv('{file}')",
        "SELECT * FROM read_text('{file}')",
        "SELECT * FROM read_blob('{file}')",
        "SELECT * FROM glob('{folder}/*')",
        "SELECT * FROM sniff_csv('{file}')",
        "COPY (SELECT 1) TO '{folder}/out.csv'",
        "COPY slices TO '{folder}/out.parquet'",
        "EXPORT DATABASE '{folder}/db'",
        "ATTACH '{folder}/db.duckdb'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "RESET enable_external_access",
        "PRAGMA enable_profiling",
        "CREATE TABLE t (a INT)",
        "CREATE VIEW slices AS SELECT 1",
        "DROP VIEW slices",
        "INSERT INTO slices VALUES (1)",
        "DELETE FROM strings",
        "UPDATE strings SET text = ''",
        "CALL pragma_version()",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{folder}/out.csv'",
        "EXPLAIN ANALYZE DROP VIEW slices",
        "EXPLAIN (ANALYZE) DROP VIEW slices",
        "EXPLAIN (ANALYZE, FORMAT json) DROP VIEW slices",
        "-- a\n EXPLAIN /* b */ ANALYZE -- c\r\n DROP VIEW slices",
        "/* /* */ */ EXPLAIN ANALYZE DROP VIEW slices",
        "EXPLAIN -- \r ANALYZE DROP VIEW slices -- \n SELECT 1",
        "EXPLAIN DROP VIEW slices",
        "EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1",
        "EXPLAIN ANALYZE CREATE TEMP MACRO args(id) AS 'mine'",
        "EXPLAIN ANALYZE SET threads = 1",
        "EXPLAIN ANALYZE SELECT 1; DROP VIEW slices",
        "EXPLAIN ANALYZE",
        "CREATE TABLE t AS PIVOT slices ON kind USING count(*)",
        "EXPLAIN ANALYZE CREATE TABLE t AS PIVOT slices ON kind USING count(*)",
        "COPY (PIVOT slices ON kind USING count(*)) TO '{folder}/out.csv'",
        "SELECT 1; COPY (SELECT 1) TO '{folder}/out.csv'",
        "SELECT * FROM some_python_variable",
        "SELECT getenv('HOME')",
        "SELEC 1",
        "SELECT nope FROM slices",
        "SELECT * FROM slice",
        "",
    ],
)
def test_refused(session: SqlSession, tmp_path: Path, text: str) -> None:
    some_python_variable = [1, 2, 3]
    assert some_python_variable
    folder = tmp_path / "fence"
    folder.mkdir()
    secret = folder / "secret.csv"
    secret.write_text("a,b\n1,2\n")
    with pytest.raises(UsageError) as caught:
        session.query(text.format(file=secret, folder=folder))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("SQL: ")
    assert list(folder.iterdir()) == [secret]
    assert rows(session, "SELECT count(*) FROM slices") == [(7,)]
    assert rows(session, "SHOW TABLES") == [(name,) for name in sorted(VIEW_NAMES)]


@pytest.mark.parametrize("text", ["LOAD httpfs", "FROM duckdb_secrets()", "FROM read_csv('~/a')"])
def test_no_message_names_the_home_folder(session: SqlSession, text: str) -> None:
    try:
        said = str(session.query(text).rows)
    except UsageError as error:
        said = str(error)
    assert str(Path.home()) not in said


def test_an_unknown_view_lists_those_there_are(session: SqlSession) -> None:
    with pytest.raises(UsageError, match="the views are sources, tracks, slices, ops"):
        session.query("SELECT * FROM slice")


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("WITH k AS (SELECT * FROM kernels) SELECT count(*) FROM k", (2,)),
        ("SELECT sum(dur_ns) FROM SLICES WHERE kind = 'kernel'", (31,)),
        ("PIVOT slices ON kind USING count(*) GROUP BY source", (0, 2, 2, 1, 2)),
        ("FROM kernels SELECT count(*)", (2,)),
        ("VALUES (1)", (1,)),
        ("SELECT name FROM (DESCRIBE instants) LIMIT 0", None),
        ("EXPLAIN SELECT * FROM slices", ...),
        ("explain analyze\nselect count(*) from ops;", ...),
        ("/* why */ EXPLAIN (FORMAT json) FROM kernels -- slow\n", ...),
        ("EXPLAIN PIVOT slices ON kind USING count(*)", ...),
        ("PIVOT slices ON kind USING count(*) GROUP BY source;\n", (0, 2, 2, 1, 2)),
        ("SUMMARIZE kernels", ...),
    ],
)
def test_accepted(session: SqlSession, text: str, first: Any) -> None:
    if first is None:
        text = "SELECT column_name FROM (DESCRIBE instants) OFFSET 2 LIMIT 1"
        first = ("ts_ns",)
    result = rows(session, text)
    assert first is ... or result[0] == first


def test_every_view_is_listed(session: SqlSession) -> None:
    found = rows(session, "SELECT table_name FROM information_schema.tables")
    assert {name for (name,) in found if not name.startswith("_")} == set(VIEW_NAMES)


def test_ctrl_c_stops_a_query(session: SqlSession) -> None:
    endless = "SELECT sum(hash(a.range, b.range)) FROM range(9000000) a, range(900000) b"
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        session.query(endless)
    timer.join()
    assert rows(session, "SELECT 1") == [(1,)]


def test_result_as_json() -> None:
    import datetime
    import decimal

    result = QueryResult(
        ("a", "b"),
        ("UBIGINT", "VARCHAR"),
        [
            (BIG, None),
            (1.5, decimal.Decimal("2.50")),
            ([b"\x01", {"k": 1}], datetime.date(2026, 1, 2)),
        ],
    )
    assert result.to_json() == {
        "schema": 1,
        "columns": ["a", "b"],
        "rows": [[BIG, None], [1.5, "2.50"], [["01", {"k": 1}], "2026-01-02"]],
    }


def test_batches_stream_the_same_rows(session: SqlSession) -> None:
    reader = session.batches("SELECT name, dur_ns FROM kernels ORDER BY start_ns")
    assert [row for batch in reader for row in batch.to_pylist()] == [
        {"name": "gemm", "dur_ns": 30},
        {"name": "lonely", "dur_ns": 1},
    ]


# Documentation ----------------------------------------------------------------------------


def documented() -> dict[str, list[tuple[str, str]]]:
    """View to (column, type), as the page says."""
    found: dict[str, list[tuple[str, str]]] = {}
    for section in re.split(r"^## ", DOC.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name = section.split("\n", 1)[0].strip()
        columns = re.findall(r"^\| (\w+) \| ([A-Z]+) \| \S.* \|$", section, re.MULTILINE)
        if columns:
            found[name] = columns
    return found


def test_the_page_and_the_views_agree(session: SqlSession) -> None:
    pages = documented()
    assert sorted(pages) == sorted(VIEW_NAMES)
    for view, columns in pages.items():
        described = rows(session, f"SELECT column_name, column_type FROM (DESCRIBE {view})")
        assert columns == described, view


def test_kinds_on_the_page() -> None:
    text = " ".join(DOC.read_text(encoding="utf-8").split())
    listed = re.findall(r"`(\w+)`", text.split("`kind` is one of")[1].split(".")[0])
    assert listed == [kind.name.lower() for kind in SliceKind]


def queries_in(page: str) -> list[str]:
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"^```sql\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(
    "query", [*queries_in("reference/sql-views.md"), *queries_in("howto/query-with-sql.md")]
)
def test_documented_queries_run(session: SqlSession, query: str) -> None:
    assert session.query(query).columns


def test_a_documented_query_finds_the_gaps(session: SqlSession) -> None:
    (query,) = (q for q in queries_in("howto/query-with-sql.md") if "gap_start_ns" in q)
    # Device work is [40, 70), [80, 85), [90, 91).
    assert rows(session, query) == [(0, "cuda:0", 70, 10), (0, "cuda:0", 85, 5)]
