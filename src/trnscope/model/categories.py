"""Categories by which torch's tools know a slice; formats of other tools have their own words."""

from __future__ import annotations

from collections.abc import Mapping

from trnscope.model.kinds import SliceKind

TORCH_CATEGORY: Mapping[int, str] = {
    SliceKind.CPU_OP: "cpu_op",
    SliceKind.ANNOTATION: "user_annotation",
    SliceKind.PYTHON: "python_function",
    SliceKind.KERNEL: "kernel",
    SliceKind.COLLECTIVE: "kernel",
    SliceKind.MEMCPY: "gpu_memcpy",
    SliceKind.MEMSET: "gpu_memset",
    SliceKind.DEVICE_ANNOTATION: "gpu_user_annotation",
    SliceKind.SYNC: "cuda_sync",
    SliceKind.OVERHEAD: "overhead",
    SliceKind.INSTRUCTION: "neuron_instruction",
}
"""By kind. Kinds without one are called differently for each device: runtime calls, say."""
