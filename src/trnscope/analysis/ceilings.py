"""Which peaks the ops of a profile are held against: the device's own, or what the user gives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from trnscope.analysis.devices import device_work
from trnscope.errors import UnknownHardwareError, UsageError
from trnscope.hardware.chips import Chip, Quantity, find, load
from trnscope.hardware.neuroncore import load_instance
from trnscope.store.profile import Profile
from trnscope.store.reader import Trace

_USER = "given by the user"
_HINT = "name the device with --hardware, or give --peak-flops and --peak-bandwidth"


@dataclass(frozen=True)
class Peak:
    """A ceiling of one device, as torch enumerates devices."""

    value: float
    source: str


@dataclass(frozen=True)
class Ceilings:
    """Peak FLOP/s by type and memory bandwidth of one device."""

    name: str | None = None
    """The chip's name in the hardware data; absent where the user gave all numbers."""
    title: str | None = None
    version: str | None = None
    device_is: str | None = None
    """What one device is, where it is a part of the chip."""
    flops_by_dtype: Mapping[str, Peak] = field(default_factory=lambda: MappingProxyType({}))
    flops_of_any: Peak | None = None
    """Serves every type: the user's own number."""
    bandwidth: Peak | None = None

    def flops(self, dtype: str | None) -> Peak | None:
        """The peak for a type, FLOP/s."""
        if self.flops_of_any is not None:
            return self.flops_of_any
        if dtype is None:
            return None
        return self.flops_by_dtype.get(dtype) or self.flops_by_dtype.get(dtype.partition("_")[0])

    def ridge_point(self, dtype: str | None) -> float | None:
        """FLOPs a byte at which the two ceilings meet."""
        peak = self.flops(dtype)
        if peak is None or self.bandwidth is None:
            return None
        return peak.value / self.bandwidth.value

    def to_json(self) -> dict[str, object]:
        """Its fields; peaks by type, each with its source and where it meets the memory's."""
        peaks = {
            dtype: {
                "value": peak.value,
                "source": peak.source,
                "ridge_point": self.ridge_point(dtype),
            }
            for dtype, peak in self.flops_by_dtype.items()
        }
        return {
            "name": self.name,
            "title": self.title,
            "version": self.version,
            "device_is": self.device_is,
            "peak_flops_per_s": peaks if self.flops_of_any is None else {},
            "peak_flops_per_s_of_any_type": _peak_json(self.flops_of_any),
            "peak_bytes_per_s": _peak_json(self.bandwidth),
        }


def _peak_json(peak: Peak | None) -> dict[str, object] | None:
    return None if peak is None else {"value": peak.value, "source": peak.source}


@dataclass(frozen=True)
class Request:
    """What the user said about the hardware."""

    hardware: str | None = None
    peak_flops: float | None = None
    peak_bandwidth: float | None = None


def ceilings_of(profile: Profile, request: Request) -> tuple[Ceilings | None, str | None]:
    """The ceilings, or None and why there are none.

    Raises :class:`UsageError` for a number that is none, :class:`UnknownHardwareError` for a
    name that the user gave and nobody knows.
    """
    for value in (request.peak_flops, request.peak_bandwidth):
        if value is not None and not 0 < value < float("inf"):
            raise UsageError(f"a peak of {value:g} is not possible", "give a number above 0")
    chip, reason = _chip(profile, request)
    if chip is None and request.peak_flops is None and request.peak_bandwidth is None:
        return None, reason
    found = Ceilings() if chip is None else _of_device(chip, profile)
    return _overridden(found, request), None


def _chip(profile: Profile, request: Request) -> tuple[Chip | None, str | None]:
    if request.hardware is not None:
        return load(request.hardware), None
    traces = [trace for trace in profile.traces if device_work(trace)]
    if not traces:
        return None, f"the peaks of this CPU are not known; {_HINT}"
    names = {work.device.name for trace in traces for work in device_work(trace)}
    if len(names) > 1:
        listed = ", ".join(sorted(name or "one without a name" for name in names))
        return None, f"the devices are not of one kind ({listed}); look at one file at a time"
    name = names.pop()
    if name is None:
        return None, f"the trace does not name its device; {_HINT}"
    try:
        return find(name), None
    except UnknownHardwareError as unknown:
        return None, str(unknown)


def _of_device(chip: Chip, profile: Profile) -> Ceilings:
    """The ceilings of what torch calls a device: the chip, or some of its cores."""
    per_core = any(peak.per_core for peak in chip.peaks.values())
    cores = _cores_of_device(chip, profile) if per_core else 1
    num_cores = int(chip.cores.value) if per_core and chip.cores is not None else cores
    return Ceilings(
        name=chip.name,
        title=chip.title,
        version=chip.version,
        device_is=f"{cores} of {num_cores} cores" if per_core else None,
        flops_by_dtype=MappingProxyType(
            {dtype: _scaled(peak, cores if peak.per_core else 1) for dtype, peak in _known(chip)}
        ),
        bandwidth=_share(chip.memory_bandwidth, cores, num_cores),
    )


def _known(chip: Chip) -> list[tuple[str, Quantity]]:
    return list(chip.peaks.items())


def _scaled(peak: Quantity, cores: int) -> Peak:
    return Peak(peak.value * cores, peak.source)


def _share(bandwidth: Quantity | None, cores: int, num_cores: int) -> Peak | None:
    """A device's part of the chip's memory bandwidth, as if all cores wanted as much."""
    if bandwidth is None:
        return None
    part = 1.0 if bandwidth.per_core else cores / num_cores
    return Peak(bandwidth.value * (cores if bandwidth.per_core else part), bandwidth.source)


def _cores_of_device(chip: Chip, profile: Profile) -> int:
    """Physical cores of a logical one: as the trace says, else the platform's default."""
    recorded = {_recorded_lnc(trace) for trace in profile.traces} - {None}
    found = recorded.pop() if len(recorded) == 1 else None
    return load_instance(chip.name).lnc if found is None else found


def _recorded_lnc(trace: Trace) -> int | None:
    try:
        found = json.loads(trace.source.metadata.get("trnscopeSimulation", "null"))
    except ValueError:
        return None
    lnc = found.get("lnc") if isinstance(found, dict) else None
    return lnc if isinstance(lnc, int) and lnc > 0 else None


def _overridden(found: Ceilings, request: Request) -> Ceilings:
    flops, bandwidth = request.peak_flops, request.peak_bandwidth
    return Ceilings(
        name=found.name,
        title=found.title,
        version=found.version,
        device_is=found.device_is,
        flops_by_dtype=found.flops_by_dtype,
        flops_of_any=None if flops is None else Peak(flops, _USER),
        bandwidth=found.bandwidth if bandwidth is None else Peak(bandwidth, _USER),
    )
