"""Small PyTorch programs, each profiled here, with what torch's own table says of the run."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.autograd.profiler_util import EventList
from torch.profiler import ProfilerActivity, profile, record_function, schedule
from torch.utils.data import DataLoader, Dataset

from tests.integration.free_port import free_port


@dataclass(frozen=True)
class TorchRow:
    """One host row of ``key_averages()``; times in ns, ``shapes`` only when grouped by them."""

    name: str
    calls: int
    self_cpu_ns: int
    cpu_total_ns: int
    shapes: str | None = None
    has_negative: bool = False
    """Whether torch gives one of its calls an own time below zero."""


@dataclass(frozen=True)
class Recording:
    """An exported Chrome trace and torch's tables of the same run."""

    trace: Path
    rows: list[TorchRow]
    rows_by_shape: list[TorchRow]
    rows_without_python: list[TorchRow]
    """What torch's own code makes of the run's events less the Python frames."""

    def save(self) -> None:
        """Write the tables beside the trace, for another process to read."""
        self.trace.with_suffix(".rows").write_text(
            json.dumps(
                {name: [asdict(row) for row in rows] for name, rows in self.tables().items()}
            )
        )

    def tables(self) -> dict[str, list[TorchRow]]:
        """The tables by name."""
        return {
            "rows": self.rows,
            "rows_by_shape": self.rows_by_shape,
            "rows_without_python": self.rows_without_python,
        }

    @staticmethod
    def load(trace: Path) -> Recording:
        """Read what :meth:`save` wrote."""
        tables = json.loads(trace.with_suffix(".rows").read_text())
        return Recording(
            trace, **{name: [TorchRow(**row) for row in rows] for name, rows in tables.items()}
        )


def _ns(us: float) -> int:
    # torch keeps nanoseconds as a float of microseconds.
    return round(us * 1000)


def _table(events: EventList, by_shape: bool = False) -> list[TorchRow]:
    negative = {
        (event.name, str(event.input_shapes)) for event in events if event.self_cpu_time_total < 0
    }
    names = {name for name, _ in negative}
    return [
        TorchRow(
            row.key,
            row.count,
            _ns(row.self_cpu_time_total),
            _ns(row.cpu_time_total),
            str(row.input_shapes) if by_shape else None,
            (row.key, str(row.input_shapes)) in negative if by_shape else row.key in names,
        )
        for row in events.key_averages(group_by_input_shapes=by_shape)
        if row.device_type == torch.autograd.DeviceType.CPU
    ]


def _without_python(prof: profile) -> list[TorchRow]:
    fresh = prof.profiler._parse_kineto_results(prof.profiler.kineto_results)
    events = EventList([event for event in fresh if not event.is_python_function])
    events._build_tree()
    return _table(events)


def _record(prof: profile, trace: Path, python_export: bool = False) -> Recording:
    prof.export_chrome_trace(str(trace), use_python_export=python_export)
    events = prof.events()
    return Recording(trace, _table(events), _table(events, by_shape=True), _without_python(prof))


@contextmanager
def _recorded(
    folder: Path, out: list[Recording], *, python_export: bool = False, **options: Any
) -> Iterator[profile]:
    """Profile the block, export it to ``folder`` and append the recording to ``out``."""
    with profile(activities=[ProfilerActivity.CPU], **options) as prof:
        yield prof
    out.append(_record(prof, folder / f"run{len(out)}.json", python_export))


def _model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 4)
    )


def _step(model: nn.Module, optimizer: torch.optim.Optimizer, batch: torch.Tensor) -> None:
    optimizer.zero_grad()
    model(batch).square().mean().backward()
    optimizer.step()


def training_step(folder: Path) -> list[Recording]:
    """A few steps under torch's schedule, with its ProfilerStep annotations."""
    out: list[Recording] = []
    model = _model()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    plan = schedule(wait=1, warmup=1, active=3)
    with _recorded(folder, out, record_shapes=True, schedule=plan) as prof:
        for _ in range(5):
            _step(model, optimizer, torch.randn(8, 16))
            prof.step()
    return out


def compiled_model(folder: Path) -> list[Recording]:
    """A compiled model, its compilation included."""
    out: list[Recording] = []
    torch._dynamo.reset()
    compiled = torch.compile(_model(), backend="aot_eager")
    with _recorded(folder, out, record_shapes=True):
        for _ in range(2):
            compiled(torch.randn(8, 16)).sum().backward()
    return out


class _Rows(Dataset[torch.Tensor]):
    def __len__(self) -> int:
        return 12

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((16,), float(index)).sin()


def data_loader(folder: Path) -> list[Recording]:
    """A DataLoader with worker processes."""
    out: list[Recording] = []
    model = _model()
    with _recorded(folder, out):
        for batch in DataLoader(_Rows(), batch_size=4, num_workers=2):
            model(batch)
    return out


def nested_annotations(folder: Path) -> list[Recording]:
    """Annotations in one another, one named as an op is, one decorated, one reused."""
    out: list[Recording] = []
    model = _model()

    @record_function("decorated")
    def decorated(batch: torch.Tensor) -> torch.Tensor:
        with record_function("inner"):
            return model(batch)

    with _recorded(folder, out), record_function("outer"):
        for _ in range(3):
            with record_function("inner"):
                decorated(torch.randn(4, 16))
            with record_function("aten::addmm"):
                model(torch.randn(4, 16))
    return out


class _Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(value)
        return value * 2

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        (value,) = ctx.saved_tensors
        with record_function("custom backward"):
            return grads[0] * 2 + value * 0


def autograd_threads(folder: Path) -> list[Recording]:
    """Forward and backward on several threads, through a custom autograd function."""
    out: list[Recording] = []
    config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)

    def work() -> None:
        model = _model()
        with record_function("thread work"):
            for _ in range(2):
                _Scale.apply(model(torch.randn(4, 16))).sum().backward()

    with _recorded(folder, out, experimental_config=config):
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        work()
        for thread in threads:
            thread.join()
    return out


def memory_and_shapes(folder: Path) -> list[Recording]:
    """Memory and shapes recorded; some blocks are freed outside every op."""
    out: list[Recording] = []
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with _recorded(folder, out, record_shapes=True, profile_memory=True):
        for size in (4, 8, 4):
            _step(model, optimizer, torch.randn(size, 16))
            kept = torch.cat([torch.ones(size, 3), torch.ones(2 * size, 3)])
            del kept
    return out


def recursion(folder: Path) -> list[Recording]:
    """An annotation that opens itself again, alone in its parent and not."""
    out: list[Recording] = []

    def dive(levels: int, work: bool) -> None:
        with record_function("dive"):
            if work:
                torch.ones(4)
            if levels:
                dive(levels - 1, work)

    with _recorded(folder, out, record_shapes=True):
        dive(5, work=False)
        dive(5, work=True)
        dive(3, work=False)
    return out


def unclosed_annotation(folder: Path) -> list[Recording]:
    """An annotation that is still open when the profiler stops, and one begun before it."""
    out: list[Recording] = []
    early, late = record_function("begun before"), record_function("never closed")
    early.__enter__()
    with _recorded(folder, out, profile_memory=True):
        late.__enter__()
        torch.ones(3).sum()
        early.__exit__(None, None, None)
        torch.ones(4)
    late.__exit__(None, None, None)
    return out


def annotation_across_threads(folder: Path) -> list[Recording]:
    """An annotation begun on one thread and ended on another: not in WORKLOADS, see its test."""
    out: list[Recording] = []
    config = torch._C._profiler._ExperimentalConfig(profile_all_threads=True)
    with _recorded(folder, out, experimental_config=config):
        annotation = record_function("across threads")
        annotation.__enter__()
        torch.ones(3).sum()
        thread = threading.Thread(target=annotation.__exit__, args=(None, None, None))
        thread.start()
        thread.join()
        torch.ones(9).sum()
    return out


def with_stack(folder: Path) -> list[Recording]:
    """Python frames around the ops."""
    out: list[Recording] = []
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with _recorded(folder, out, with_stack=True, record_shapes=True, profile_memory=True):
        for _ in range(2):
            with record_function("train"):
                _step(model, optimizer, torch.randn(4, 16))
    return out


def python_exporter(folder: Path) -> list[Recording]:
    """The file written by torch's Python exporter instead of Kineto's."""
    out: list[Recording] = []
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with _recorded(
        folder, out, python_export=True, record_shapes=True, profile_memory=True, with_stack=True
    ):
        for _ in range(2):
            with record_function("train"):
                _step(model, optimizer, torch.randn(4, 16))
    return out


def _gloo_rank(rank: int, world_size: int, port: int, folder: str) -> None:
    dist.init_process_group(
        "gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world_size
    )
    model = nn.parallel.DistributedDataParallel(_model())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    out: list[Recording] = []
    home = Path(folder) / f"rank{rank}"
    home.mkdir()
    with _recorded(home, out, record_shapes=True):
        for _ in range(3):
            with record_function("train"):
                _step(model, optimizer, torch.randn(4, 16))
            work = dist.all_reduce(torch.ones(1000), async_op=True)
            torch.ones(10).sum()
            work.wait()
            with record_function("sync"):
                dist.all_reduce(torch.ones(10))
                dist.broadcast(torch.ones(10), 0)
                gathered = [torch.empty(4) for _ in range(world_size)]
                dist.all_gather(gathered, torch.ones(4))
                dist.barrier()
    out[0].save()
    dist.destroy_process_group()


def two_gloo_ranks(folder: Path) -> list[Recording]:
    """Two data-parallel ranks in two processes, with collectives in flight."""
    mp.spawn(_gloo_rank, args=(2, free_port(), str(folder)), nprocs=2, join=True)
    return [Recording.load(folder / f"rank{rank}" / "run0.json") for rank in range(2)]


WORKLOADS: dict[str, Callable[[Path], list[Recording]]] = {
    work.__name__: work
    for work in (
        training_step,
        compiled_model,
        data_loader,
        nested_annotations,
        autograd_threads,
        memory_and_shapes,
        recursion,
        two_gloo_ranks,
        unclosed_annotation,
        with_stack,
        python_exporter,
    )
}


def main() -> None:
    """``torch_workloads.py FOLDER [NAME...]``: record them where one can look at them."""
    folder = Path(sys.argv[1])
    for name in sys.argv[2:] or WORKLOADS:
        home = folder / name
        home.mkdir(parents=True)
        for recording in WORKLOADS[name](home):
            recording.save()


if __name__ == "__main__":
    main()
