"""Tells Neuron's JSON documents from other JSON by the names of their first members."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum

from trnscope.ingest.neuron_figures import is_block_name, is_summary

_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"(\s*:)?|([{}\[\]])', re.DOTALL)
_MAX_KEY_DEPTH = 3

_SYSTEM = frozenset(
    {
        "trace_event",
        "trace_events",
        "mem_usage",
        "cpu_util",
        "device_mem_usage",
        "system_profile_metadata",
        "device_profile_list",
    }
)
_DEVICE = frozenset({"instruction", "dma", "layer_summary", "summary_groups", "profile_info"})
_LIVE = frozenset({"event_type", "phase"})
_CHROME = frozenset({"traceEvents", "ph"})


class NeuronJson(Enum):
    """The documents that Neuron's tools write."""

    SYSTEM = "system profile"
    DEVICE = "device profile"
    LIVE = "runtime events"
    SUMMARY = "summary"


def json_kind(text: str) -> NeuronJson | None:
    """What a JSON text is by its beginning; null for any other than Neuron's."""
    top: set[str] = set()
    inner: set[str] = set()
    for depth, key in _keys(text):
        (top if depth == 1 else inner).add(key)
    if not top.isdisjoint(_CHROME) or "ph" in inner:
        return None
    if inner >= _LIVE and (not top or "events" in top):
        return NeuronJson.LIVE
    if not top.isdisjoint(_SYSTEM) or (not top and inner >= {"name", "timestamp"}):
        return NeuronJson.SYSTEM
    if not top.isdisjoint(_DEVICE):
        return NeuronJson.DEVICE
    is_figures = is_summary(top | inner) or any(is_block_name(key) for key in top)
    return NeuronJson.SUMMARY if is_figures else None


def _keys(text: str) -> Iterator[tuple[int, str]]:
    """Names of members and how deep they stand, down to a list's objects' own."""
    depth = 0
    for match in _TOKEN.finditer(text):
        bracket = match[3]
        if bracket is None:
            if match[2] is not None and depth <= _MAX_KEY_DEPTH:
                yield depth, match[1]
        else:
            depth += 1 if bracket in "{[" else -1
