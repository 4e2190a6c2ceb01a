"""SQL over a profile: DuckDB on the mapped tables, shut off from files and the network.

The views and their columns are documented in ``docs/reference/sql-views.md``.
"""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import duckdb

from trnscope.errors import UsageError
from trnscope.store.attributes import ATTRIBUTES, AttributeType
from trnscope.store.profile import Profile
from trnscope.store.sql_tables import (
    DEVICE_ATTRIBUTES,
    INSTRUCTION_ATTRIBUTES,
    OP_ATTRIBUTES,
    TraceTables,
)

T = TypeVar("T")

_ROWS_PER_BATCH = 131_072
_GAP = r"(?:\s|--[^\r\n]*[\r\n]|/\*(?:(?!/\*|\*/).)*\*/)"
_EXPLAIN = re.compile(
    rf"{_GAP}*EXPLAIN\b{_GAP}*(?P<how>ANALYZE\b|\([\w\s,]*\))?", re.IGNORECASE | re.DOTALL
)
_SHOW_TABLES = re.compile(r"\s*SHOW\s+TABLES\s*;?\s*", re.IGNORECASE)
_VIEW_LIST = (
    "SELECT table_name AS name FROM information_schema.tables "
    "WHERE NOT starts_with(table_name, '_') ORDER BY name"
)

_TIMES = "start_ns, dur_ns, start_ns + dur_ns AS end_ns"


# What each view selects from the table of one trace; a name maps (table, columns).
_VIEWS: dict[str, tuple[str, str]] = {
    "tracks": (
        "tracks",
        "track, kind, process, thread, process_name, thread_name, device, device_name, "
        "simulated, stream",
    ),
    "slices": (
        "slices",
        f"id::BIGINT AS id, {_TIMES}, self_ns, op_self_ns, kind, category, name, "
        "name_id::BIGINT AS name_id, track::BIGINT AS track, depth::INTEGER AS depth, "
        "nullif(parent, id)::BIGINT AS parent",
    ),
    "ops": (
        "ops",
        f"id::BIGINT AS id, {_TIMES}, self_ns, op_self_ns, name, track::BIGINT AS track, "
        "parent::BIGINT AS parent, {op_attributes}",
    ),
    "device_work": (
        "device_work",
        f"id::BIGINT AS id, {_TIMES}, kind, name, track::BIGINT AS track, "
        "device, stream, launch::BIGINT AS launch, op::BIGINT AS op, op_name, "
        "{device_attributes}",
    ),
    "launches": (
        "device_work",
        "id::BIGINT AS device_slice, launch::BIGINT AS launch_slice, op::BIGINT AS op_slice, "
        "launch_name, launch_start_ns, launch_dur_ns, "
        "start_ns - launch_start_ns AS launch_latency_ns, "
        "start_ns - launch_start_ns - launch_dur_ns AS launch_delay_ns",
    ),
    "instructions": (
        "instructions",
        f"id::BIGINT AS id, {_TIMES}, name, track::BIGINT AS track, unit, place, device, "
        "execution::BIGINT AS execution, op::BIGINT AS op, op_name, {instruction_attributes}",
    ),
    "flows": (
        "flows",
        "kind, slice_out::BIGINT AS slice_out, slice_in::BIGINT AS slice_in",
    ),
    "counters": ("counters", "track::BIGINT AS track, name, key, ts_ns, value"),
    "instants": ("instants", "ts_ns, track::BIGINT AS track, name, category"),
    "memory": (
        "memory",
        "ts_ns, track::BIGINT AS track, address, size_bytes, device_type, device_index, "
        "total_allocated_bytes, total_reserved_bytes, op::BIGINT AS op",
    ),
    "unfinished": ("unfinished", "start_ns, track::BIGINT AS track, name, category"),
    "strings": ("strings", "id::BIGINT AS id, text"),
}
_DERIVED: dict[str, tuple[str, str]] = {
    "kernels": (
        "device_work",
        "SELECT * FROM device_work WHERE kind IN ('kernel', 'collective')",
    ),
}
VIEW_NAMES = ("sources", *_VIEWS, *_DERIVED, "attributes")
"""The documented views."""


_SQL_TYPES = {
    AttributeType.SIGNED: "BIGINT",
    AttributeType.UNSIGNED: "UBIGINT",
    AttributeType.TEXT: "VARCHAR",
}


def _attribute_columns(tables: TraceTables, keys: Sequence[str]) -> str:
    """Columns of attributes; those that a trace has nowhere take no memory."""
    return ", ".join(
        f"{key if tables.has_attribute(key) else 'NULL'}::{_SQL_TYPES[ATTRIBUTES[key]]} AS {key}"
        for key in keys
    )


@dataclass(frozen=True)
class QueryResult:
    """What a query gave: column names, DuckDB's type names, and rows of Python values."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def to_json(self) -> dict[str, Any]:
        """The JSON document; values that JSON lacks (dates, decimals, bytes) become text."""
        return {
            "schema": 1,
            "columns": list(self.columns),
            "rows": [[_json_value(value) for value in row] for row in self.rows],
        }


class SqlSession:
    """A private in-memory database whose views are the profile's tables.

    Queries can read the views and nothing else: no file, no network, no setting. Use it as a
    context manager or call :meth:`close`. Not for use from several threads at once.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._tables = [TraceTables(trace) for trace in profile.traces]
        self._defined: set[str] = set()
        self._registered: set[str] = set()
        self._args_lock = threading.Lock()
        self._scratch = tempfile.TemporaryDirectory(prefix="trnscope-sql-")
        self._connection = duckdb.connect(
            config={
                "temp_directory": self._scratch.name,
                "home_directory": self._scratch.name,
                "secret_directory": self._scratch.name,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
        )
        self._define_sources()
        self._define_args()
        for setting in (
            "SET python_enable_replacements = false",
            "SET enable_external_access = false",
            "SET lock_configuration = true",
        ):
            self._connection.execute(setting)

    def __enter__(self) -> SqlSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the database and what a large query spilled to disk."""
        self._connection.close()
        self._scratch.cleanup()

    def query(self, text: str, limit: int | None = None) -> QueryResult:
        """Run one SELECT (or EXPLAIN) and return its rows, at most ``limit`` of them.

        Raises :class:`UsageError` for anything else and for what DuckDB refuses. Ctrl-C stops
        the query.
        """
        allowed = self._prepare(text)
        return self._guarded(lambda: self._fetch(allowed, limit))

    def batches(self, text: str) -> Any:
        """Run one SELECT and return a ``pyarrow.RecordBatchReader`` over its rows."""
        allowed = self._prepare(text)
        return self._guarded(lambda: self._read_batches(allowed))

    # Running ------------------------------------------------------------------------------

    def _fetch(self, text: str, limit: int | None) -> QueryResult:
        result = self._connection.execute(text)
        description = result.description or []
        return QueryResult(
            columns=tuple(str(column[0]) for column in description),
            types=tuple(str(column[1]) for column in description),
            rows=result.fetchall() if limit is None else result.fetchmany(limit),
        )

    def _read_batches(self, text: str) -> Any:
        relation: Any = self._connection.sql(text)
        if hasattr(relation, "to_arrow_reader"):
            return relation.to_arrow_reader(_ROWS_PER_BATCH)
        return relation.fetch_arrow_reader(_ROWS_PER_BATCH)

    def _guarded(self, run: Callable[[], T]) -> T:
        """Run on a second thread, so that this one can hear Ctrl-C and stop the query."""
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="trnscope-sql") as pool:
            outcome = pool.submit(run)
            try:
                return outcome.result()
            except KeyboardInterrupt:
                self._connection.interrupt()
                raise
            except duckdb.Error as error:
                raise _as_usage_error(error) from error

    def _prepare(self, text: str) -> str:
        """What to run: refuses what is no single query, and defines the views that it names."""
        if _SHOW_TABLES.fullmatch(text):
            text = _VIEW_LIST
        explain = _EXPLAIN.match(text)
        query = text if explain is None else text[explain.end() :]
        self._require_select(query)
        for name in self._views_named_in(query):
            self._define(name)
        # What is explained was checked by itself, so it has to be run as it was checked.
        return query if explain is None else f"EXPLAIN {explain['how'] or ''} {query}"

    def _require_select(self, text: str) -> None:
        kinds = self._statements(text)
        if len(kinds) != 1:
            raise UsageError(f"SQL: {len(kinds)} statements", "give exactly one SELECT")
        kind = kinds[0]
        if kind == "MULTI":
            # A PIVOT, or a statement that writes and holds one; only a query can be a subquery.
            try:
                self._statements(f"FROM (\n{text.rstrip().rstrip(';')}\n)")
            except UsageError as error:
                hint = "write the PIVOT as a query by itself"
                raise UsageError("SQL: only SELECT and EXPLAIN are allowed", hint) from error
        elif kind != "SELECT":
            raise UsageError(f"SQL: {kind} is not allowed", "only SELECT and EXPLAIN are")

    def _statements(self, text: str) -> list[str]:
        """The kind of each statement in ``text``, as DuckDB names them."""
        try:
            statements = self._connection.extract_statements(text)
        except duckdb.Error as error:
            raise _as_usage_error(error) from error
        return [str(statement.type).rpartition(".")[2] for statement in statements]

    def _views_named_in(self, text: str) -> Sequence[str]:
        """Views that the query needs; all of them where that cannot be told.

        A table that is no view of ours is an error or one of DuckDB's catalogues, and these
        should list every view.
        """
        try:
            names = {name.lower() for name in self._connection.get_table_names(text)}
        except duckdb.Error:
            return VIEW_NAMES
        catalogue = re.search(r"\b(show|duckdb_\w+|information_schema)\b", text, re.IGNORECASE)
        return VIEW_NAMES if catalogue or not names <= set(VIEW_NAMES) else sorted(names)

    # Views --------------------------------------------------------------------------------

    def _define(self, view: str) -> None:
        if view in self._defined or view == "sources":
            return
        if view in _DERIVED:
            needed, select = _DERIVED[view]
            self._define(needed)
        elif view == "attributes":
            select = self._union_of_attributes()
        else:
            select = self._union(*_VIEWS[view])
        self._connection.execute(f"CREATE VIEW {view} AS {select}")
        self._defined.add(view)

    def _union(self, table: str, columns: str) -> str:
        """The rows of all traces, with the number and the rank of each."""
        parts = []
        for source, tables in enumerate(self._tables):
            self._register(f"_{table}_{source}", tables.table, table)
            chosen = columns.format(
                op_attributes=_attribute_columns(tables, OP_ATTRIBUTES),
                device_attributes=_attribute_columns(tables, DEVICE_ATTRIBUTES),
                instruction_attributes=_attribute_columns(tables, INSTRUCTION_ATTRIBUTES),
            )
            parts.append(f"SELECT {self._owner(source)}, {chosen} FROM _{table}_{source}")
        return " UNION ALL ".join(parts)

    def _union_of_attributes(self) -> str:
        nothing = (
            f"SELECT {self._owner(0)}, 0::BIGINT AS slice, '' AS key, "
            "NULL::HUGEINT AS int_value, NULL::VARCHAR AS text_value WHERE false"
        )
        parts = [nothing]
        for source, tables in enumerate(self._tables):
            for key in filter(tables.has_attribute, ATTRIBUTES):
                base = f"_attribute_{key}_{source}"
                self._register(base, tables.attribute, key)
                is_text = ATTRIBUTES[key] is AttributeType.TEXT
                value = "NULL::HUGEINT, value" if is_text else "value::HUGEINT, NULL::VARCHAR"
                parts.append(
                    f"SELECT {self._owner(source)}, slice::BIGINT, '{key}', {value} FROM {base}"
                )
        return " UNION ALL ".join(parts)

    def _owner(self, source: int) -> str:
        rank = self._profile.traces[source].source.rank
        return f"{source}::INTEGER AS source, {'NULL' if rank is None else rank}::INTEGER AS rank"

    def _register(self, base: str, make: Callable[[str], Any], what: str) -> None:
        if base not in self._registered:
            self._connection.register(base, make(what))
            self._registered.add(base)

    def _define_sources(self) -> None:
        import pyarrow as pa

        traces = self._profile.traces
        sources = [trace.source for trace in traces]
        table = pa.table(
            {
                "source": pa.array(range(len(traces)), pa.int32()),
                "rank": pa.array([source.rank for source in sources], pa.int32()),
                "world_size": pa.array([source.world_size for source in sources], pa.int32()),
                "path": pa.array([source.path for source in sources], pa.string()),
                "format": pa.array([source.format for source in sources], pa.string()),
                "num_events": pa.array([source.num_events for source in sources], pa.int64()),
                "complete": pa.array([trace.health.complete for trace in traces], pa.bool_()),
                "simulated": pa.array([source.simulated for source in sources], pa.bool_()),
                "base_time_ns": pa.array([source.base_time_ns for source in sources], pa.int64()),
                "epoch": pa.array([source.epoch for source in sources], pa.bool_()),
            }
        )
        self._connection.register("sources", table)

    def _define_args(self) -> None:
        """``args(id)`` and ``args(source, id)``: all args of a slice, as JSON text."""
        connection: Any = self._connection  # the stubs differ between releases of DuckDB
        connection.create_function(
            "_args",
            self._args_text,
            ["BIGINT", "BIGINT"],
            "VARCHAR",
            null_handling="special",
        )
        one = "(id) AS _args(0, id), " if len(self._profile.traces) == 1 else ""
        self._connection.execute(f"CREATE MACRO args{one or ' '}(source, id) AS _args(source, id)")

    def _args_text(self, source: int | None, slice_id: int | None) -> str | None:
        if source is None or slice_id is None or not 0 <= source < len(self._profile.traces):
            return None
        trace = self._profile.traces[source]
        if not 0 <= slice_id < len(trace.slices):
            return None
        with self._args_lock:  # DuckDB asks from several threads
            return trace.args_text(slice_id).decode("utf-8", "replace") or None


def connect(profile: Profile) -> SqlSession:
    """Open a SQL session over a profile."""
    return SqlSession(profile)


def _as_usage_error(error: duckdb.Error) -> UsageError:
    """DuckDB's message on one line, without the drawing of the query beneath it."""
    message = re.split(r"\n+LINE \d+:", str(error))[0]
    hint = None
    if isinstance(error, duckdb.CatalogException) and "Table with name" in message:
        hint = f"the views are {', '.join(VIEW_NAMES)}"
        message = message.split("\n")[0]
    if isinstance(error, duckdb.PermissionException):
        hint = "queries cannot reach files or the network"
    return UsageError("SQL: " + " ".join(message.split()).rstrip("!."), hint)


def _json_value(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [_json_value(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _json_value(item) for key, item in value.items()}
    return value.hex() if isinstance(value, bytes) else str(value)
