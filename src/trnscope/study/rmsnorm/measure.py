"""Runs one way to compute RMSNorm in a process of its own and writes down what was seen.

``python -m trnscope.study.rmsnorm.measure WAY DEVICE FOLDER`` leaves in FOLDER torch's own table,
the result of the last call, and a trace of the calls.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.profiler import ProfilerActivity

from trnscope.capture import simulation
from trnscope.capture.profile import profile
from trnscope.study.rmsnorm.norms import Fused, OpByOp, compiled
from trnscope.study.rmsnorm.plan import (
    NUM_CALLS,
    NUM_WARMUP_CALLS,
    RESULT_FILE,
    ROWS,
    TABLE_FILE,
    WIDTH,
    Way,
)

_TABLE_ROWS = 12


def main(way: Way, device: str, folder: Path) -> None:
    """Measure one way; a simulated device is made first."""
    if device.startswith(simulation.PREFIX):
        simulation.activate(simulation.parse_target(device, None, numerics=True))
        device = "neuron"
    measure(way, device, folder)


def measure(way: Way, device: str, folder: Path) -> None:
    """Warm up, write torch's table, record the calls, keep the result."""
    torch.manual_seed(0)
    x = torch.randn(ROWS, WIDTH).to(device)
    norm = build(way, device)
    with torch.no_grad():
        for _ in range(NUM_WARMUP_CALLS):
            norm(x)
        _synchronize(device)
        (folder / TABLE_FILE).write_text(_torch_table(norm, x, device), encoding="utf-8")
        result = _record(norm, x, device, folder)
    np.save(folder / RESULT_FILE, result.cpu().numpy())


def build(way: Way, device: str) -> nn.Module:
    """The module on the device; its weight is not all ones, so that it counts."""
    if way is Way.COMPILED:
        module = compiled(WIDTH, backend="neuron" if device == "neuron" else "inductor")
    else:
        module = OpByOp(WIDTH) if way is Way.OP_BY_OP else Fused(WIDTH)
    with torch.no_grad():
        next(module.parameters()).copy_(torch.linspace(0.5, 1.5, WIDTH))
    return module.to(device)


def _torch_table(norm: nn.Module, x: torch.Tensor, device: str) -> str:
    """What ``key_averages().table()`` prints of the calls."""
    with torch.profiler.profile(activities=_activities(device)) as profiler:
        for _ in range(NUM_CALLS):
            norm(x)
        _synchronize(device)
    order = "self_cpu_time_total" if device == "cpu" else "self_device_time_total"
    averages: Any = profiler.key_averages()
    text: str = averages.table(sort_by=order, row_limit=_TABLE_ROWS)
    return text


def _record(norm: nn.Module, x: torch.Tensor, device: str, folder: Path) -> torch.Tensor:
    """Trace the calls, each a step that waits for the device; the result of the last."""
    result, activities = x, _activities(device)
    with profile(folder, warmup=1, active=NUM_CALLS, repeat=1, activities=activities) as recording:
        for _ in range(1 + NUM_CALLS):
            result = norm(x)
            _synchronize(device)
            recording.step()
    return result


def _activities(device: str) -> list[Any]:
    by_device = {"cpu": [], "cuda": [ProfilerActivity.CUDA], "xpu": [ProfilerActivity.XPU]}
    return [ProfilerActivity.CPU, *by_device.get(device, [ProfilerActivity.PrivateUse1])]


def _synchronize(device: str) -> None:
    if device != "cpu":
        torch.accelerator.synchronize()


if __name__ == "__main__":
    main(Way(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
