"""How close each op comes to what the device can do, and which limit it meets.

The roofline model: an op of ``F`` FLOPs and ``B`` bytes cannot take less than ``F / peak`` nor
less than ``B / bandwidth``. The longer of the two is its attainable time; attainable over
measured time says how near the roof it runs. ``B`` is compulsory traffic, a lower bound, so
that a memory ratio is one too.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from trnscope.analysis.ceilings import Ceilings, Request, ceilings_of
from trnscope.analysis.devices import device_work
from trnscope.analysis.op_work import OpWork, op_work
from trnscope.analysis.roofline_rows import Bound, RooflineRow, rows_of
from trnscope.analysis.utilisation import StepFlops, mbu, mfu, step_flops
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace


class Basis(str, Enum):
    """Whose time the ops are measured by."""

    DEVICE = "device"
    HOST = "host"


@dataclass(frozen=True)
class Roofline:
    """The ops of a profile against the ceilings of its device; rows by time, longest first.

    The times of all rows, ``communication_ns``, ``transfer_ns``, ``unattributed_ns`` and
    ``overhead_ns`` add up to ``sum_ns``.
    """

    basis: Basis
    """Whose time the ops are measured by."""
    ceilings: Ceilings | None
    """What one device can do at most."""
    no_ceilings: str | None
    """Why there are no ceilings."""
    abstained: str | None
    """Why nothing can be said about any op."""
    simulated: str | None
    """The hardware model behind simulated times."""
    rows: tuple[RooflineRow, ...]
    """One an op, its shapes and its type."""
    steps: tuple[StepFlops, ...]
    """By file, then by time."""
    num_devices: int
    """Devices of all ranks that did work; 0 without a device."""
    sum_ns: int
    """All device work added; without a device all ops."""
    busy_ns: int
    """Union of the work of each device, added up; without a device equal to ``sum_ns``."""
    communication_ns: int
    """Collectives."""
    transfer_ns: int
    """Copies to or from the host or another device."""
    unattributed_ns: int
    """Device work that no op can be given."""
    overhead_ns: int
    """Host time of ops that only call others, make views or allocate; 0 with a device."""
    mfu_step: float | None
    """Matrix FLOPs over what the devices could have done in the steps' time."""
    mfu_device: float | None
    """The same over ``busy_ns``. Both are lower bounds where ``uncounted_ns`` is above 0."""
    mbu_device: float | None
    """Compulsory bytes over what the memory could have moved in ``busy_ns``; a lower bound."""

    @property
    def counted_ns(self) -> int:
        """Time of ops whose FLOPs are known."""
        return sum(row.time_ns for row in self.rows if row.flops is not None)

    @property
    def uncounted_ns(self) -> int:
        """Compute time whose FLOPs are not known, with and without an op."""
        return self.unattributed_ns + sum(row.time_ns for row in self.rows if row.flops is None)

    @property
    def uncounted_ratio(self) -> float | None:
        """``uncounted_ns`` over the time of compute: both add up to it with ``counted_ns``."""
        compute_ns = self.counted_ns + self.uncounted_ns
        return self.uncounted_ns / compute_ns if compute_ns else None

    @property
    def attainable_ns(self) -> int:
        """The least time that the ceilings allow for the ops that have one."""
        return sum(row.attainable_ns or 0 for row in self.rows)

    @property
    def attainable_of_ns(self) -> int:
        """The measured time of the ops that ``attainable_ns`` adds up."""
        return sum(row.time_ns for row in self.rows if row.attainable_ns is not None)

    @property
    def flops(self) -> int:
        """Of all ops with a formula."""
        return sum(row.flops or 0 for row in self.rows)

    @property
    def matrix_flops(self) -> int:
        """The part of matrix products, convolutions and attention."""
        return sum(row.flops or 0 for row in self.rows if row.is_matrix)

    def time_bound_by(self, bound: Bound | None) -> int:
        """Time of the ops with that bound, ns; None: of those without an answer."""
        return sum(row.time_ns for row in self.rows if row.bound is bound)

    def to_json(self) -> dict[str, object]:
        """See docs/reference/json.md."""
        return {
            "schema": 1,
            "basis": self.basis.value,
            "simulated": self.simulated,
            "hardware": None if self.ceilings is None else self.ceilings.to_json(),
            "no_hardware": self.no_ceilings,
            "abstained": self.abstained is not None,
            "reason": self.abstained,
            "num_devices": self.num_devices,
            "sum_ns": self.sum_ns,
            "busy_ns": self.busy_ns,
            "counted_ns": self.counted_ns,
            "uncounted_ns": self.uncounted_ns,
            "uncounted_ratio": self.uncounted_ratio,
            "communication_ns": self.communication_ns,
            "transfer_ns": self.transfer_ns,
            "unattributed_ns": self.unattributed_ns,
            "overhead_ns": self.overhead_ns,
            "attainable_ns": self.attainable_ns if self.attainable_of_ns else None,
            "attainable_of_ns": self.attainable_of_ns,
            "flops": self.flops,
            "matrix_flops": self.matrix_flops,
            "mfu_step": self.mfu_step,
            "mfu_device": self.mfu_device,
            "mbu_device": self.mbu_device,
            "steps": [step.to_json() for step in self.steps],
            "ops": [row.to_json() for row in self.rows],
        }


def roofline(
    profile: Profile,
    hardware: str | None = None,
    *,
    peak_flops: float | None = None,
    peak_bandwidth: float | None = None,
) -> Roofline:
    """Each op of a profile against the peaks of its device.

    ``hardware`` names a chip where the trace does not, or to ask what another chip's ceilings
    would be; ``peak_flops`` (FLOP/s, for every type) and ``peak_bandwidth`` (bytes/s) stand in
    for its figures. Raises :class:`UnknownHardwareError` and :class:`UsageError`.
    """
    ceilings, no_ceilings = ceilings_of(profile, Request(hardware, peak_flops, peak_bandwidth))
    works = [op_work(trace) for trace in profile.traces]
    if any(work.has_device for work in works):
        parts = [
            (source, profile.traces[source], work)
            for source, work in enumerate(works)
            if work.has_device
        ]
    else:
        parts = [(source, profile.traces[source], work) for source, work in enumerate(works)]
    return _summarize(parts, ceilings, no_ceilings)


_Part = tuple[int, Trace, OpWork]


def _summarize(parts: list[_Part], ceilings: Ceilings | None, no_ceilings: str | None) -> Roofline:
    rows = rows_of([work for _, _, work in parts], ceilings)
    steps, mfu_step = step_flops(parts, ceilings)
    works = [device_work(trace) for _, trace, _ in parts]
    spent_ns = sum(row.time_ns for row in rows)
    others = [sum(values) for values in zip(*(_others(work) for _, _, work in parts), strict=True)]
    communication_ns, transfer_ns, unattributed_ns, overhead_ns = others or (0, 0, 0, 0)
    sum_ns = spent_ns + communication_ns + transfer_ns + unattributed_ns + overhead_ns
    has_device = any(work.has_device for _, _, work in parts)
    busy_ns = sum(each.busy.total for work in works for each in work) if has_device else sum_ns
    return Roofline(
        basis=Basis.DEVICE if has_device else Basis.HOST,
        ceilings=ceilings,
        no_ceilings=no_ceilings,
        abstained=_abstained(parts, sum_ns),
        simulated=_simulated(parts),
        rows=rows,
        steps=steps,
        num_devices=sum(len(work) for work in works),
        sum_ns=sum_ns,
        busy_ns=busy_ns,
        communication_ns=communication_ns,
        transfer_ns=transfer_ns,
        unattributed_ns=unattributed_ns,
        overhead_ns=overhead_ns,
        mfu_step=mfu_step,
        mfu_device=mfu(rows, ceilings, busy_ns),
        mbu_device=mbu(rows, ceilings, busy_ns),
    )


def _others(work: OpWork) -> tuple[int, ...]:
    return (
        work.communication_ns,
        work.transfer_ns,
        work.unattributed_ns,
        work.overhead_ns,
    )


def _abstained(parts: list[_Part], sum_ns: int) -> str | None:
    if sum_ns == 0:
        return "the trace holds no ops and no device work"
    if not any(work.has_shapes for _, _, work in parts):
        return (
            "no shapes were recorded, so that no op's FLOPs are known; record with "
            "`trnscope run --shapes`, or with record_shapes=True in torch.profiler"
        )
    return None


def _simulated(parts: list[_Part]) -> str | None:
    """The hardware model behind simulated times, by the source or by a device of it."""
    for _, trace, _ in parts:
        devices = (track.device for track in trace.tracks)
        if trace.source.simulated or any(each.simulated for each in devices if each is not None):
            return trace.source.simulated_by or "model not named"
    return None


__all__ = ["Basis", "Bound", "Roofline", "RooflineRow", "StepFlops", "roofline"]
