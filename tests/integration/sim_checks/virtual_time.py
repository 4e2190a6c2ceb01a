"""The virtual clock: one execution for each op, by the cost model's times and the clock's rules."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn

import trnscope.sim
from trnscope.sim.cost import CostModel
from trnscope.sim.signature import OpSignature, TensorSpec

ROOT = Path(__file__).parents[3]
DEVICE = trnscope.sim.activate()
LOG = DEVICE.extension
RUNTIME = DEVICE.model.runtime
KERNEL, TO_DEVICE, TO_HOST, MEMSET = 0, 1, 2, 4
VIRTUAL = ("kind", "core", "stream", "host_start_ns", "host_end_ns", "compile_ns",
           "device_start_ns", "device_end_ns", "bytes")  # fmt: skip


def logged() -> dict[str, np.ndarray]:
    return dict(LOG.launch_columns())


def names() -> list[str]:
    by_number = [row[1] for row in LOG.executions()]
    return [by_number[number] for number in logged()["signature"]]


def start_afresh() -> None:
    torch.neuron.synchronize()
    LOG.clear_log()


def check_every_op_is_one_execution_and_views_are_none() -> None:
    x = torch.randn(8, 16).to("neuron")
    w, b = torch.randn(4, 16).to("neuron"), torch.randn(4).to("neuron")
    start_afresh()
    y = nn.functional.linear(x, w, b)
    z = y.t().reshape(2, 16)[:1].view(4, 4)
    torch.nn.functional.layer_norm(z.relu().contiguous(), (4,))
    gathered = "aten::_copy_from"  # what reshape has to copy
    assert names() == ["aten::addmm", gathered, "aten::relu", "aten::native_layer_norm"]


def check_rms_norm_is_one_execution_each_way() -> None:
    x = torch.randn(8, 16).to("neuron").requires_grad_()
    norm = nn.RMSNorm(16).to("neuron")
    start_afresh()
    y = norm(x)
    assert names() == ["aten::_fused_rms_norm"]
    y.sum().backward()
    assert names().count("aten::_fused_rms_norm_backward") == 1
    assert not {"aten::pow", "aten::rsqrt"} & set(names())


def check_costs_are_the_models() -> None:
    x = torch.randn(128, 64, dtype=torch.bfloat16, device="neuron")
    y = torch.randn(64, 256, dtype=torch.bfloat16, device="neuron")
    x @ y
    start_afresh()
    x @ y
    x @ y
    model = CostModel.for_instance("trn2.3xlarge")
    cost = model.op(
        OpSignature(
            "aten::mm",
            (TensorSpec((128, 64), "bfloat16"), TensorSpec((64, 256), "bfloat16")),
            (TensorSpec((128, 256), "bfloat16"),),
        )
    )
    log = logged()
    assert list(log["kind"]) == [KERNEL, KERNEL]
    spent = log["host_end_ns"] - log["host_start_ns"]
    assert spent.tolist() == [cost.host_ns, cost.host_ns]
    assert (log["device_end_ns"] - log["device_start_ns"])[1] == cost.device_ns
    assert log["bytes"].tolist() == [2 * (128 * 64 + 64 * 256 + 128 * 256)] * 2


def check_a_new_signature_compiles_once() -> None:
    x = torch.randn(3, 5, 7, device="neuron")
    start_afresh()
    for _ in range(3):
        x.exp()
    assert logged()["compile_ns"].tolist() == [RUNTIME.compile_eager_ns, 0, 0]


def check_numbers_that_change_every_step_compile_once() -> None:
    x = torch.randn(6, 5, device="neuron")
    x.mul(0.5)
    start_afresh()
    for i in range(4):
        x.mul(0.1 * i)
    assert logged()["compile_ns"].tolist() == [0] * 4
    x.pow(2.0)
    x.pow(2.5)
    assert all(logged()["compile_ns"][-2:] == RUNTIME.compile_eager_ns)


def check_order_on_a_core() -> None:
    x = torch.randn(64, 64, device="neuron")
    start_afresh()
    for _ in range(20):
        x = x.sin()
    log = logged()
    earliest = log["host_end_ns"] + RUNTIME.launch_latency_ns
    before = np.concatenate(([0], log["device_end_ns"][:-1]))
    assert (log["device_start_ns"] == np.maximum(earliest, before)).all()
    torch.neuron.synchronize()
    assert LOG.now_ns() == log["device_end_ns"][-1] + RUNTIME.sync_ns
    ends = log["device_end_ns"]
    depth = RUNTIME.eager_queue_depth
    assert (log["host_start_ns"][depth:] >= ends[:-depth]).all()


def check_reading_a_value_waits() -> None:
    x = torch.ones(4, 4, device="neuron")
    x.sum()
    start_afresh()
    before = LOG.now_ns()
    total = x.sum().item()
    log = logged()
    assert total == 16 and list(log["kind"]) == [KERNEL, TO_HOST]
    assert LOG.now_ns() == log["device_end_ns"][-1] + RUNTIME.sync_ns > before
    waits = LOG.wait_columns()
    assert waits["host_end_ns"][-1] == LOG.now_ns() and waits["kind"][-1] == 3


def check_events_measure_virtual_time() -> None:
    x = torch.randn(256, 256, device="neuron")
    x @ x
    start_afresh()
    start, end = torch.neuron.Event(), torch.neuron.Event()
    start.record()
    for _ in range(5):
        x @ x
    end.record()
    assert not end.query()
    end.synchronize()
    assert end.query()
    log = logged()
    expected = log["device_end_ns"][-1] - log["host_start_ns"][0]
    assert start.elapsed_time(end) == expected / 1e6


def check_a_loop_that_polls_comes_to_an_end() -> None:
    x = torch.randn(256, 256, device="neuron")
    event = torch.neuron.Event()
    (x @ x).sum()
    event.record()
    polls = 0
    while not event.query():
        polls += 1
    assert 0 < polls < 10_000
    assert torch.neuron.current_stream().query()


def check_a_core_runs_one_program_at_a_time_whatever_the_stream() -> None:
    x = torch.randn(2048, 2048, device="neuron", dtype=torch.bfloat16)
    side = torch.neuron.Stream()
    for stream in (torch.neuron.default_stream(), side):
        with torch.neuron.stream(stream):
            x @ x
    start_afresh()
    for stream in (torch.neuron.default_stream(), side, torch.neuron.default_stream()):
        with torch.neuron.stream(stream):
            x @ x
    log = logged()
    assert list(log["stream"] == 0) == [True, False, True]
    assert (log["device_start_ns"][1:] >= log["device_end_ns"][:-1]).all()


def check_copies_go_beside_programs_of_another_stream() -> None:
    x = torch.randn(2048, 2048, device="neuron")
    host = torch.randn(2048, 2048).pin_memory()
    side = torch.neuron.Stream()
    x @ x
    start_afresh()
    x @ x
    with torch.neuron.stream(side):
        host.to("neuron", non_blocking=True)
    log = logged()
    assert list(log["kind"]) == [KERNEL, TO_DEVICE]
    assert log["device_start_ns"][1] < log["device_end_ns"][0]


def check_a_stream_waits_for_another_when_told_to() -> None:
    x = torch.randn(512, 512, device="neuron")
    x @ x
    side = torch.neuron.Stream()
    with torch.neuron.stream(side):
        x @ x
    start_afresh()
    x @ x
    with torch.neuron.stream(side):
        assert torch.neuron.current_stream() == side
        x @ x
    side.wait_stream(torch.neuron.default_stream())
    with torch.neuron.stream(side):
        y = x @ x
    assert torch.neuron.current_stream() == torch.neuron.default_stream()
    log = logged()
    assert list(log["stream"] == 0) == [True, False, False]
    assert log["device_start_ns"][2] >= log["device_end_ns"][:2].max()
    side.synchronize()
    assert torch.allclose(y.cpu(), x.cpu() @ x.cpu(), rtol=1e-4, atol=1e-3)


def check_cores_have_their_own_time() -> None:
    tensors = [torch.randn(512, 512, device=f"neuron:{core}") for core in range(2)]
    for x in tensors:
        x @ x
    for core in range(2):
        torch.neuron.synchronize(core)
    LOG.clear_log()
    for x in tensors:
        x @ x
    log = logged()
    assert list(log["core"]) == [0, 1]
    assert log["device_start_ns"][1] == log["host_end_ns"][1] + RUNTIME.launch_latency_ns


def check_an_op_without_an_implementation_goes_to_the_cpu() -> None:
    x = torch.arange(64.0, device="neuron")
    x.masked_select(x > 3)
    start_afresh()
    x.masked_select(x > 3)
    kinds = list(logged()["kind"])
    assert kinds == [KERNEL, TO_HOST, TO_DEVICE]
    rows = {row[1]: row for row in LOG.executions() if row[4]}
    assert rows["aten::masked_select"][3] == 2


def train() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)).to("neuron")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(4):
        loss = model(torch.ones(8, 16, device="neuron")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
    torch.neuron.synchronize()


def digest() -> str:
    log = logged()
    columns = [log[name] - (log["host_start_ns"][0] if name.endswith(("start_ns", "end_ns")) else 0)
               for name in VIRTUAL]  # fmt: skip
    return hashlib.sha256(b"".join(np.ascontiguousarray(c).tobytes() for c in columns)).hexdigest()


def check_the_same_program_has_the_same_timeline() -> None:
    digests = []
    for _ in range(3):
        start_afresh()
        train()
        digests.append(digest())
    assert digests[1] == digests[2]


def check_the_same_script_has_the_same_timeline_on_a_busy_machine() -> None:
    code = (
        "from tests.integration.sim_checks import virtual_time as v;"
        "v.train(); print(v.digest(), v.LOG.now_ns(), v.LOG.num_launches())"
    )
    load = [sys.executable, "-c", "import time\nt=time.time()\nwhile time.time()-t<8: pass"]
    first = run(code)
    busy = [subprocess.Popen(load) for _ in range(3)]
    second = run(code)
    for process in busy:
        process.kill()
        process.wait()
    assert first == second and len(first.split()) == 3


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout


def check_the_log_counts_what_it_drops() -> None:
    x = torch.ones(2, device="neuron")
    start_afresh()
    LOG.set_log_capacity(3)
    for _ in range(5):
        x.add_(1)
    assert len(logged()["kind"]) == 3 and LOG.num_dropped() == 2
    LOG.set_log_capacity(1_000_000)
    start_afresh()


def check_sequence_ids_count_up_from_the_runtimes() -> None:
    x = torch.ones(2, device="neuron")
    start_afresh()
    x.add_(1).mul_(2)
    ids = logged()["sequence_id"].tolist()
    assert ids[0] > 1 << 48 and ids[1] == ids[0] + 1
    assert logged()["correlation_id"].tolist() == [i - (1 << 48) for i in ids]
