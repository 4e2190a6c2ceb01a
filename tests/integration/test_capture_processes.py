"""``run_script`` on scripts of several processes and threads: who records, who stays out."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

import trnscope
from tests.integration.capture_helpers import (
    TRAIN,
    events,
    finish,
    numbered,
    plain,
    record,
    start,
    steps,
)
from tests.integration.free_port import free_port
from trnscope.capture.record import CaptureRecord

pytest.importorskip("torch")

WITH_LOADER = """
import sys, torch
from torch.utils.data import DataLoader, Dataset
class Squares(Dataset):
    def __init__(self):
        self.net = torch.nn.Linear(4, 4)  # workers call modules too
    def __len__(self):
        return 12
    def __getitem__(self, index):
        return self.net(torch.full((4,), float(index))).detach() * 0 + index
def main(context):
    torch.manual_seed(0)
    loader = DataLoader(Squares(), 2, num_workers=2, multiprocessing_context=context)
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for epoch in range(4):
        for batch in loader:
            loss = model(batch).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
if __name__ == "__main__":
    main(sys.argv[1])
"""

_RANKS = """
import os, sys, torch
import torch.distributed as dist
import torch.multiprocessing as mp
def train(rank, world_size):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ.setdefault("MASTER_PORT", "FREE_PORT")
    torch.manual_seed(0)
    dist.init_process_group("gloo", rank=rank, world_size=world_size)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(7):  # the group is gone before the steps to compare with are
        optimizer.zero_grad()
        model(torch.ones(2, 4)).mean().backward()
        optimizer.step()
    # A model that still holds the group when the interpreter ends may abort in gloo's threads.
    del model, optimizer
    dist.destroy_process_group()
"""


def ranks_program() -> str:
    """A program's ``train``, whose ranks meet on a port of their own."""
    return _RANKS.replace("FREE_PORT", str(free_port()))


@pytest.mark.slow
@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_of_a_loader_record_nothing(tmp_path: Path, context: str) -> None:
    # Six steps an epoch and eight recorded: workers are started inside the window too.
    recorded = record(tmp_path, WITH_LOADER, context, warmup=3)
    bare = plain(tmp_path, "script.py", context)
    assert (recorded.stdout, recorded.exit_code) == (bare.stdout, 0)
    assert recorded.stderr == bare.stderr
    assert steps(recorded.record.trace) == numbered(3, 8)
    assert {e["pid"] for e in events(recorded.record.trace) if e.get("cat") == "cpu_op"} == {
        recorded.record.pid
    }


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_each_started_rank_writes_its_own_trace(tmp_path: Path, method: str) -> None:
    code = f"""{ranks_program()}
if __name__ == "__main__":
    mp.start_processes(train, args=(2,), nprocs=2, start_method="{method}")
    print("done")
"""
    recorded = record(tmp_path, code, steps=2, warmup=3)
    assert (recorded.stdout, recorded.exit_code) == ("done\n", 0), recorded.stderr
    ranks = [what for what in recorded.records if what.trace is not None]
    assert [(what.rank, what.world_size) for what in ranks] == [(0, 2), (1, 2)]
    for what in ranks:
        assert what.trace is not None
        assert what.trace.name.startswith(f"rank{what.rank}.")
        assert steps(what.trace) == numbered(3, 2)
    root = next(what for what in recorded.records if what.is_root)
    assert root.trace is None
    assert recorded.reason is None


@pytest.mark.slow
def test_ranks_forked_while_the_parent_is_prepared_record_too(tmp_path: Path) -> None:
    code = f"""{ranks_program()}
if __name__ == "__main__":
    model = torch.nn.Linear(4, 1)
    for _ in range(2): model(torch.ones(2, 4))
    mp.start_processes(train, args=(2,), nprocs=2, start_method="fork")
    print("done")
"""
    recorded = record(tmp_path, code, steps=2, warmup=3)
    assert (recorded.stdout, recorded.stderr, recorded.exit_code) == ("done\n", "", 0)
    ranks = [what for what in recorded.records if what.trace is not None]
    assert [what.rank for what in ranks] == [0, 1]
    assert [steps(what.trace) for what in ranks] == [numbered(3, 2)] * 2


@pytest.mark.slow
def test_torchrun_and_its_ranks(tmp_path: Path) -> None:
    torchrun = shutil.which("torchrun", path=str(Path(sys.executable).parent))
    if torchrun is None:
        pytest.skip("no torchrun beside this interpreter")
    (tmp_path / "train.py").write_text(
        f"{ranks_program()}\ntrain(int(os.environ['RANK']), 2)\nsys.exit(0)\n"
    )
    runner = start(
        tmp_path, torchrun, "--standalone", "--nproc-per-node=2", "train.py", steps=2, warmup=3
    )
    recorded = finish(tmp_path, runner)
    assert recorded.exit_code == 0, recorded.stderr
    ranks = [what for what in recorded.records if what.trace is not None]
    assert [what.rank for what in ranks] == [0, 1]
    assert [steps(what.trace) for what in ranks] == [numbered(3, 2)] * 2


@pytest.mark.slow
def test_a_script_that_starts_the_training_in_a_process(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN + "train(12)\nsys.exit(6)\n")
    code = "import subprocess, sys\nsys.exit(subprocess.call([sys.executable, 'train.py']))\n"
    recorded = record(tmp_path, code, steps=2)
    assert recorded.exit_code == 6
    trace = recorded.record.trace
    assert trace is not None
    assert trace.name.startswith(f"process{recorded.record.pid}.")
    assert (recorded.record.is_root, len(steps(trace))) == (False, 2)


def test_training_on_a_thread(tmp_path: Path) -> None:
    code = TRAIN + (
        "import threading\nthread = threading.Thread(target=train, args=(14,))\n"
        "thread.start()\nthread.join()\n"
    )
    recorded = record(tmp_path, code, steps=2, warmup=4)
    assert steps(recorded.record.trace) == numbered(4, 2)
    ops = [e for e in events(recorded.record.trace) if e.get("name") == "aten::addmm"]
    assert len(ops) == 4


RANKS_IN_TURN = """
import os, subprocess, sys
for rank in "01":
    env = {**os.environ, "RANK": rank, "WORLD_SIZE": "2"}
    subprocess.run([sys.executable, "train.py"], env=env, check=True)
"""


@pytest.mark.slow
def test_ranks_that_run_one_after_another(tmp_path: Path) -> None:
    # The first has ended long before the last process takes its name.
    (tmp_path / "train.py").write_text(TRAIN + "train(4)\n")
    recorded = record(tmp_path, RANKS_IN_TURN, steps=1, warmup=1)
    assert recorded.exit_code == 0, recorded.stderr
    assert [(what.rank, what.is_root) for what in recorded.records] == [(0, False), (1, False)]
    assert [steps(trace) for trace in recorded.traces] == [numbered(1, 1)] * 2
    profile = trnscope.open(*recorded.traces)
    assert [trace.source.rank for trace in profile.traces] == [0, 1]


@pytest.mark.slow
def test_two_runs_at_once_into_one_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        (folder / "script.py").write_text(TRAIN + "train(4)\n")
    runners = [
        start(folder, "script.py", out=out, steps=number + 1, warmup=1)
        for number, folder in enumerate(folders)
    ]
    both = [finish(folder, runner) for folder, runner in zip(folders, runners, strict=True)]
    assert [steps(recorded.record.trace) for recorded in both] == [numbered(1, 1), numbered(1, 2)]
    assert len(list(out.iterdir())) == 4


def test_a_folder_of_other_records(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "broken.capture.json").write_text("{")
    CaptureRecord(pid=1, run=".run-of-yesterday").write(out / "other.capture.json")
    recorded = record(tmp_path, TRAIN + "train(4)\n", out=out, steps=1, warmup=1)
    assert recorded.record.pid != 1
    assert len(list(out.iterdir())) == 4
