"""Four ops that meet different limits; see docs/howto/is-my-op-limited-by-memory.md."""

import torch

torch.manual_seed(0)
torch.set_num_threads(1)
square, other = torch.randn(1024, 1024), torch.randn(1024, 1024)
matrix, column = torch.randn(4096, 4096), torch.randn(4096, 1)
long, longer = torch.randn(8_000_000), torch.randn(8_000_000)
short, shorter = torch.randn(64), torch.randn(64)


class Ops(torch.nn.Module):
    """A module with a parameter, so that each call is a step for ``trnscope run``."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = torch.nn.Parameter(torch.zeros(1))

    def forward(self) -> None:
        """A product, a product with one column, a sum of long tensors, sums of short ones."""
        torch.mm(square, other)
        torch.mm(matrix, column)
        torch.add(long, longer, out=long)
        for _ in range(20):
            torch.add(short, shorter)


with torch.no_grad():
    ops = Ops()
    for _ in range(12):
        ops()
