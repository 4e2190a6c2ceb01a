"""Neutral kinds of slices, tracks and devices; vendor words are mapped to them in ingest."""

from __future__ import annotations

from enum import IntEnum


class SliceKind(IntEnum):
    """What a slice is. The numbers are stored on disk: append, never renumber."""

    CPU_OP = 0
    """A framework operator on the host (``aten::mm``)."""
    ANNOTATION = 1
    """A user's or the framework's named range on the host (``ProfilerStep#3``)."""
    PYTHON = 2
    """A Python frame."""
    RUNTIME = 3
    """A host call into a device runtime or driver (``cudaLaunchKernel``, ``nrt_execute``)."""
    KERNEL = 4
    """Device compute work."""
    COLLECTIVE = 5
    """Device communication work (``ncclDevKernel_AllReduce...``)."""
    MEMCPY = 6
    """A copy done by the device."""
    MEMSET = 7
    """A fill done by the device."""
    DEVICE_ANNOTATION = 8
    """A named range shown on a device track; it is no device work."""
    SYNC = 9
    """A synchronisation row on a device track; it is no device work."""
    OVERHEAD = 10
    """Time the profiler itself took."""
    PROFILER = 11
    """Bookkeeping of the profiler (the recording window and the like); no work of anyone."""
    OTHER = 12
    """Any other slice of a thread."""
    INSTRUCTION = 13
    """A part inside device work that another slice counts as a whole: an engine's instruction,
    a DMA transfer."""


DEVICE_WORK = (SliceKind.KERNEL, SliceKind.COLLECTIVE, SliceKind.MEMCPY, SliceKind.MEMSET)
"""The kinds that occupy a device: their union is its busy time."""


class TrackKind(IntEnum):
    """What a track stands for. Stored on disk: append, never renumber."""

    CPU_THREAD = 0
    DEVICE_STREAM = 1
    DEVICE_ENGINE = 2
    DEVICE_QUEUE = 3
    COUNTER = 4
    ASYNC = 5
    """Slices that may overlap and belong to no thread (Chrome's async events)."""
    PROFILER = 6
    """The profiler's own rows."""
    OTHER = 7


INSIDE_DEVICE = (TrackKind.DEVICE_ENGINE, TrackKind.DEVICE_QUEUE)
"""Parts of a device, which a device profile shows: it has no host by design."""


class DeviceKind(IntEnum):
    """Family of a device. ``name.lower()`` is its spelling in JSON. Stored on disk."""

    CUDA = 0
    HIP = 1
    XPU = 2
    MTIA = 3
    NEURON = 4
    NPU = 5
    HPU = 6
    PRIVATEUSE1 = 7
    """An out-of-tree device whose name the trace does not give."""
    OTHER = 8
