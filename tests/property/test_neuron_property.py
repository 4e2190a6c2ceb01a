"""Laws of the Neuron readers: documents are read as json reads them, cores are merged exactly."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.neuron_profiles import event
from trnscope.ingest.neuron_event import event_from
from trnscope.ingest.neuron_executions import ExecutionFinder
from trnscope.ingest.neuron_json_kind import json_kind
from trnscope.ingest.neuron_json_stream import JsonStream

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=4) | st.dictionaries(st.text(), v, max_size=4)
)


def chunks(text: bytes, size: int) -> list[bytes]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@given(
    st.dictionaries(st.text(), VALUES, max_size=5), st.integers(1, 40), st.sampled_from([None, 1])
)
def test_a_document_is_read_as_json_reads_it(
    document: dict[str, Any], size: int, indent: int | None
) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=False).encode("utf-8", "replace")
    expected = [
        (key, one)
        for key, value in json.loads(text).items()
        for one in (value if isinstance(value, list) else [value])
    ]
    stream = JsonStream(chunks(text, size))
    assert list(stream) == expected
    assert stream.problem is None


@given(st.lists(VALUES, min_size=1, max_size=6), st.data())
def test_a_cut_off_list_gives_a_beginning_of_it_and_says_so(
    values: list[Any], data: st.DataObject
) -> None:
    text = json.dumps(values).encode()
    kept = data.draw(st.integers(0, len(text) - 1))
    stream = JsonStream([text[:kept]])
    found = [value for _, value in stream]
    # A number at the very end may have lost digits; all before it is as it was.
    assert found[:-1] == json.loads(text)[: len(found)][:-1]
    assert len(found) <= len(values)
    assert stream.problem is not None


@given(st.text() | VALUES.map(json.dumps))
def test_telling_documents_apart_never_fails(text: str) -> None:
    json_kind(text)
    json_kind(text[: len(text) // 2])


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 9), st.integers(0, 9)), max_size=20),
    st.sampled_from(["flow_id", "exec_id", None]),
    st.integers(1, 4),
    st.randoms(use_true_random=False),
)
def test_each_execution_is_merged_over_its_cores_and_no_others(
    runs: list[tuple[int, int, int]],
    numbered_by: str | None,
    num_cores: int,
    shuffle: random.Random,
) -> None:
    rows, expected, now = [], [], 0
    for number, (duration, skew, pause) in enumerate(runs):
        skew = min(skew, duration - 1)  # cores of one execution run at the same time
        for core in range(num_cores):
            more: dict[str, Any] = {"nc_idx": 3, "pcore_idx": core, "model_id": 7}
            if numbered_by is not None:
                more[numbered_by] = [str(number)] if numbered_by == "flow_id" else number
            late = skew if core else 0
            rows.append(event("nc_exec_running", "neuron_hw", now + late, duration, **more))
        end = now + duration + (skew if num_cores > 1 else 0)
        expected.append((now, end))
        now = end + pause
    shuffle.shuffle(rows)
    events = [found for row in rows if (found := event_from(row)) is not None]
    found = [(one.start_ns, one.end_ns) for one in ExecutionFinder(events).find()]
    assert found == expected


def test_the_helper_writes_what_the_reader_takes(tmp_path: Path) -> None:
    found = event_from(event("x", "neuron_rt", 5, 2, nc_idx=1, model_id=4))
    assert found is not None
    assert (found.start_ns, found.dur_ns, found.core, found.model) == (5, 2, 1, 4)
