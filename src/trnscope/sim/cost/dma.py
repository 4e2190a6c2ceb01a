"""Times of a DMA transfer: descriptors spread over the core's DMA engines.

A descriptor takes the longer of a floor and its bytes at the engine's rate, which is the published
curve of efficiency by size (0.43 of the peak at 1 KiB a partition, 0.97 at 4 KiB). Trigger and
completion are latencies: they delay what waits for the transfer, and other transfers overlap them.
"""

from __future__ import annotations

from dataclasses import dataclass

from trnscope.hardware.neuroncore import NeuronCore
from trnscope.sim.cost.program import DmaTransfer

MAX_DESCRIPTOR_BYTES = 65536
"""Longer runs are split, so that all engines take part."""


@dataclass(frozen=True)
class DmaTime:
    """What one transfer takes."""

    busy_ns: float
    """Share of the engines' time, all of them together."""
    data_ns: float
    """From the first byte to the last."""


class DmaModel:
    """Times of transfers on one core."""

    def __init__(self, core: NeuronCore) -> None:
        self.core = core
        self.figures = core.dma

    def efficiency(self, descriptor_bytes: int) -> float:
        """Bandwidth relative to that of long descriptors."""
        return (
            descriptor_bytes
            / self.figures.engine_bytes_per_ns
            / self.descriptor_ns(descriptor_bytes)
        )

    def descriptor_ns(self, descriptor_bytes: int) -> float:
        """Time of one descriptor on one engine."""
        data = descriptor_bytes / self.figures.engine_bytes_per_ns
        return max(self.figures.descriptor_floor_ns, data)

    def time(self, transfer: DmaTransfer) -> DmaTime:
        """Of one transfer, its repeats not counted."""
        size = max(1, min(transfer.descriptor_bytes, transfer.num_bytes, MAX_DESCRIPTOR_BYTES))
        descriptors = max(1, -(-transfer.num_bytes // size))
        each = self.descriptor_ns(size)
        if transfer.software:
            each = max(each, self.figures.software_packet_ns * self.figures.engines)
        if transfer.transpose:
            each /= self.figures.transpose_rate
        engines = min(transfer.engines, self.figures.engines)
        busy = max(descriptors * each / self.figures.engines, self._bandwidth_ns(transfer))
        rounds = -(-descriptors // engines)
        return DmaTime(busy, max(rounds * each, busy))

    def _bandwidth_ns(self, transfer: DmaTransfer) -> float:
        if not transfer.hbm:
            return 0.0
        traffic = transfer.num_bytes * (2 if transfer.direction == "move" else 1)
        return traffic / self.core.dma_bytes_per_ns
