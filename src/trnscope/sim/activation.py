"""Gives this process the simulated device "neuron"."""

from __future__ import annotations

import atexit
import importlib
import importlib.util
import os
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from trnscope.errors import TrnscopeError, UsageError
from trnscope.sim.build import load_device
from trnscope.sim.cost import CostModel
from trnscope.sim.costs import PriceList
from trnscope.sim.neuronx.install import install
from trnscope.sim.virtual_trace.device import SimulatedDevice, connect
from trnscope.sim.virtual_trace.observed import Program
from trnscope.sim.virtual_trace.programs import program_of
from trnscope.sim.virtual_trace.recording import Simulation

DEVICE = "neuron"
DEFAULT_INSTANCE = "trn2.3xlarge"
_REAL_PACKAGE = "torch_neuronx"
_QUERY_NS = 1_000
"""Virtual time that asking an event or a stream takes, so that a loop that polls comes to an end
(assumed: a call of the host's driver)."""
_HOST_ONLY_NS = 1_000
"""Virtual time of an op without device work, a view or an allocation (assumed: torch's own dispatch
of a view on a server CPU)."""


@dataclass(frozen=True)
class ActiveDevice:
    """The process's simulated device."""

    instance: str
    lnc: int
    numerics: bool
    model: CostModel
    prices: PriceList
    extension: Any
    """The compiled module; see ``csrc/bindings.cpp``."""

    @property
    def num_cores(self) -> int:
        """Devices that torch enumerates."""
        return int(self.extension.num_cores())


_active: list[ActiveDevice] = []


def is_active() -> bool:
    """Whether this process has the simulated device."""
    return bool(_active)


def active_device() -> ActiveDevice:
    """The process's simulated device; raises where it has none."""
    if not _active:
        raise UsageError(
            "this process has no simulated device", hint="call trnscope.sim.activate() first"
        )
    return _active[0]


def activate(
    instance: str = DEFAULT_INSTANCE, lnc: int | None = None, numerics: bool = True
) -> ActiveDevice:
    """Give this process the device "neuron", with the cores of ``instance``; times are simulated.

    ``lnc``: physical cores in one logical core, which torch sees as one device; None: the
    instance's default. ``numerics``: False computes no values (every one is zero), only shapes,
    memory and times, so that models too large for this machine can be recorded. A second call
    with the same choice changes nothing.
    """
    if _active:
        return _check_same(_active[0], instance, lnc, numerics)
    _refuse_real_device()
    model = CostModel.for_instance(instance, lnc)
    extension = load_device()
    device = ActiveDevice(
        model.instance.name, model.instance.lnc, numerics, model, PriceList(model), extension
    )
    _configure(device)
    _register(device)
    _active.append(device)
    _connect(device)
    _offer_backends()
    return device


def _check_same(
    active: ActiveDevice, instance: str, lnc: int | None, numerics: bool
) -> ActiveDevice:
    wanted = CostModel.for_instance(instance, lnc).instance
    if (wanted.name, wanted.lnc, numerics) != (active.instance, active.lnc, active.numerics):
        raise UsageError(
            f"this process already has a simulated {active.instance} with LNC={active.lnc}"
            f"{'' if active.numerics else ' without numerics'}",
            hint="start another process for another device",
        )
    return active


def _refuse_real_device() -> None:
    if _is_stand_in(sys.modules.get(_REAL_PACKAGE)):
        return
    if importlib.util.find_spec(_REAL_PACKAGE) is not None:
        raise TrnscopeError(
            f"{_REAL_PACKAGE} is installed: this machine uses the real neuron device",
            hint="uninstall it, or use another environment, to simulate",
        )
    claimed = torch._C._get_privateuse1_backend_name()
    if claimed != "privateuseone":
        raise TrnscopeError(
            f"the device {claimed!r} already occupies torch's only place for a device from outside",
            hint="simulate in a process that does not load it",
        )


def _is_stand_in(module: ModuleType | None) -> bool:
    return module is not None and module.__name__.startswith("trnscope.")


def _configure(device: ActiveDevice) -> None:
    extension, runtime = device.extension, device.model.runtime
    costs = extension.RuntimeCosts()
    costs.launch_latency_ns = runtime.launch_latency_ns
    costs.switch_ns = runtime.neff_switch_ns
    costs.sync_ns = runtime.sync_ns
    costs.queue_depth = runtime.eager_queue_depth
    costs.query_ns = _QUERY_NS
    costs.host_only_ns = _HOST_ONLY_NS
    extension.configure(
        device.model.num_logical_cores,
        device.model.hbm_bytes_per_core,
        costs,
        device.numerics,
        os.environ.get("NEURON_LAUNCH_BLOCKING") == "1",
    )
    extension.set_cost_source(device.prices)


def _register(device: ActiveDevice) -> None:
    module = importlib.import_module("trnscope.sim.device")
    untyped: Any = torch
    untyped.utils.rename_privateuse1_backend(DEVICE)
    untyped._register_device_module(DEVICE, module)
    untyped.utils.generate_methods_for_privateuse1_backend(
        for_tensor=True, for_module=True, for_packed_sequence=True, for_storage=True
    )
    device.extension.register_ops()
    atexit.register(device.extension.stop_worker)


def _connect(device: ActiveDevice) -> None:
    model = device.model
    simulation = Simulation(
        hardware=model.core.name,
        version=model.version,
        instance=device.instance,
        title=model.core.title,
        lnc=device.lnc,
        num_devices=device.num_cores,
        memory_bytes=model.hbm_bytes_per_core,
        launch_call_ns=model.runtime.graph_launch_ns,
    )
    connect(SimulatedDevice(device.extension, simulation, _program))
    install()


def _offer_backends() -> None:
    """For ``torch.compile`` and ``torch.distributed``."""
    from trnscope.sim import compile, distributed

    compile.install()
    distributed.register()


def _program(number: int) -> Program:
    priced = active_device().prices.row(number)
    if priced is None:
        return Program(active_device().extension.executions()[number][1])
    return program_of(priced.name, priced.signature, priced.cost)
