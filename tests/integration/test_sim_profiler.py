"""The simulated device under torch's profiler, under torch_neuronx.profiling and trnscope run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", minversion="2.12")

import torch

import trnscope
from trnscope.analysis.devices import summarize_devices
from trnscope.ingest import open_trace
from trnscope.store.reader import Trace

REPO = Path(__file__).parents[2]
EXAMPLE = REPO / "examples" / "neuron_profiling" / "profile_a_model.py"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which(os.environ.get("CXX", "g++")) is None,
        reason="the simulated device needs a C++ compiler",
    ),
]


def program(name: str, folder: Path, **environment: str) -> dict[str, Any]:
    """Run one of the workloads; what it found."""
    output = folder / "found.json"
    command = [sys.executable, "-m", "tests.integration.sim_workloads", name, str(output)]
    done = subprocess.run(
        command,
        cwd=REPO,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(output.read_text())
    return found


def run_command(folder: Path, *args: str | Path) -> subprocess.CompletedProcess[str]:
    """``trnscope run`` in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "trnscope.cli.main", "run", *map(str, args)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def rows(trace: Path, *categories: str) -> list[dict[str, Any]]:
    document = json.loads(trace.read_text())
    return [row for row in document["traceEvents"] if row.get("cat") in categories]


def opened(path: Path, folder: Path) -> Trace:
    directory = folder / f"store-{path.parent.name}-{path.stem}"
    open_trace(path, directory)
    return Trace(directory, path)


def assert_all_linked(trace: Path) -> None:
    """Every piece of device work leads to its op, its launch and back."""
    ops = {row["args"]["External id"] for row in rows(trace, "cpu_op")}
    calls = {
        row["args"].get("correlation")
        for row in rows(trace, "privateuse1_runtime", "privateuse1_driver")
    }
    work = rows(trace, "kernel", "gpu_memcpy", "gpu_memset")
    assert work
    for row in work:
        assert row["args"]["External id"] in ops, row
        assert row["args"]["correlation"] in calls, row
    flows = rows(trace, "ac2g")
    starts = sorted(row["id"] for row in flows if row["ph"] == "s")
    assert starts == sorted(row["id"] for row in flows if row["ph"] == "f")
    assert set(starts) == {row["args"]["correlation"] for row in work}


# torch's own profiler ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def of_torch(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """torch's own table and trace of two training steps."""
    folder = tmp_path_factory.mktemp("torch")
    return program("table", folder), folder / "torch.json"


def test_torchs_table_has_the_devices_columns_and_exactly_its_time(
    of_torch: tuple[dict[str, Any], Path],
) -> None:
    found, _ = of_torch
    assert "Self NEURON" in found["text"]
    assert "NEURON total" in found["text"]
    assert "NEURON Mem" in found["text"]
    assert found["num_rows"] == found["num_launches"] > 20
    assert found["rows_ns"] == found["ops_ns"] == found["log_ns"]


def test_torchs_trace_is_linked_and_says_simulated(
    of_torch: tuple[dict[str, Any], Path], tmp_path: Path
) -> None:
    found, trace = of_torch
    assert_all_linked(trace)
    (device,) = summarize_devices(opened(trace, tmp_path))
    assert (device.device.label, device.device.simulated) == ("neuron:0", True)
    assert (device.sum_ns, device.unlinked_ns) == (found["log_ns"], 0)
    kinds = {row["args"]["kind"] for row in rows(trace, "gpu_memcpy")}
    assert "HtoD" in kinds


def test_a_profile_of_the_cpu_alone_is_untouched(tmp_path: Path) -> None:
    found = program("cpu_only", tmp_path)
    assert "NEURON" not in found["text"]
    trace = tmp_path / "torch.json"
    assert not rows(trace, "kernel", "gpu_memcpy", "privateuse1_runtime", "privateuse1_driver")
    assert "trnscopeSimulation" not in json.loads(trace.read_text())


def test_the_older_profiler_has_device_time(tmp_path: Path) -> None:
    found = program("older_profiler", tmp_path)
    # Between two events around the op: its execution and the launch before it.
    assert found["device_us"] * 1000 >= found["mm_ns"] > 0


# torch_neuronx.profiling -------------------------------------------------------------------


def test_filters_and_limits_work_and_drops_are_told(tmp_path: Path) -> None:
    found = program("filters", tmp_path)
    folder = Path(found["folder"])
    assert folder.parent.parent == tmp_path / "a=b #1"
    assert folder.parent.name.startswith("sim-trn2.3xlarge_pid_")
    for trace in (folder / "trace.json", tmp_path / "torch.json"):
        work = rows(trace, "kernel", "gpu_memset")
        assert [row["args"]["device"] for row in work] == [1] * 5
    assert any("trace events were dropped" in text for text in found["warnings"])
    assert found["dropped_by_torch"] == 4  # nine executions on the core, five kept
    system = json.loads((folder / "system_profile.json").read_text())
    running = [row for row in system["trace_events"] if row["name"] == "nc_exec_running"]
    assert {row["nc_idx"] for row in running} == {1}
    assert any("dropped" in text for text in system["warnings"])


def test_misuse_is_told_in_one_line(tmp_path: Path) -> None:
    told = program("without_the_device", tmp_path)["told"]
    assert [text.partition(":")[0] for text in told] == [
        "ProfileStateError",
        "ProfileStateError",
        "ProfileStateError",
        "ProfileArgumentError",
    ]
    assert "did not record the neuron device" in told[0]
    assert "ProfilerActivity.PrivateUse1" in told[0]
    assert "Profiler is not active" in told[1]
    assert "Profiler is already active" in told[2]


def test_ops_are_tracked(tmp_path: Path) -> None:
    found = program("op_tracking", tmp_path)
    assert found == {"executed": ["aten::add"], "fallback": [], "initialized": True}


def test_capture_by_environment(tmp_path: Path) -> None:
    environment = {
        "NEURON_RT_INSPECT_ENABLE": "1",
        "NEURON_RT_INSPECT_OUTPUT_DIR": str(tmp_path / "out"),
        "NEURON_RT_INSPECT_EVENT_FILTER_TYPE": "hardware",
    }
    program("op_tracking", tmp_path, **environment)
    (folder,) = (tmp_path / "out").iterdir()
    system = json.loads((folder / "system_profile.json").read_text())
    names = {row["name"] for row in system["trace_events"]}
    assert "nc_exec_running" in names
    assert "nrta_execute_schedule" not in names
    assert_all_linked(folder / "trace.json")


# Virtual time ------------------------------------------------------------------------------


def test_trnscope_profile_writes_virtual_time_and_the_same_bytes_twice(tmp_path: Path) -> None:
    traces = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        found = program("in_virtual_time", tmp_path / name)
        assert found["device"] == "sim:trn2.3xlarge"
        traces.append(Path(found["trace"]))
    assert traces[0].read_bytes() == traces[1].read_bytes()
    assert json.loads(traces[0].read_text())["trnscopeSimulation"]["clock"] == "virtual"
    assert_all_linked(traces[0])
    profile = trnscope.open(traces[0])
    assert [step.name for step in profile.steps().rows] == ["ProfilerStep#2", "ProfilerStep#3"]
    assert profile.simulated_by is not None and profile.simulated_by.startswith("trn2 model v")


# trnscope run ------------------------------------------------------------------------------


def test_the_example_runs_unmodified_and_the_same_each_time(tmp_path: Path) -> None:
    texts = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        options = ("--device", "sim:trn2", "--steps", "2", "--json")
        done = run_command(tmp_path / name, *options, EXAMPLE)
        assert done.returncode == 0, done.stderr[-4000:]
        assert "Self NEURON" in done.stdout
        document = json.loads(done.stdout.splitlines()[-1])
        (trace,) = map(Path, document["traces"])
        texts.append(trace.read_bytes())
    assert texts[0] == texts[1]
    assert_all_linked(trace)
    (device,) = document["summary"]["devices"]
    assert (device["device"], device["simulated"], device["unlinked_ns"]) == ("neuron:0", True, 0)
    assert document["summary"]["sources"][0]["simulated_by"].startswith("trn2 model v")
    assert document["processes"][0]["device"] == "sim:trn2.3xlarge"
    (folder,) = (tmp_path / "a" / "neuron-profile").glob("*/*")
    assert_all_linked(folder / "trace.json")
    assert list(folder.rglob("Instruction.parquet"))
    tables = folder / "profiles" / "global" / "profile@latest"
    written = [folder / "trace.json", folder / "system_profile.json", tables]
    times = {trnscope.open(path).summary().devices[0].sum_ns for path in written}
    (total,) = re.findall(r"Self NEURON time total: ([\d.]+)ms", done.stdout)
    assert len(times) == 1
    assert f"{times.pop() / 1e6:.3f}" == total


def test_the_report_says_simulated(tmp_path: Path) -> None:
    done = run_command(tmp_path, "--device", "sim:trn1", "--no-numerics", EXAMPLE)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "simulated (trn1 model v" in done.stdout
    assert "All times are virtual" in done.stdout


ON_THE_CPU = """
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Linear(8, 8).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    model(torch.ones(4, 8, device=device)).sum().backward()
    optimizer.step()
"""


@pytest.mark.skipif(torch.cuda.is_available(), reason="the script would use the GPU")
def test_a_script_that_does_not_use_the_device_is_told(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(ON_THE_CPU)
    done = run_command(tmp_path, "--device", "sim:trn2", script)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "the script ran nothing on the simulated device" in done.stderr
    assert '.to("neuron")' in done.stderr
    assert "Of a step" not in done.stdout


IMPORTS_FIRST = """
import torch_neuronx
from torch_neuronx.profiling import NeuronConfig
import torch

model = torch.nn.Linear(8, 8).to("neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    model(torch.ones(4, 8, device="neuron")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("simulated:", torch_neuronx.is_simulated, torch.neuron.device_count())
"""


def test_the_package_may_be_imported_before_torch(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(IMPORTS_FIRST)
    done = run_command(tmp_path, "--device", "sim:trn2", "--lnc", "1", "--json", script)
    assert done.returncode == 0, done.stderr[-4000:]
    assert "simulated: True 8" in done.stdout
    document = json.loads(done.stdout.splitlines()[-1])
    assert document["processes"][0]["num_steps"] > 0
    assert document["summary"]["devices"][0]["unlinked_ns"] == 0


STACKS = """
import torch


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(8, 8)

    def forward(self, x):
        return double(self.inner(x))


def double(x):
    return x * 2


def train(model, optimizer):
    with torch.profiler.record_function("forward part"):
        loss = model(torch.ones(4, 8, device="neuron")).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


model = Block().to("neuron")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    train(model, optimizer)
"""


@pytest.fixture(scope="module")
def with_stacks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two traces of one script with Python stacks."""
    traces = []
    for name in ("a", "b"):
        folder = tmp_path_factory.mktemp(name)
        script = folder / "script.py"
        script.write_text(STACKS)
        done = run_command(
            folder, "--device", "sim:trn2", "--stack", "--steps", "2", "--json", script
        )
        assert done.returncode == 0, done.stderr[-4000:]
        traces += map(Path, json.loads(done.stdout.splitlines()[-1])["traces"])
    return traces[0], traces[1]


def test_ops_lead_to_their_lines_and_modules(with_stacks: tuple[Path, Path]) -> None:
    trace, _ = with_stacks
    profile = trnscope.open(trace)
    stacks = {row.key.name: row.key.stack for row in profile.ops(group_by="stack").rows}
    mul = stacks["aten::mul"]
    assert mul is not None
    mine = [frame for frame in mul if frame.startswith(("script.py", "nn.Module"))]
    assert mine == [
        "script.py(14): double",
        "script.py(10): forward",
        "nn.Module: Block_0",
        "script.py(18): train",
        "script.py(1): <module>",
    ]
    # What autograd runs on its own thread has the stack of the forward op.
    backward = stacks["MulBackward0"]
    assert backward is not None and "script.py(14): double" in backward
    modules = {row.key.name: row.key.module for row in profile.ops(group_by="module").rows}
    assert (modules["aten::mul"], modules["aten::addmm"]) == ("Block_0", "Block_0/Linear_0")
    arrows = rows(trace, "fwdbwd")
    assert {row["ph"] for row in arrows} == {"s", "f"}
    assert_all_linked(trace)


def test_stacks_are_the_same_each_time(with_stacks: tuple[Path, Path]) -> None:
    first, second = with_stacks
    assert first.read_bytes() == second.read_bytes()


def test_a_range_of_the_script_lies_on_the_device(with_stacks: tuple[Path, Path]) -> None:
    trace, _ = with_stacks
    ranges = [row for row in rows(trace, "gpu_user_annotation") if row["name"] == "forward part"]
    assert len(ranges) == 2
    host = [row for row in rows(trace, "user_annotation") if row["name"] == "forward part"]
    for on_device, on_host in zip(ranges, host, strict=True):
        ops = {
            row["args"]["External id"]
            for row in rows(trace, "cpu_op")
            if on_host["ts"] <= row["ts"] < on_host["ts"] + on_host["dur"]
        }
        work = [row for row in rows(trace, "kernel", "gpu_memset", "gpu_memcpy")
                if row["args"]["External id"] in ops]  # fmt: skip
        assert on_device["ts"] == min(row["ts"] for row in work)
        end = max(row["ts"] + row["dur"] for row in work)
        assert on_device["ts"] + on_device["dur"] == pytest.approx(end)


RANKS = """
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("neuron")
torch.neuron.set_device(dist.get_rank())
model = DistributedDataParallel(torch.nn.Linear(64, 64).to("neuron"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(8):
    model(torch.ones(4, 64, device="neuron")).sum().backward()
    optimizer.step()
dist.destroy_process_group()
"""


def test_each_rank_has_a_profile_with_its_collectives(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(RANKS)
    program = Path(sys.executable).with_name("torchrun")
    options = ("--device", "sim:trn2", "--steps", "2", "--json")
    done = run_command(tmp_path, *options, program, "--nproc-per-node", "2", script)
    assert done.returncode == 0, done.stderr[-4000:]
    document = json.loads(done.stdout.splitlines()[-1])
    recorded = [process for process in document["processes"] if process["trace"] is not None]
    assert [process["rank"] for process in recorded] == [0, 1]
    devices = document["summary"]["devices"]
    assert [device["device"] for device in devices] == ["neuron:0", "neuron:1"]
    assert all(device["communication_ns"] > 0 for device in devices)
    for trace in map(Path, document["traces"]):
        assert_all_linked(trace)
        reduces = [row for row in rows(trace, "kernel") if "Collective name" in row["args"]]
        assert {row["args"]["Group size"] for row in reduces} == {2}
