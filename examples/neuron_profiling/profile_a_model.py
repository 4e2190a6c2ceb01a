"""A TorchNeuron script that profiles a few training steps, as the vendor's guide shows it.

On an instance with torch_neuronx: python profile_a_model.py
Anywhere else:                     trnscope run --device sim:trn2 profile_a_model.py
"""

import torch
import torch_neuronx
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch_neuronx.profiling import NeuronConfig, NeuronProfiler, ProfileMode

WARM_UP_STEPS = 3
PROFILED_STEPS = 3


class Block(nn.Module):
    """A small transformer block."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Normalise, widen, narrow, add."""
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


def main() -> None:
    """Train without the profiler until everything is compiled, then with it."""
    torch.manual_seed(0)
    model = nn.Sequential(Block(256), Block(256), nn.Linear(256, 16)).to("neuron")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    inputs = torch.randn(64, 256).to("neuron")
    labels = torch.randint(16, (64,)).to("neuron")

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(WARM_UP_STEPS):
        step()
    torch_neuronx.synchronize()

    config = NeuronConfig(
        modes=[ProfileMode.RUNTIME, ProfileMode.DEVICE, ProfileMode.HOST_MEMORY],
        capture_enabled_for_nc="0",
        profile_output_dir="./neuron-profile",
    )
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.PrivateUse1],
        experimental_config=config,
        on_trace_ready=NeuronProfiler(config).export_trace,
    ) as prof:
        for _ in range(PROFILED_STEPS):
            loss = step()
        torch_neuronx.synchronize()

    print(prof.key_averages().table(sort_by="self_device_time_total", row_limit=10))
    print(f"loss after {WARM_UP_STEPS + PROFILED_STEPS} steps: {loss.item():.4f}")
    print(f"ops that fell back to the CPU: {torch_neuronx.get_fallback_ops()}")


if __name__ == "__main__":
    main()
