"""Writes the example Neuron profiles of the documentation: a system and a device profile, as JSON.

Made up by hand from the documented shapes; nothing was recorded.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[1] / "docs" / "examples"
SYSTEM = "neuron_system_profile.json"
DEVICE = "neuron_device_profile.json"

_ZERO = 1_790_000_000_000_000_000
_FIRST_SEQUENCE = (1 << 48) + 1
_OPS = (("aten::mm", 1, 42_000), ("aten::add", 2, 18_000))
_HOST = {"instance_id": "i-00000000000000000", "process_id": "4242"}


def _event(number: int, name: str, start: int, duration: int, **more: Any) -> dict[str, Any]:
    event = {"id": number, "name": name, "timestamp": _ZERO + start, "duration": duration}
    return event | _HOST | {"type": 11, "group": "nrt-nc-000"} | more


def system_profile() -> str:
    """Two steps of two ops on a logical core that is made of two physical ones."""
    events: list[dict[str, Any]] = []

    def add(name: str, start: int, duration: int, **more: Any) -> None:
        events.append(_event(len(events) + 1, name, start, duration, **more))

    host = {"thread_id": 4250, "trace_event_source": "framework", "group": "framework-4250"}
    sequence = _FIRST_SEQUENCE
    for step in range(2):
        zero = step * 150_000
        add(f"ProfilerStep#{step}", zero, 140_000, cat="user_annotation", **host)
        free = zero
        for at, (op, model, duration) in enumerate(_OPS):
            call = zero + 10_000 + 25_000 * at
            number = {"flow_id": [str(sequence)]}
            add(op, call, 20_000, cat="cpu_op", **host, **number)
            add("nrta_execute_schedule", call + 5_000, 10_000, thread_id=4250, nc_idx=0, **number)
            start = max(call + 20_000, free)
            free = start + duration
            run = {"nc_idx": 0, "model_id": model, "model_name": f"/profile/neff_{op[6:]}.neff"}
            both = {"flow_id": [str(sequence), str(step + 1)]}
            add("kbl_exec_wait", start, duration, thread_id=9000, **run, **both)
            for core in range(2):
                more = {"device_core_idx": core, "flow_id": [str(step + 1)]}
                add("nc_exec_running", start, duration, thread_id=9000, **run, **more)
            sequence += 1
    memory = {"timestamp": _ZERO, "duration": 1, "usage": 4_000_000_000, "percent_usage": 3.1}
    document = {"trace_events": events, "mem_usage": [memory], "warnings": []}
    return json.dumps(document, indent=1) + "\n"


def device_profile() -> str:
    """Two tiles of a matrix product: loads, products, and the result on its way out."""
    instructions, transfers = [], []
    for tile in range(2):
        zero = 1_000 + 4_000 * tile
        transfers.append(_transfer("weights", zero, 1_500, 65_536, "data"))
        instructions += [
            _instruction("TensorMatrix", "LDWEIGHTS", zero + 1_600, 400),
            _instruction("TensorMatrix", "MATMUL", zero + 2_000, 1_600),
            _instruction("Vector", "TENSOR_COPY", zero + 3_600, 300),
        ]
        transfers.append(_transfer("result", zero + 3_900, 700, 32_768, "output"))
    summary = {
        "total_time": 8.6e-06,
        "tensor_engine_active_time": 4.0e-06,
        "tensor_engine_active_time_percent": 0.4651,
        "mfu_estimated_percent": 0.31,
        "mbu_estimated_percent": 0.05,
    }
    document = {"summary": [summary], "instruction": instructions, "dma": transfers}
    return json.dumps(document, indent=1) + "\n"


def _instruction(engine: str, opcode: str, start: int, duration: int) -> dict[str, Any]:
    return {
        "timestamp": start,
        "duration": duration,
        "label": engine,
        "opcode": opcode,
        "hlo_name": "%dot.1",
        "operands": "",
    }


def _transfer(name: str, start: int, duration: int, size: int, queue: str) -> dict[str, Any]:
    return {
        "variable": name,
        "transfer_size": size,
        "source": [["HBM"]],
        "dest": [["SB"]],
        "timestamp": start,
        "duration": duration,
        "queue_type": queue,
        "semaphore_id": "-1",
    }


def texts() -> dict[str, str]:
    """File name to content."""
    return {SYSTEM: system_profile(), DEVICE: device_profile()}


def main() -> None:
    """Write the files."""
    for name, text in texts().items():
        (EXAMPLES / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
