"""What the study runs; it imports no torch."""

from __future__ import annotations

from enum import Enum

ROWS, WIDTH = 2048, 2048
"""Shape of the input, float32: 16.8 MB, about what one layer of a small language model sees."""
NUM_WARMUP_CALLS = 3
NUM_CALLS = 10
TABLE_FILE, RESULT_FILE = "table.txt", "result.npy"
"""What a measured process leaves beside its trace: torch's own table, the last call's result."""


class Way(Enum):
    """One way to compute RMSNorm."""

    OP_BY_OP = "op by op"
    FUSED = "torch.rms_norm"
    COMPILED = "torch.compile"
