"""Two ranks train to the CPU's numbers, and collectives take the model's time."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

from tests.integration.free_port import free_port
from trnscope.sim.cost import CostModel
from trnscope.sim.signature import CollectiveSpec

COPY_D2H = 2
GRAPH = 5
COLLECTIVE = 6


@dataclass(frozen=True)
class Job:
    device: str
    mode: str
    port: int


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


def exchanges(rank: int, job: Job, results: Any) -> None:
    """What gloo itself lacks, or would wait for for ever."""
    start_rank(rank, job)
    found: list[Any] = []
    # To rank 0 one value, to rank 1 two; from rank 0 as many as this rank is given.
    sent = [torch.tensor([10.0 * rank]), torch.tensor([10.0 * rank + 1, 10.0 * rank + 2])]
    got = [torch.empty(rank + 1, device="neuron") for _ in range(2)]
    dist.all_to_all(got, [one.to("neuron") for one in sent])
    found.append([one.tolist() for one in got])
    if rank == 0:
        dist.send(torch.arange(3.0, device="neuron"), 1)
    else:
        anything = torch.empty(3, device="neuron")
        found.append([dist.recv(anything), anything.tolist()])
    # Both send before they receive, and change what they sent at once.
    here, there = torch.full((2,), 5.0 + rank, device="neuron"), torch.empty(2, device="neuron")
    works = [dist.isend(here, 1 - rank), dist.irecv(there, 1 - rank)]
    here.zero_()
    for work in works:
        work.wait()
    found.append(there.tolist())
    everyone: list[Any] = [None, None]
    dist.all_gather_object(everyone, found)
    if rank == 0:
        results.put(everyone)
    dist.barrier()
    dist.destroy_process_group()


def profiled(rank: int, job: Job, results: Any) -> None:
    """The collectives of a second group, in virtual time and in torch's own trace."""
    import json
    import tempfile
    from pathlib import Path

    from torch.profiler import ProfilerActivity, profile

    start_rank(rank, job)
    from trnscope.sim.virtual_trace.device import VirtualCapture

    pair = dist.new_group([0, 1], group_desc="both")
    joined, part = (torch.empty(size, device="neuron") for size in (8, 2))
    x = torch.arange(4.0, device="neuron")
    capture = VirtualCapture()
    capture.start()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1]) as prof:
        dist.all_gather_into_tensor(joined, x, group=pair)
        dist.reduce_scatter_tensor(part, x, group=pair)
        # This rank gives rank 0 one element and rank 1 three, and gets as many from each.
        own = 1 + 2 * rank
        dist.all_to_all_single(torch.empty(2 * own, device="neuron"), x, [own, own], [1, 3], pair)
        if rank == 0:
            dist.send(x.bfloat16(), 1, group=pair)
        else:
            dist.recv(torch.empty(4, dtype=torch.bfloat16, device="neuron"), 0, group=pair)
        dist.all_reduce(x)
    recording = capture.stop()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "torch.json"
        prof.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    told = [[row["cat"], row["args"]] for row in events if "Collective name" in row.get("args", {})]
    messages = [
        [launch.name, asdict(launch.message)]
        for launch in recording.launches
        if launch.message is not None
    ]
    hosts = [row.message is not None for row in recording.host if row.name == "record_param_comms"]
    if rank == 0:
        results.put([pair.group_name, messages, hosts, told])
    dist.barrier()
    dist.destroy_process_group()


def compiled(rank: int, job: Job, results: Any) -> None:
    """A collective in a compiled graph: is it launched beside the graph?"""
    import torch.distributed._functional_collectives as functional

    start_rank(rank, job)
    import trnscope.sim

    log = trnscope.sim.activate().extension

    def double_sum(x: torch.Tensor) -> torch.Tensor:
        return functional.all_reduce(x * 2, "sum", dist.group.WORLD) + 1

    step = torch.compile(double_sum, backend="neuron")
    x = torch.full((4,), rank + 1.0, device="neuron")
    step(x)
    log.clear_log()
    y = step(x).tolist()
    if rank == 0:
        results.put([y, log.launch_columns()["kind"].tolist()])
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


def check_lists_and_messages_arrive() -> None:
    of_0, of_1 = run(exchanges, "neuron")
    assert of_0 == [[[0.0], [10.0]], [6.0, 6.0]]
    assert of_1 == [[[1.0, 2.0], [11.0, 12.0]], [0, [0.0, 1.0, 2.0]], [5.0, 5.0]]


def check_profiles_tell_each_collectives_message() -> None:
    group, messages, hosts, told = run(profiled, "neuron")
    in_pair = {"group_name": group, "group_description": "both", "ranks": (0, 1), "rank": 0,
               "in_splits": (), "out_splits": (), "source": None, "destination": None}  # fmt: skip
    float32 = {"dtype": "Float", **in_pair}
    expected = [
        ["all_gather", {**float32, "call": "_allgather_base", "in_elements": 4,
                        "out_elements": 8, "sequence_number": 1}],
        ["reduce_scatter", {**float32, "call": "_reduce_scatter_base", "in_elements": 4,
                            "out_elements": 2, "sequence_number": 2}],
        ["all_to_all", {**float32, "call": "all_to_allv", "in_elements": 4, "out_elements": 2,
                        "in_splits": (1, 3), "out_splits": (1, 1), "sequence_number": 3}],
        ["send", {**float32, "call": "send", "in_elements": 4, "out_elements": 4,
                  "dtype": "BFloat16", "source": 0, "destination": 1, "sequence_number": 4}],
    ]  # fmt: skip
    assert messages[:4] == expected
    name, world = messages[4]
    assert (name, world["call"], world["group_name"]) == ("all_reduce", "allreduce", "0")
    assert world["ranks"] == (0, 1)
    assert hosts == [True] * 5
    # torch's own trace: the host's rows by torch, the device's by the plugin, in the same words.
    host = [args for category, args in told if category == "cpu_op"]
    device = [args for category, args in told if category == "kernel"]
    assert len(host) == len(device) == 5
    keys = ("Collective name", "In msg nelems", "Out msg nelems", "Group size", "dtype",
            "Process Group Name", "Process Group Description", "Process Group Ranks")  # fmt: skip
    for one, other in zip(host, device, strict=True):
        assert [one[key] for key in keys] == [other[key] for key in keys], (one, other)
    assert [args["Seq"] for args in device[:4]] == [1, 2, 3, 4]
    assert device[0]["Process Group Ranks"] == "[0, 1]"
    assert (device[3]["Src Rank"], device[3]["Dst Rank"]) == (0, 1)


def check_a_collective_in_a_graph_is_part_of_it() -> None:
    values, kinds = run(compiled, "neuron")
    assert values == [7.0] * 4
    assert kinds == [GRAPH, COPY_D2H]


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
