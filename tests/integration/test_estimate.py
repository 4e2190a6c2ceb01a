"""``trnscope estimate`` on real scripts, and the Llama example on the simulated device."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.sim_checks import has_compiler

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_compiler(), reason="no C++ compiler for the simulated device"),
]
LLAMA = Path(__file__).resolve().parents[2] / "examples" / "llama"
TRAIN = str(LLAMA / "train_step.py")


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, check=False
    )


def estimate(folder: Path, *arguments: str) -> dict[str, Any]:
    done = run(["-m", "trnscope", "estimate", "--json", *arguments], folder)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return document


def losses_in(text: str) -> list[float]:
    return [float(line.split()[-1]) for line in text.splitlines() if ": loss " in line]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_small_llama_learns_as_on_the_cpu(tmp_path: Path, dtype: str) -> None:
    on_cpu = run([TRAIN, "--dtype", dtype], tmp_path)
    simulated = ["-m", "trnscope", "run", "--device", "sim:trn2", TRAIN]
    on_neuron = run([*simulated, "--dtype", dtype, "--device", "neuron"], tmp_path)
    assert on_neuron.returncode == 0, on_neuron.stderr
    losses = losses_in(on_cpu.stdout)
    # The sums of float32 may be taken in another order.
    assert losses_in(on_neuron.stdout) == pytest.approx(losses, abs=1e-5)
    assert len(losses) == 10
    assert losses[-1] < 0.7 * losses[0]


def test_a_billion_parameters(tmp_path: Path) -> None:
    script = [TRAIN, "--preset", "1b", "--device", "neuron", "--batch", "1", "--tokens", "256"]
    found = estimate(tmp_path, *script)
    again = estimate(tmp_path, *script)
    assert {**found, "trace": None} == {**again, "trace": None}
    assert found["simulated"] is True
    assert found["tokens_per_step"] == 256
    # Llama 3.2 1B, embedding and output in one; everything is bfloat16, AdamW keeps two states.
    # With few tokens the peak is its step, where all of the gradients are there.
    hidden, attention = 3 * 2048 * 8192, 2 * 2048 * 2048 + 2 * 2048 * 512
    in_products = 16 * (hidden + attention) + 128_256 * 2048
    parameters = in_products + (2 * 16 + 1) * 2048
    memory = found["one_core"]["memory"]
    assert memory["parameters_bytes"] == pytest.approx(2 * parameters, rel=1e-3)
    assert memory["gradients_bytes"] == pytest.approx(2 * parameters, rel=1e-3)
    assert memory["optimizer_state_bytes"] == pytest.approx(4 * parameters, rel=1e-3)
    # two products of causal attention forward, five backward, over half of the pairs
    pairs = 16 * 2048 * 256 * 256
    flops = 6 * in_products * 256 + 7 * pairs
    assert found["matrix_flops_per_step"] == pytest.approx(flops, rel=0.01)
    one = found["one_core"]
    assert sum(one["parts_ns"].values()) == one["step_ns"]
    peak = found["peak_flops_per_s"]["bfloat16"]
    expected = found["matrix_flops_per_step"] / (peak * one["step_ns"] / 1e9)
    assert one["mfu"] == pytest.approx(expected, rel=0.01)


def test_a_layer_split_over_four_cores(tmp_path: Path) -> None:
    script = [TRAIN, "--preset", "1b", "--device", "neuron", "--batch", "1", "--tokens", "256"]
    whole = estimate(tmp_path, *script)
    found = estimate(tmp_path, "--tp", "4", "--dp", "2", *script)
    assert found["matrix_flops_per_step"] == pytest.approx(whole["matrix_flops_per_step"] / 4)
    group = found["one_core"]
    assert (group["tp"], group["num_cores"], found["layout"]["num_cores"]) == (4, 4, 8)
    parameters = whole["one_core"]["memory"]["parameters_bytes"]
    assert group["memory"]["parameters_bytes"] == pytest.approx(parameters / 4, rel=1e-3)
    # 16 layers of two parts forward and backward, the embedding, and the output layer's gradient;
    # bfloat16 activations of 256 tokens, and their logits
    sent = {(one["kind"], one["bytes"]): one["count"] for one in group["collectives"]}
    assert sent == {
        ("all_reduce", 256 * 2048 * 2): 4 * 16 + 2,
        ("all_gather", 256 * 128_256 * 2): 1,
    }
    assert sum(group["parts_ns"].values()) == group["step_ns"]
    assert found["borrowed_laws"]
    assert found["layout"]["tokens_per_s"] == pytest.approx(
        2 * 256 / found["layout"]["step_ns"] * 1e9
    )


FIXED_HEADS = """
import torch
from torch import nn
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(64, 192), nn.Linear(64, 64)
    def forward(self, x):
        query, key, value = self.qkv(x).view(2, 16, 3, 64).unbind(2)
        return self.out(query * key * value)
with torch.device("neuron"):
    model = Attention()
    print(model(torch.zeros(2, 16, 64)).sum().item())
"""


@pytest.mark.parametrize(
    ("tp", "said", "hint"),
    [
        (2, "it fails then (shape '[2, 16, 3, 64]'", "view(batch, tokens, -1, head_width)"),
        (5, "Attention.qkv has 192 columns", "choose another --tp"),
    ],
)
def test_a_script_whose_shapes_are_fixed_cannot_be_split(
    tmp_path: Path, tp: int, said: str, hint: str
) -> None:
    (tmp_path / "fixed.py").write_text(FIXED_HEADS)
    done = run(["-m", "trnscope", "estimate", "--tp", str(tp), "fixed.py"], tmp_path)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert f"fixed.py cannot be split over --tp {tp} cores: " in line
    assert said in line
    assert hint in line


INFERENCE = """
import torch
with torch.device("neuron"):
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 8))
with torch.no_grad():
    model(torch.randn(32, 512, device="neuron"))
print("to the end")
"""


def test_one_forward_call_is_a_step(tmp_path: Path) -> None:
    (tmp_path / "infer.py").write_text(INFERENCE)
    found = estimate(tmp_path, "--instance", "trn1", "--dp", "2", "infer.py")
    assert (found["steps_by"], found["num_steps"], found["first_step"]) == ("forward", 1, 0)
    assert found["executions_per_step"] == 3
    assert found["samples_per_step"] == 32
    assert found["tokens_per_step"] is None
    assert found["layout"]["collectives"] == []
    assert found["layout"]["samples_per_s"] == 2 * found["one_core"]["samples_per_s"]
    assert found["one_core"]["binding"] == "host"
    assert found["one_core"]["step_ns"] < 2_000_000


def test_a_compiled_model(tmp_path: Path) -> None:
    script = INFERENCE.replace(
        "with torch.no_grad", "model = torch.compile(model)\nwith torch.no_grad"
    )
    (tmp_path / "compiled.py").write_text(script + script[script.index("with torch.no_grad") :])
    found = estimate(tmp_path, "--instance", "trn2.3xlarge", "compiled.py")
    assert found["first_step"] == 1
    assert found["executions_per_step"] == 2, "the random input and the graph"
    assert found["samples_per_step"] == 32


def test_a_script_without_a_step(tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("import torch\nprint(torch.ones(2, device='neuron') * 2)\n")
    done = run(["-m", "trnscope", "estimate", "empty.py"], tmp_path)
    assert done.returncode == 1
    assert "ended with exit code 0 before a step was over" in done.stderr


def test_a_script_that_does_not_use_the_device_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cpu.py").write_text(
        "import torch\nmodel = torch.nn.Linear(8, 8)\n"
        "for _ in range(8):\n    model(torch.ones(4, 8))\n"
    )
    done = run(["-m", "trnscope", "estimate", "cpu.py"], tmp_path)
    assert done.returncode == 1
    assert "cpu.py ran nothing on the simulated device; move the model" in done.stderr
