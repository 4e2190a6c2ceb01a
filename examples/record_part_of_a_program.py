"""Records steps 4 to 6 of a training loop with ``trnscope.profile`` and prints the costliest ops.

python examples/record_part_of_a_program.py
"""

from __future__ import annotations

import torch

import trnscope


def main() -> None:
    """Train a small model for ten steps, three of which are recorded."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)
    )
    optimizer = torch.optim.AdamW(model.parameters())
    with trnscope.profile(wait=3, warmup=1, active=3, repeat=1) as run:
        for _ in range(10):
            inputs, labels = torch.randn(64, 256), torch.randint(10, (64,))
            loss = torch.nn.functional.cross_entropy(model(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step()
    print(f"trace: {run.path}")
    rows = run.open().ops().rows
    for row in sorted(rows, key=lambda row: -row.self_cpu_ns)[:5]:
        print(f"{row.self_cpu_ns / 1e6:9.3f} ms  {row.calls:5d} calls  {row.name}")


if __name__ == "__main__":
    main()
