"""``run_script`` on real scripts in one process: steps, output, exit codes, bounds."""

from __future__ import annotations

import os
import signal
import time
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
from trnscope.analysis.step_finder import find_steps

pytest.importorskip("torch")


def inside(events_of_trace: list[dict[str, object]], name: str) -> list[int]:
    """How many events called ``name`` start inside each step."""
    spans = sorted(
        (float(str(e["ts"])), float(str(e["ts"])) + float(str(e["dur"])))
        for e in events_of_trace
        if str(e.get("name", "")).startswith("ProfilerStep#")
    )
    starts = [float(str(e["ts"])) for e in events_of_trace if e.get("name") == name]
    return [sum(begin <= start < end for start in starts) for begin, end in spans]


def test_training_is_recorded_and_its_output_is_unchanged(tmp_path: Path) -> None:
    code = TRAIN + "train(24)\nprint(sys.argv[1:], sys.stdin.read(), sys.path[0], __name__)\n"
    recorded = record(tmp_path, code, "--lr", "3", stdin="typed", steps=5, warmup=4)
    bare = plain(tmp_path, "script.py", "--lr", "3", stdin="typed")
    assert (recorded.stdout, recorded.stderr) == (bare.stdout, bare.stderr)
    assert "['--lr', '3'] typed" in recorded.stdout
    assert recorded.exit_code == bare.returncode == 0
    assert recorded.reason is None
    what = recorded.record
    assert steps(what.trace) == numbered(4, 5)
    assert (what.steps_by, what.first_step, what.num_steps) == ("optimizer", 4, 5)
    assert (what.last_step_cut, what.reason, what.is_root) == (False, None, True)
    assert "CPU" in what.activities
    # One optimizer step, one backward and two linears in each step, whole.
    found = events(what.trace)
    assert inside(found, "Optimizer.step#AdamW.step") == [1] * 5
    assert inside(found, "aten::addmm") == [2] * 5
    assert what.overhead.num_profiled_steps == 5
    assert what.overhead.num_unprofiled_steps == 5
    assert what.overhead.slowdown_ratio is not None
    assert min(what.overhead.start_ns or 0, what.overhead.stop_ns or 0) > 0
    assert what.overhead.export_ns is not None


def test_the_files_of_a_run(tmp_path: Path) -> None:
    recorded = record(tmp_path, TRAIN + "train(14)\n", steps=2)
    assert recorded.out.parent == tmp_path / "trnscope-out"
    assert recorded.out.name.startswith("script-")
    trace = recorded.record.trace
    assert trace is not None
    names = sorted(entry.name for entry in recorded.out.iterdir())
    stem = trace.name.removesuffix(".pt.trace.json")
    assert stem.startswith("rank0.")
    assert names == [f"{stem}.capture.json", f"{stem}.pt.trace.json"]


@pytest.mark.slow
def test_two_runs_into_one_folder_keep_their_own_files(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = record(tmp_path, TRAIN + "train(12)\n", out=out, steps=1, gzip=True)
    second = record(tmp_path, TRAIN + "train(12)\n", out=out, steps=2)
    assert first.record.trace != second.record.trace
    assert len(steps(first.record.trace)) == 1
    assert len(steps(second.record.trace)) == 2
    assert len(list(out.iterdir())) == 4


def test_inference_goes_by_calls_of_the_outermost_module(tmp_path: Path) -> None:
    code = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Sequential(torch.nn.Linear(8, 2)))
softmax = torch.nn.Softmax(-1)
with torch.no_grad():
    for _ in range(20):
        softmax(model(torch.randn(4, 8)))
print(len(model._forward_hooks), bool(torch.nn.modules.module._has_any_global_hook()))
"""
    recorded = record(tmp_path, code, steps=4, warmup=2)
    assert recorded.stdout == "0 False\n"
    assert recorded.record.steps_by == "forward"
    assert steps(recorded.record.trace) == numbered(2, 4)
    found = events(recorded.record.trace)
    assert inside(found, "aten::addmm") == [2] * 4
    assert inside(found, "aten::softmax") == [1] * 4


def test_an_evaluation_before_training_is_not_taken_for_the_steps(tmp_path: Path) -> None:
    code = TRAIN.replace("optimizer =", "for _ in range(2): model(torch.zeros(1, 16))\noptimizer =")
    recorded = record(tmp_path, code + "train(10)\n", steps=3, warmup=3)
    assert recorded.record.steps_by == "optimizer"
    assert steps(recorded.record.trace) == numbered(3, 3)


def test_a_gan_counts_an_iteration_once(tmp_path: Path) -> None:
    code = """
import torch
generator, critic = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)
for_generator = torch.optim.Adam(generator.parameters())
for_critic = torch.optim.SGD(critic.parameters(), lr=0.1)
for _ in range(16):
    for optimizer in (for_critic, for_generator):
        optimizer.zero_grad()
        critic(generator(torch.randn(2, 4))).mean().backward()
        optimizer.step()
"""
    recorded = record(tmp_path, code, steps=4)
    found = events(recorded.record.trace)
    assert len(steps(recorded.record.trace)) == 4
    assert inside(found, "Optimizer.step#SGD.step") == [1] * 4
    assert inside(found, "Optimizer.step#Adam.step") == [1] * 4


@pytest.mark.slow
def test_accumulation_scaler_and_scheduler(tmp_path: Path) -> None:
    code = """
import torch
torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
class MyAdam(torch.optim.Adam):
    def step(self, closure=None):
        return super().step(closure)
torch.optim.Adam([torch.zeros(1, requires_grad=True)])  # its class is wrapped by torch first
optimizer = MyAdam(model.parameters())
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.9)
scaler = torch.amp.GradScaler("cpu")
for iteration in range(16):
    for _ in range(3):
        with torch.autocast("cpu"):
            loss = model(torch.randn(2, 4)).mean() / 3
        scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    scheduler.step()
print(optimizer.param_groups[0]["lr"])
"""
    recorded = record(tmp_path, code, steps=4, warmup=3)
    bare = plain(tmp_path, "script.py")
    assert (recorded.stdout, recorded.stderr) == (bare.stdout, bare.stderr)
    assert steps(recorded.record.trace) == numbered(3, 4)
    found = events(recorded.record.trace)
    # Torch marks the step and, inside it, the base class's; it ends one step all the same.
    assert inside(found, "Optimizer.step#MyAdam.step") == [2] * 4
    assert inside(found, "MeanBackward0") == [3] * 4


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("sys.exit(3)", 3),
        ("raise ValueError('boom')", 1),
        ("import os; sys.stdout.flush(); os._exit(7)", 7),
    ],
)
def test_a_script_that_ends_early_keeps_its_ending(tmp_path: Path, ending: str, code: int) -> None:
    recorded = record(tmp_path, f"{TRAIN}train(6)\n{ending}\n", warmup=3)
    bare = plain(tmp_path, "script.py")
    assert (recorded.exit_code, bare.returncode) == (code, code)
    assert (recorded.stdout, recorded.stderr) == (bare.stdout, bare.stderr)
    assert steps(recorded.record.trace) == numbered(3, 3)
    assert recorded.record.num_steps == 3
    assert recorded.record.last_step_cut
    assert recorded.record.reason == "the script ended after 3 of 8 steps"
    # The step that the end cut is in the trace, and is no step to the analyses.
    trace = trnscope.open(recorded.traces[0]).traces[0]
    assert [step.name for step in find_steps(trace).steps] == numbered(3, 3)


def test_a_script_that_is_terminated_leaves_what_it_has(tmp_path: Path) -> None:
    code = TRAIN + "import time\ntrain(6)\nprint('ready', flush=True)\ntime.sleep(100)\n"
    (tmp_path / "script.py").write_text(code)
    runner = start(tmp_path, "script.py", warmup=3)
    assert runner.stdout is not None
    while runner.stdout.readline() != "ready\n":
        pass
    runner.send_signal(signal.SIGTERM)
    recorded = finish(tmp_path, runner)
    assert (recorded.exit_code, recorded.signal) == (128 + 15, signal.SIGTERM)
    assert steps(recorded.record.trace) == numbered(3, 3)
    assert recorded.record.reason == "the script was terminated"


def test_an_interrupt_reaches_the_script_once(tmp_path: Path) -> None:
    code = TRAIN + (
        "import time\ntrain(6)\n"
        "try:\n    print('ready', flush=True)\n    time.sleep(100)\nexcept KeyboardInterrupt:\n"
        "    print('stopping')\n    time.sleep(0.3)\n    sys.exit(4)\n"
    )
    (tmp_path / "script.py").write_text(code)
    runner = start(tmp_path, "script.py", warmup=3)
    assert runner.stdout is not None
    while runner.stdout.readline() != "ready\n":
        pass
    runner.send_signal(signal.SIGINT)
    recorded = finish(tmp_path, runner)
    assert (recorded.stdout, recorded.exit_code) == ("stopping\n", 4)
    assert steps(recorded.record.trace) == numbered(3, 3)


def test_a_step_that_never_ends_is_cut(tmp_path: Path) -> None:
    code = TRAIN + (
        "import time\ntrain(5)\nuntil = time.monotonic() + 20\n"
        "while time.monotonic() < until and torch.autograd._profiler_enabled():\n"
        "    torch.ones(2) + 1\n    time.sleep(0.01)\n"
        "print(time.monotonic() < until)\n"
    )
    recorded = record(tmp_path, code, warmup=3, max_seconds=0.5)
    assert recorded.stdout.endswith("True\n")
    assert recorded.record.num_steps == 2
    assert recorded.record.last_step_cut
    assert recorded.record.reason == "a step took longer than the time limit; it was cut"
    assert steps(recorded.record.trace) == numbered(3, 2)


def test_a_module_runs_as_python_runs_it(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "train.py").write_text(
        TRAIN + "train(12)\nprint(__name__, __package__, sys.argv[1:])\n"
    )
    runner = start(tmp_path, "package.train", "7", is_module=True, steps=2)
    recorded = finish(tmp_path, runner)
    bare = plain(tmp_path, "-m", "package.train", "7")
    assert recorded.stdout == bare.stdout
    assert recorded.stdout.endswith("__main__ package ['7']\n")
    assert len(steps(recorded.record.trace)) == 2
    assert recorded.out.name.startswith("package.train-")


@pytest.mark.slow
def test_operations_without_any_module_are_recorded_for_a_time(tmp_path: Path) -> None:
    code = """
import time, torch
until = time.monotonic() + 1.5
while time.monotonic() < until:
    torch.ones(64, 64) @ torch.ones(64, 64)
    time.sleep(0.02)
"""
    nothing = record(tmp_path, code)
    assert nothing.record.trace is None
    assert nothing.reason is not None
    assert nothing.reason.startswith("no optimizer took a step and no module was called")
    assert not nothing.out.exists()
    recorded = record(tmp_path, code, steps_by="time", max_seconds=0.5)
    assert recorded.record.steps_by == "time"
    assert recorded.record.first_step is None
    assert steps(recorded.record.trace) == []
    num_products = sum(e.get("name") == "aten::mm" for e in events(recorded.record.trace))
    assert 5 <= num_products <= 60


@pytest.mark.slow
def test_operations_without_any_module_are_found_after_a_while(tmp_path: Path) -> None:
    code = """
import time, torch
until = time.monotonic() + 60
was_recorded = False
while time.monotonic() < until:
    torch.ones(64, 64) @ torch.ones(64, 64)
    time.sleep(0.02)
    if was_recorded and not torch.autograd._profiler_enabled():
        break
    was_recorded = was_recorded or torch.autograd._profiler_enabled()
"""
    recorded = record(tmp_path, code, max_seconds=1)
    assert recorded.record.steps_by == "time"
    assert any(e.get("name") == "aten::mm" for e in events(recorded.record.trace))


@pytest.mark.slow
@pytest.mark.parametrize(
    "before",
    [
        "time.sleep(5)",  # a window of time is open when the model is made
        "open('slow.py', 'w').write('import time; time.sleep(5)'); import slow",
        "time.sleep(14)",  # one was recorded, and held nothing
        "end = time.time() + 14\nwhile time.time() < end: torch.ones(2) + 1; time.sleep(0.1)",
    ],
)
def test_steps_that_show_up_late_replace_a_window_of_time(tmp_path: Path, before: str) -> None:
    code = f"import time, torch\n{before}\n{TRAIN}train(16)\n"
    recorded = record(tmp_path, code, steps=2, warmup=4)
    assert recorded.record.steps_by == "optimizer"
    assert steps(recorded.record.trace) == numbered(4, 2)
    assert len(list(recorded.out.glob("*.json"))) == 2


def test_a_script_without_torch_runs_and_says_so(tmp_path: Path) -> None:
    recorded = record(tmp_path, "print('hi')\nraise SystemExit(5)\n")
    assert (recorded.stdout, recorded.stderr, recorded.exit_code) == ("hi\n", "", 5)
    assert recorded.records == ()
    assert recorded.reason == "the script never imported torch (it ended with exit code 5)"


def test_a_script_too_short_says_so(tmp_path: Path) -> None:
    recorded = record(tmp_path, TRAIN + "train(2)\n")
    assert recorded.reason == (
        "the script ended after 2 optimizer steps, within the warm-up; "
        "run it for longer or give --warmup 1"
    )


def test_the_scripts_own_profiler_goes_first(tmp_path: Path) -> None:
    code = TRAIN + (
        "train(6)\nfrom torch.profiler import profile\n"
        "with profile() as own:\n    train(4)\n"
        "print(sum(e.count for e in own.key_averages() if e.key == 'aten::addmm'))\n"
    )
    recorded = record(tmp_path, code, warmup=3)
    bare = plain(tmp_path, "script.py", KINETO_LOG_LEVEL="6")
    assert recorded.stdout == bare.stdout
    assert recorded.stdout.endswith("\n8\n")
    assert recorded.record.num_steps == 3
    assert recorded.record.reason == "the script started a torch profiler of its own"


def test_the_scripts_own_profiler_comes_while_ours_is_only_prepared(tmp_path: Path) -> None:
    code = TRAIN + (
        "train(4)\nfrom torch.profiler import profile\n"
        "with profile() as own:\n    train(2)\n"
        "print(sum(e.count for e in own.key_averages() if e.key == 'aten::addmm'))\ntrain(6)\n"
    )
    recorded = record(tmp_path, code, warmup=5, steps=3)
    bare = plain(tmp_path, "script.py", KINETO_LOG_LEVEL="6")
    assert (recorded.stdout, recorded.stderr) == (bare.stdout, bare.stderr)
    assert "\n4\n" in recorded.stdout
    # Steps under the script's own profiler do not count; ours waits, and records afterwards.
    assert steps(recorded.record.trace) == numbered(5, 3)
    assert recorded.record.reason is None


def test_nothing_of_ours_is_in_the_first_recorded_step(tmp_path: Path) -> None:
    # A thread keeps the time limit; its start took a good part of the first step.
    recorded = record(tmp_path, TRAIN + "train(8)\n", steps=2, with_stack=True)
    found = events(recorded.record.trace)
    starts = [e["name"] for e in found if ": start" in e.get("name", "")]
    assert len(steps(recorded.record.trace)) == 2
    assert not [name for name in starts if "threading.py" in name]
    assert not [e for e in found if "_window_opens" in e.get("name", "")]


def test_an_error_in_the_recorder_leaves_the_script_alone(tmp_path: Path) -> None:
    # torch's profiler is broken by the script itself: any failure of ours looks like that.
    code = TRAIN + (
        "def broken(*_, **__): raise RuntimeError('no tracing here')\n"
        "torch.profiler.profile = broken\ntrain(12)\n"
    )
    recorded = record(tmp_path, code)
    bare = plain(tmp_path, "script.py")
    assert (recorded.stdout, recorded.exit_code) == (bare.stdout, 0)
    assert recorded.stderr == (
        "trnscope: recording switched itself off: RuntimeError: no tracing here "
        "(the script goes on)\n"
    )
    assert recorded.reason == "recording switched itself off: RuntimeError: no tracing here"


def test_the_users_own_sitecustomize_still_runs(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "sitecustomize.py").write_text("import builtins; builtins.mine = 1\n")
    (tmp_path / "script.py").write_text("import sys; print(mine, 'torch' in sys.modules)\n")
    os.environ["PYTHONPATH"] = str(tmp_path / "mine")
    try:
        recorded = finish(tmp_path, start(tmp_path, "script.py"))
    finally:
        del os.environ["PYTHONPATH"]
    assert recorded.stdout == "1 False\n"


def test_models_saved_while_recording_need_no_trnscope(tmp_path: Path) -> None:
    code = """
import copy, pickle, torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 4)
    def forward(self, x):
        return self.inner(x)
net = Net()
with torch.no_grad():
    for step in range(12):
        net(torch.zeros(1, 4))
        copy.deepcopy(net)
        assert b"trnscope" not in pickle.dumps(net)
"""
    recorded = record(tmp_path, code, steps=4, warmup=3)
    assert recorded.exit_code == 0, recorded.stderr
    assert steps(recorded.record.trace) == numbered(3, 4)


def test_stacks_shapes_and_memory_are_recorded_when_asked_for(tmp_path: Path) -> None:
    recorded = record(
        tmp_path, TRAIN + "train(8)\n", steps=2, with_stack=True, shapes=True, memory=True
    )
    found = events(recorded.record.trace)
    assert any(e.get("cat") == "python_function" for e in found)
    assert any("Input Dims" in e.get("args", {}) for e in found)
    assert any(e.get("name") == "[memory]" for e in found)
    what = recorded.record
    assert (what.with_stack, what.shapes, what.memory) == (True, True, True)
    assert len(steps(what.trace)) == 2


@pytest.mark.slow
@pytest.mark.parametrize("how", ["torch.compile(model)", "model.compile() or model"])
def test_compiled_inference_compiles_what_it_would_have(tmp_path: Path, how: str) -> None:
    code = f"""
import torch
import torch._dynamo
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(8, 8) for _ in range(2)])
    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x
model = Net()
model = {how}
with torch.no_grad():
    for _ in range(20):
        model(torch.ones(4, 8))
counters = torch._dynamo.utils.counters
print(dict(counters["stats"]), dict(counters["graph_break"]))
"""
    recorded = record(tmp_path, code, steps=3, warmup=3)
    bare = plain(tmp_path, "script.py")
    assert (recorded.stdout, recorded.stderr) == (bare.stdout, bare.stderr)
    assert "'unique_graphs': 1" in recorded.stdout
    assert steps(recorded.record.trace) == numbered(3, 3)


@pytest.mark.slow
def test_compiled_training_goes_by_the_optimizer(tmp_path: Path) -> None:
    code = TRAIN.replace("def train", "model = torch.compile(model)\ndef train") + "train(14)\n"
    recorded = record(tmp_path, code, steps=3, warmup=4)
    assert recorded.record.steps_by == "optimizer"
    assert steps(recorded.record.trace) == numbered(4, 3)
    found = events(recorded.record.trace)
    assert inside(found, "Optimizer.step#AdamW.step") == [1] * 3


def test_recording_ends_long_before_a_long_script_does(tmp_path: Path) -> None:
    code = TRAIN + "train(300)\nprint('done')\n"
    began = time.monotonic()
    recorded = record(tmp_path, code, steps=3)
    assert time.monotonic() - began < 120
    assert recorded.stdout.endswith("done\n")
    assert recorded.record.num_steps == 3
    # Three steps of the recording, six more for comparison; then nothing is watched any more.
    assert recorded.record.num_steps_seen <= 12 + 3 + 6
