"""Programs for the tests of the simulated device's profiler; each runs in a process of its own.

Run as ``python -m tests.integration.sim_workloads NAME OUTPUT``: it writes what the test compares
as JSON to the file OUTPUT.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import trnscope.sim

DEVICE: Any = trnscope.sim.activate("trn2.3xlarge")

import torch  # noqa: E402
from torch.profiler import ProfilerActivity, profile  # noqa: E402

BOTH = [ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]


def train_step(model: Any, optimizer: Any, inputs: Any) -> None:
    optimizer.zero_grad()
    model(inputs.to("neuron")).square().mean().backward()
    optimizer.step()


def small_training() -> tuple[Any, Any, Any]:
    torch.manual_seed(0)
    layers = (torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 4))
    model = torch.nn.Sequential(*layers).to("neuron")
    return model, torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(8, 16)


def device_ns_since(first: int) -> int:
    columns = DEVICE.extension.launch_columns()
    spans = columns["device_end_ns"] - columns["device_start_ns"]
    return int(spans[first:].sum())


def launches_so_far() -> int:
    return int(DEVICE.extension.num_launches())


def table(folder: Path) -> dict[str, Any]:
    """torch's own table and trace of two training steps."""
    parts = small_training()
    train_step(*parts)
    before = launches_so_far()
    with profile(activities=BOTH, record_shapes=True, profile_memory=True) as prof:
        train_step(*parts)
        train_step(*parts)
        torch.neuron.synchronize()  # type: ignore[attr-defined]
    rows = prof.key_averages()
    prof.export_chrome_trace(str(folder / "torch.json"))
    cpu = torch.autograd.DeviceType.CPU
    on_device = [row for row in rows if row.device_type != cpu]
    ops = [row for row in rows if row.device_type == cpu]
    return {
        "text": rows.table(sort_by="self_device_time_total"),
        "log_ns": device_ns_since(before),
        "num_launches": launches_so_far() - before,
        "rows_ns": round(1000 * sum(row.self_device_time_total for row in on_device)),
        "ops_ns": round(1000 * sum(row.self_device_time_total for row in ops)),
        "num_rows": sum(row.count for row in on_device),
    }


def cpu_only(folder: Path) -> dict[str, Any]:
    """A profile of the CPU alone, while the device works."""
    parts = small_training()
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        train_step(*parts)
    prof.export_chrome_trace(str(folder / "torch.json"))
    return {"text": prof.key_averages().table()}


def filters(folder: Path) -> dict[str, Any]:
    """Two cores work; the profile is of one of them, and keeps five executions."""
    import warnings

    from torch_neuronx.profiling import NeuronConfig, NeuronProfiler, ProfileMode

    config = NeuronConfig(
        [ProfileMode.RUNTIME], 5, "1", profile_output_dir=folder / "a=b #1", neff_cache_dir=folder
    )
    exporter = NeuronProfiler(config)
    with (
        warnings.catch_warnings(record=True) as told,
        profile(
            activities=BOTH, experimental_config=config, on_trace_ready=exporter.export_trace
        ) as prof,
    ):
        warnings.simplefilter("always")
        for core in (0, 1):
            x = torch.ones(4, 4, device=f"neuron:{core}")
            for _ in range(8):
                x = x + x
    prof.export_chrome_trace(str(folder / "torch.json"))
    return {
        "folder": str(exporter.output_folder),
        "warnings": [str(one.message) for one in told],
        "dropped_by_torch": DEVICE.extension.profiler_num_dropped(),
    }


def without_the_device(folder: Path) -> dict[str, Any]:
    """What is told when the activities leave the device out, or the profiler is misused."""
    from torch_neuronx.profiling import NeuronConfig, NeuronProfiler

    config = NeuronConfig()
    older = NeuronProfiler(neuron_output_dir=str(folder))
    told = [
        told_by(lambda: export_of_a_cpu_profile(config, NeuronProfiler(config))),
        told_by(older.stop),
        told_by(lambda: (older.start(), older.start())),
        told_by(lambda: NeuronProfiler({"modes": []})),  # type: ignore[arg-type]
    ]
    older.stop()
    return {"told": told}


def told_by(action: Callable[[], object]) -> str:
    try:
        action()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def export_of_a_cpu_profile(config: Any, exporter: Any) -> None:
    with profile(activities=[ProfilerActivity.CPU], experimental_config=config) as prof:
        torch.ones(2) + 1
    exporter.export_trace(prof)


def older_profiler(_folder: Path) -> dict[str, Any]:
    """torch.autograd.profiler by the device's stubs."""
    x = torch.ones(64, 64, device="neuron")
    with torch.autograd.profiler.profile(use_device="neuron", use_kineto=False) as prof:
        x @ x
    row = next(row for row in prof.key_averages() if row.key == "aten::mm")
    columns = DEVICE.extension.launch_columns()
    mm_ns = int(columns["device_end_ns"][-1] - columns["device_start_ns"][-1])
    return {"device_us": row.device_time_total, "mm_ns": mm_ns}


def in_virtual_time(folder: Path) -> dict[str, Any]:
    """``trnscope.profile`` with steps."""
    import trnscope

    parts = small_training()
    with trnscope.profile(folder, wait=1, warmup=1, active=2, repeat=1) as run:
        for _ in range(4):
            train_step(*parts)
            run.step()
    return {"trace": str(run.path), "device": run.records[0].device}


def op_tracking(_folder: Path) -> dict[str, Any]:
    """The package's own lists of ops."""
    import torch_neuronx

    x = torch.ones(8, 8, device="neuron")
    x @ x
    torch_neuronx.clear_op_tracking()
    x + x
    torch_neuronx.synchronize()
    return {
        "executed": torch_neuronx.get_executed_ops(),
        "fallback": torch_neuronx.get_fallback_ops(),
        "initialized": torch_neuronx.is_neuron_runtime_initialized(),
    }


PROGRAMS: dict[str, Callable[[Path], dict[str, Any]]] = {
    function.__name__: function
    for function in (
        table,
        cpu_only,
        filters,
        without_the_device,
        older_profiler,
        in_virtual_time,
        op_tracking,
    )
}

if __name__ == "__main__":
    output = Path(sys.argv[2])
    output.write_text(json.dumps(PROGRAMS[sys.argv[1]](output.parent)))
