"""Times of a DMA transfer: descriptors spread over the core's DMA engines.

Descriptors that were prepared in a ring take the longer of a floor and their bytes at the engine's
rate, which is the published curve of efficiency by size (0.43 of the peak at 1 KiB a partition,
0.97 at 4 KiB). Where hardware makes them, transfers are issued one after another at a fixed
interval, and the engines spend only a little on each descriptor. Trigger and completion are
latencies: they delay what waits for the transfer, and other transfers overlap them.
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

    issue_ns: float
    """To issue it; transfers are issued one after another, whatever the queue."""
    busy_ns: float
    """Share of the engines' time, all of them together."""
    data_ns: float
    """From the first byte to the last."""


class DmaModel:
    """Times of transfers on one core."""

    def __init__(self, core: NeuronCore) -> None:
        self.core = core
        self.figures = core.dma

    def descriptor_ns(self, descriptor_bytes: int, *, ring: bool = True) -> float:
        """Time of one descriptor on one engine."""
        figures = self.figures
        data = descriptor_bytes / figures.engine_bytes_per_ns
        if figures.hardware_descriptors and not ring:
            return figures.hardware_descriptor_ns + data
        return max(figures.ring_descriptor_ns, data)

    def time(self, transfer: DmaTransfer) -> DmaTime:
        """Of one transfer, its repeats not counted."""
        figures = self.figures
        size = max(1, min(transfer.descriptor_bytes, transfer.num_bytes, MAX_DESCRIPTOR_BYTES))
        descriptors = -(-transfer.num_bytes // size)
        each = self.descriptor_ns(size, ring=transfer.ring)
        if transfer.software:
            each = max(each, figures.software_packet_ns * figures.engines)
        if transfer.transpose:
            each /= figures.transpose_rate
        engines = min(transfer.engines, figures.engines)
        busy = max(descriptors * each / figures.engines, self._bandwidth_ns(transfer))
        rounds = -(-descriptors // engines)
        return DmaTime(self._issue_ns(transfer, descriptors), busy, max(rounds * each, busy))

    def _issue_ns(self, transfer: DmaTransfer, descriptors: int) -> float:
        if transfer.ring or transfer.software:
            return 0.0
        figures = self.figures
        return figures.issue_ns + figures.issue_descriptor_ns * min(descriptors, 128)

    def _bandwidth_ns(self, transfer: DmaTransfer) -> float:
        if not transfer.hbm:
            return 0.0
        traffic = transfer.num_bytes * (2 if transfer.direction == "move" else 1)
        return traffic / self.core.dma_bytes_per_ns
