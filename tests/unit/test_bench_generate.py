"""The benchmark generator: its layout, its determinism and the answers it promises."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks import generate, template


@pytest.fixture(scope="module", params=["kineto", "lines"])
def generated(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, generate.Expected]:
    path = tmp_path_factory.mktemp("bench") / f"{request.param}.json"
    return path, generate.generate(path, 14_000_000, request.param, seed=3)


@pytest.fixture(scope="module")
def events(generated: tuple[Path, generate.Expected]) -> list[dict[str, Any]]:
    document = json.loads(generated[0].read_bytes(), parse_float=str)
    read: list[dict[str, Any]] = document["traceEvents"]
    return read


def decimal_ns(text: str) -> int:
    whole, _, fraction = text.partition(".")
    return int(whole) * 1000 + int(fraction.ljust(3, "0"))


def test_replay_without_change_equals_torchs_own_bytes() -> None:
    text = template.recorded_text()
    body = text[text.index('"traceEvents": [\n    ') + 21 : text.rindex("\n  ],")]
    origin = min(decimal_ns(ts) for ts in re.findall(r'"ts": (\d+\.\d{3})', text))
    events = tuple(template.parse_events(text))
    section = generate.Section(events, generate.multi_line)
    strides = dict.fromkeys(section.kinds, 0)
    written = section.text(generate.Repeat(0, origin, 1000), strides)
    assert written == body.encode() + b","


def test_answers_equal_those_of_pythons_json(
    generated: tuple[Path, generate.Expected], events: list[dict[str, Any]]
) -> None:
    path, expected = generated
    groups: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for event in events:
        if event["ph"] == "X":
            group = groups[event["cat"], event["name"]]
            group[0] += 1
            group[1] += decimal_ns(event["dur"])
    assert len(events) == expected.num_events
    assert sum(count for count, _ in groups.values()) == expected.num_slices
    assert groups == {(g.category, g.name): [g.count, g.total_ns] for g in expected.groups}
    assert path.stat().st_size == expected.num_bytes


def test_steps_are_numbered_without_gap(
    generated: tuple[Path, generate.Expected], events: list[dict[str, Any]]
) -> None:
    _, expected = generated
    names = [
        e["name"]
        for e in events
        if e.get("cat") == "user_annotation" and e["name"].startswith("ProfilerStep#")
    ]
    numbers = [int(name.partition("#")[2]) for name in names]
    assert len(numbers) == expected.num_steps
    assert numbers == list(range(numbers[0], numbers[0] + expected.num_steps))


def test_each_device_row_has_one_launch_before_it(events: list[dict[str, Any]]) -> None:
    calls = {e["args"]["correlation"]: e for e in events if e.get("cat") == "cuda_runtime"}
    device_cats = ("kernel", "gpu_memcpy", "gpu_memset")
    work = [e for e in events if e.get("cat") in device_cats]
    flow_ends = {e["id"]: e for e in events if e["ph"] == "f" and e["cat"] == "ac2g"}
    assert len({e["args"]["correlation"] for e in work}) == len(work) == len(flow_ends)
    for event in work:
        correlation = event["args"]["correlation"]
        assert decimal_ns(calls[correlation]["ts"]) < decimal_ns(event["ts"])
        assert calls[correlation]["args"]["External id"] == event["args"]["External id"]
        assert flow_ends[correlation]["ts"] == event["ts"]


def test_streams_run_one_thing_at_a_time(events: list[dict[str, Any]]) -> None:
    free: dict[int, int] = {}
    device_cats = ("kernel", "gpu_memcpy", "gpu_memset")
    work = [e for e in events if e.get("cat") in device_cats]
    for start, dur, stream in sorted(
        (decimal_ns(e["ts"]), decimal_ns(e["dur"]), e["tid"]) for e in work
    ):
        assert start >= free.get(stream, 0)
        free[stream] = start + dur
    assert set(free) == {template.COMPUTE_STREAM, template.COMMUNICATION_STREAM}


def test_ids_are_unique_over_the_repeats(events: list[dict[str, Any]]) -> None:
    python = [e["args"]["Python id"] for e in events if e.get("cat") == "python_function"]
    ops = [e["args"]["External id"] for e in events if e.get("cat") == "cpu_op"]
    assert len(set(python)) == len(python)
    assert len(set(ops)) == len(ops)


def test_sections_follow_kinetos_order(events: list[dict[str, Any]]) -> None:
    section_of = {
        "cpu_op": 0, "user_annotation": 0, "fwdbwd": 0, "cpu_instant_event": 1,
        "python_function": 2, "cuda_runtime": 3, "kernel": 3, "gpu_memcpy": 3,
        "gpu_memset": 3, "ac2g": 3, "gpu_user_annotation": 4, "Trace": 5,
    }  # fmt: skip
    order = [section_of[e["cat"]] for e in events if "cat" in e]
    assert order == sorted(order)
    assert set(order) == {0, 1, 2, 3, 4, 5}


def test_same_seed_same_bytes_and_files_are_reused(tmp_path: Path) -> None:
    def digest(name: str, seed: int) -> str:
        generate.generate(tmp_path / name, 7_000_000, "kineto", seed)
        return hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()

    first, again, other = digest("a.json", 1), digest("b.json", 1), digest("c.json", 2)
    assert first == again
    assert first != other
    written = (tmp_path / "a.json").stat().st_mtime_ns
    digest("a.json", 1)
    assert (tmp_path / "a.json").stat().st_mtime_ns == written
    digest("a.json", 2)
    assert digest("a.json", 2) == other
