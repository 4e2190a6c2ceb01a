"""Two ranks train to the CPU's numbers, and collectives take the model's time."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

from trnscope.sim.cost import CostModel
from trnscope.sim.signature import CollectiveSpec

COLLECTIVE = 6


@dataclass(frozen=True)
class Job:
    device: str
    mode: str
    port: int


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def start_rank(rank: int, job: Job) -> None:
    os.environ |= {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(job.port),
        "RANK": str(rank),
        "WORLD_SIZE": "2",
    }
    torch.set_num_threads(1)
    if job.device == "neuron":
        import trnscope.sim

        trnscope.sim.activate()
        torch.neuron.set_device(rank)
    dist.init_process_group("neuron" if job.device == "neuron" else "gloo")


def parallel(model: nn.Module, job: Job) -> nn.Module:
    if job.mode == "ddp":
        return nn.parallel.DistributedDataParallel(model)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh(job.device, (2,))
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def train(rank: int, job: Job, results: Any) -> None:
    start_rank(rank, job)
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 4)).to(job.device)
    model = parallel(layers, job)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    generator = torch.Generator().manual_seed(rank)
    losses = []
    for _ in range(5):
        x = torch.randn(8, 16, generator=generator).to(job.device)
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if rank == 0:
        results.put(losses)
    dist.barrier()
    dist.destroy_process_group()


def collectives(rank: int, job: Job, results: Any) -> None:
    start_rank(rank, job)
    device = job.device
    total = torch.full((4,), rank + 1.0, device=device)
    dist.all_reduce(total)
    mean = torch.full((4,), rank + 1.0, device=device)
    if device == "neuron":
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
    else:
        dist.all_reduce(mean)
        mean /= 2
    gathered = [torch.empty(4, device=device) for _ in range(2)]
    dist.all_gather(gathered, total * (rank + 1))
    joined = torch.empty(8, device=device)
    dist.all_gather_into_tensor(joined, total + rank)
    part = torch.empty(2, device=device)
    dist.reduce_scatter_tensor(part, torch.arange(4.0, device=device) * (rank + 1))
    swapped = torch.empty(4, device=device)
    dist.all_to_all_single(swapped, torch.arange(4.0, device=device) + 10 * rank)
    sent = torch.arange(3.0, device=device)
    dist.broadcast(sent.mul_(rank), src=1)
    if rank == 0:
        dist.send(total, 1)
    else:
        dist.recv(sent := torch.empty(4, device=device), 0)
    work = dist.all_reduce(sent.sum(), async_op=True)
    assert work is not None
    work.wait()
    values = [t.tolist() for t in (total, mean, *gathered, joined, part, swapped)]
    if rank == 0:
        results.put(values)
    dist.barrier()
    dist.destroy_process_group()


def timed(rank: int, job: Job, results: Any) -> None:
    start_rank(rank, job)
    import trnscope.sim

    log = trnscope.sim.activate().extension
    x = torch.ones(1 << 25, dtype=torch.bfloat16, device="neuron")
    x.add_(1).mul_(2).float()
    dist.all_reduce(x)
    dist.barrier()
    torch.neuron.synchronize()
    log.clear_log()
    x.mul_(2)
    work = dist.all_reduce(x, async_op=True)
    x.float()
    work.wait()
    x.add_(1)
    columns = log.launch_columns()
    if rank == 0:
        results.put(
            [columns[name].tolist() for name in ("kind", "device_start_ns", "device_end_ns")]
        )
    dist.barrier()
    dist.destroy_process_group()


def run(function: Any, device: str, mode: str = "") -> Any:
    results = mp.get_context("spawn").SimpleQueue()
    mp.spawn(function, args=(Job(device, mode, free_port()), results), nprocs=2)
    return results.get()


def check_ddp_trains_to_the_cpus_numbers() -> None:
    assert run(train, "neuron", "ddp") == run(train, "cpu", "ddp")


def check_fsdp2_trains_to_the_cpus_numbers() -> None:
    assert run(train, "neuron", "fsdp") == run(train, "cpu", "fsdp")


def check_collectives_give_the_cpus_values() -> None:
    assert run(collectives, "neuron") == run(collectives, "cpu")


def check_a_collective_overlaps_until_it_is_waited_for() -> None:
    kinds, starts, ends = run(timed, "neuron")
    assert kinds == [0, COLLECTIVE, 0, 0]
    cost = CostModel.for_instance("trn2.3xlarge").collective(
        CollectiveSpec("all_reduce", 64 << 20, 2, "bfloat16")
    )
    assert ends[1] - starts[1] == cost.device_ns
    assert starts[1] >= ends[0]
    assert starts[2] < ends[1], "the conversion does not wait for the collective"
    assert starts[3] >= ends[1]
