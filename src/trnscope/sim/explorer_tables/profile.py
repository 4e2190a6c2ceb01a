"""The folders of one profile, where Neuron Explorer would put them.

``<root>/profiles/global/<name>@latest`` holds the system profile, and beside it
``<name>_<instance>_pid_<process>_nc_<core>_session_0@latest`` each core's device profile.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from types import TracebackType

from trnscope.sim.explorer_tables.device_profile import MAX_ROWS, DeviceProfileWriter
from trnscope.sim.explorer_tables.rows import Machine
from trnscope.sim.explorer_tables.system_profile import SystemProfileWriter


class ExplorerProfile:
    """Writes one process's profile; use it as a context manager."""

    def __init__(
        self,
        root: Path,
        name: str,
        machine: Machine,
        *,
        instance_id: str,
        process_id: int,
        max_rows: int = MAX_ROWS,
    ) -> None:
        self._parent = root / "profiles" / "global"
        self._name = name
        self._machine = machine
        self._instance_id = instance_id
        self._process_id = process_id
        self._max_rows = max_rows
        self._devices: dict[int, DeviceProfileWriter] = {}
        folder = self._parent / f"{name}@latest"
        self.system = SystemProfileWriter(folder, machine, name, instance_id)
        """The system profile."""

    @property
    def folder(self) -> Path:
        """The system profile's folder: what to open."""
        return self.system.folder

    def device(self, core: int) -> DeviceProfileWriter:
        """The device profile of a logical core."""
        if core not in self._devices:
            name = f"{self._instance_id}_pid_{self._process_id}_nc_{core}_session_0"
            folder = self._parent / f"{self._name}_{name}@latest"
            self._devices[core] = DeviceProfileWriter(
                folder, self._machine, core, name, max_rows=self._max_rows
            )
            self.system.add_device_profile(name, self._process_id, core)
        return self._devices[core]

    def __enter__(self) -> ExplorerProfile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        writers: list[DeviceProfileWriter | SystemProfileWriter] = [*self._devices.values()]
        for writer in (*writers, self.system):
            if error is None:
                writer.close()
            else:  # half a profile would pass for a whole one
                shutil.rmtree(writer.folder, ignore_errors=True)
