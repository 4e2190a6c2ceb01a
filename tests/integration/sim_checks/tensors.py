"""Tensors, memory, random numbers, files and errors of the device."""

from __future__ import annotations

import copy
import io
import os
import pickle
import subprocess
import sys

import torch
from torch import nn

import trnscope.sim
from trnscope.errors import UsageError

DEVICE = trnscope.sim.activate()
NEURON = torch.neuron


def raises(kind: type[BaseException], text: str, call: object, *arguments: object) -> None:
    assert callable(call)
    try:
        call(*arguments)
    except kind as error:
        assert text in str(error), error
        return
    raise AssertionError(f"{kind.__name__} was not raised")


def check_activation_is_idempotent() -> None:
    assert trnscope.sim.is_active()
    assert trnscope.sim.activate() is DEVICE
    raises(
        UsageError, "already has a simulated trn2.3xlarge", trnscope.sim.activate, "trn1.2xlarge"
    )


def check_torch_knows_the_device() -> None:
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("neuron")
    assert torch.accelerator.device_count() == NEURON.device_count() == 4
    assert "simulated" in NEURON.get_device_name()
    assert NEURON.get_device_properties().total_memory == 24 << 30
    assert torch.ones(2, device="neuron:3").device.index == 3
    raises(RuntimeError, "does not exist", lambda: torch.ones(2, device="neuron:4"))


def check_current_core_and_contexts() -> None:
    assert NEURON.current_device() == 0
    with NEURON.device(2):
        assert torch.ones(1, device="neuron").device.index == 2
    assert NEURON.current_device() == 0
    with torch.device("neuron:1"):
        assert torch.ones(1).device.index == 1


def check_grouped_query_attention_is_one_execution() -> None:
    generator = torch.Generator().manual_seed(0)
    shapes = ((2, 8, 16, 32), (2, 2, 16, 32), (2, 2, 16, 32))
    inputs = [torch.randn(shape, generator=generator) for shape in shapes]
    results = []
    for device in ("cpu", "neuron"):
        q, k, v = (one.to(device, copy=True).requires_grad_() for one in inputs)
        before = DEVICE.extension.num_launches()
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        if device == "neuron":
            assert DEVICE.extension.num_launches() == before + 1
            last = DEVICE.extension.launch_columns()["signature"][-1]
            names = {row[0]: row[1] for row in DEVICE.extension.executions()}
            assert names[last] == "aten::_scaled_dot_product_fused_attention_overrideable"
        y.square().sum().backward()
        results.append([y.detach().cpu(), *(one.grad.cpu() for one in (q, k, v))])
    for one, other in zip(*results, strict=True):
        assert torch.equal(one, other)


def check_in_place_out_and_views() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    y = x.to("neuron")
    for t in (x, y):
        t[1:].mul_(2)
        t.t()[0].add_(1)
        torch.add(t, 1, out=t)
        t.view(-1)[::2] = 0
    assert torch.equal(x, y.cpu())
    out = torch.empty(0, device="neuron")
    torch.mm(y, y.t(), out=out)
    assert torch.equal(torch.mm(x, x.t()), out.cpu())
    assert y.unfold(0, 2, 1).shape == x.unfold(0, 2, 1).shape
    z = y.clone()
    z.squeeze_().unsqueeze_(0).transpose_(1, 2)
    assert torch.equal(z.cpu(), (x.unsqueeze(0)).transpose(1, 2))


def check_results_that_depend_on_values() -> None:
    x = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    y = x.to("neuron")
    assert torch.equal(y.nonzero().cpu(), x.nonzero())
    assert torch.equal(y[y > 0].cpu(), x[x > 0])
    assert torch.equal(y.unique().cpu(), x.unique())
    assert torch.equal(y, y.clone()) and not torch.equal(y, y + 1)
    assert bool((y == x.to("neuron")).all())
    y[y > 1] = 7
    x[x > 1] = 7
    assert torch.equal(y.cpu(), x)
    assert torch.equal(y[torch.tensor([1, 0])].cpu(), x[[1, 0]])


def check_a_host_tensor_may_change_after_its_copy() -> None:
    x = torch.zeros(1 << 16)
    copies = []
    for i in range(20):
        x.fill_(i)
        copies.append(x.to("neuron", non_blocking=True))
    assert [c[-1].item() for c in copies] == list(range(20))


def check_types_and_layouts_survive_the_round_trip() -> None:
    for dtype in (torch.bool, torch.int8, torch.int64, torch.float16, torch.bfloat16, torch.cfloat):
        x = torch.ones(2, 3, 4, 5).to(dtype).to(memory_format=torch.channels_last)
        y = x.to("neuron")
        assert y.stride() == x.stride() and torch.equal(y.cpu(), x)
        assert torch.equal(y.to(torch.float32).cpu(), x.to(torch.float32))
    c = torch.randn(4, dtype=torch.cfloat)
    d = c.to("neuron")
    assert torch.equal(d.conj().cpu(), c.conj()) and torch.equal(d.conj().imag.cpu(), c.conj().imag)


def check_copies_between_cores() -> None:
    x = torch.randn(5, device="neuron:0")
    y = x.to("neuron:2")
    assert y.device.index == 2 and torch.equal(x.cpu(), y.cpu())
    raises(RuntimeError, "on the same device", torch.add, x, y)
    raises(RuntimeError, "on the same device", torch.add, x, torch.randn(5))


def check_random_numbers_equal_the_cpus() -> None:
    for make in (torch.randn, torch.rand):
        torch.manual_seed(5)
        theirs = make(1000)
        torch.manual_seed(5)
        assert torch.equal(make(1000, device="neuron").cpu(), theirs)
    torch.manual_seed(5)
    theirs = torch.randperm(100)
    torch.manual_seed(5)
    assert torch.equal(torch.randperm(100, device="neuron").cpu(), theirs)
    generator = torch.Generator(device="neuron").manual_seed(9)
    ours = torch.randn(10, device="neuron", generator=generator).cpu()
    assert torch.equal(ours, torch.randn(10, generator=torch.Generator().manual_seed(9)))
    state = NEURON.get_rng_state()
    first = torch.rand(4, device="neuron")
    NEURON.set_rng_state(state)
    assert torch.equal(first, torch.rand(4, device="neuron"))
    NEURON.manual_seed(11)
    assert NEURON.initial_seed() == 11


def check_memory_is_counted_and_runs_out() -> None:
    before = NEURON.memory_allocated()
    x = torch.empty(1000, device="neuron")
    assert NEURON.memory_allocated() - before == 4096
    NEURON.reset_peak_memory_stats()
    y = torch.empty(1 << 20, device="neuron")
    del y
    assert NEURON.max_memory_allocated() - NEURON.memory_allocated() == 4 << 20
    del x
    assert NEURON.memory_allocated() == before
    assert torch.accelerator.memory_allocated() == before
    stats = NEURON.memory_stats()
    assert stats["allocated_bytes.current"] == before and stats["num_ooms"] == 0
    free, total = NEURON.mem_get_info()
    assert total == 24 << 30 and total - free == before
    raises(
        torch.OutOfMemoryError,
        "neuron out of memory. Tried to allocate",
        lambda: torch.empty(25 << 30, dtype=torch.int8, device="neuron"),
    )
    assert NEURON.memory_stats()["num_ooms"] == 1
    big = torch.empty(23 << 30, dtype=torch.int8, device="neuron")
    raises(torch.OutOfMemoryError, "out of memory", torch.add, big, big)
    del big
    assert NEURON.memory_allocated() == before
    NEURON.empty_cache()
    assert "allocated_bytes.peak" in NEURON.memory_summary()


def check_files_copies_and_pickles() -> None:
    model = nn.Linear(4, 3).to("neuron")
    x = torch.randn(2, 4, device="neuron")
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    buffer.seek(0)
    loaded = torch.load(buffer)
    assert loaded["weight"].device.type == "neuron"
    buffer.seek(0)
    on_cpu = torch.load(buffer, map_location="cpu")
    assert torch.equal(on_cpu["weight"], model.weight.cpu())
    twin = copy.deepcopy(model)
    assert torch.equal(twin(x).cpu(), model(x).cpu())
    assert twin.weight.data_ptr() != model.weight.data_ptr()
    assert torch.equal(pickle.loads(pickle.dumps(x)).cpu(), x.cpu())
    assert torch.equal(x.cpu(), torch.tensor(x.tolist()))
    assert str(x.device) in repr(x)


def check_storages_resize() -> None:
    x = torch.arange(8.0, device="neuron")
    storage = x.untyped_storage()
    before = NEURON.memory_allocated()
    storage.resize_(0)
    assert NEURON.memory_allocated() == before - 512
    storage.resize_(32)
    x.copy_(torch.arange(8.0))
    assert x.sum().item() == 28
    y = torch.arange(3, device="neuron").resize_(6)
    assert y.shape == (6,) and y[:3].tolist() == [0, 1, 2]
    z = torch.empty(0, device="neuron").set_(x.untyped_storage(), 2, (3,), (2,))
    assert z.tolist() == [2.0, 4.0, 6.0]


def check_pinned_memory_and_loaders() -> None:
    pinned = torch.ones(4).pin_memory()
    assert pinned.is_pinned() and not torch.ones(4).is_pinned()
    data = torch.utils.data.TensorDataset(torch.arange(8.0))
    loader = torch.utils.data.DataLoader(data, batch_size=4, pin_memory=True, num_workers=1)
    total = torch.zeros((), device="neuron")
    for (batch,) in loader:
        assert batch.is_pinned()
        total += batch.to("neuron", non_blocking=True).sum()
    assert total.item() == 28


def check_errors_of_kernels_arrive_with_the_op() -> None:
    table = torch.randn(4, 2, device="neuron")
    rows = torch.tensor([5], device="neuron")
    torch.index_select(table, 0, rows)
    raises(IndexError, "aten::index_select on the neuron device", NEURON.synchronize)
    NEURON.synchronize()
    assert table.shape == (4, 2)
    raises(RuntimeError, "shapes cannot be multiplied", lambda: table @ table)


def check_a_forked_process_must_not_use_it() -> None:
    torch.ones(1, device="neuron").item()
    child = os.fork()
    if child == 0:
        try:
            torch.ones(1, device="neuron").item()
        except RuntimeError as error:
            os._exit(3 if "spawn" in str(error) else 4)
        os._exit(5)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3


def check_importing_trnscope_does_not_import_torch() -> None:
    code = "import sys, trnscope.sim; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def check_custom_ops_run_on_the_worker() -> None:
    @torch.library.custom_op("trnscope_check::twice", mutates_args=(), device_types="cpu")
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    x = torch.ones(3, device="neuron")
    assert torch.ops.trnscope_check.twice(x).tolist() == [2, 2, 2]
    twice.register_fake(torch.empty_like)
    assert torch.ops.trnscope_check.twice(torch.ones(4, device="neuron")).tolist() == [2] * 4


def check_threads_use_it_together() -> None:
    import threading

    def work(results: list[float], seed: int) -> None:
        x = torch.full((64, 64), float(seed), device="neuron")
        for _ in range(50):
            x = (x @ x).clamp_(0, seed)
        results.append(x.mean().item())

    results: list[float] = []
    threads = [threading.Thread(target=work, args=(results, i)) for i in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [1.0, 2.0, 3.0, 4.0]


def check_function_transforms() -> None:
    from torch.func import grad, vmap

    def loss(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x @ w).sum()

    w, x = torch.randn(3), torch.randn(5, 3)
    theirs = vmap(grad(loss), in_dims=(None, 0))(w, x)
    ours = vmap(grad(loss), in_dims=(None, 0))(w.to("neuron"), x.to("neuron"))
    assert torch.equal(ours.cpu(), theirs)


def check_a_copy_to_the_host_that_nobody_waits_for_holds_the_numbers() -> None:
    x = torch.randn(300, 300)
    y = x.to("neuron")
    for _ in range(5):
        copied = (y @ y).to("cpu", torch.float64, non_blocking=True)
        assert torch.equal(copied, (x @ x).to(torch.float64))
