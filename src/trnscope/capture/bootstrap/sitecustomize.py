"""Loads the recorder into a Python process of ``trnscope run``, once that process imports torch.

The folder of this file is put first on PYTHONPATH, so that the interpreter runs it at its
start, in the script's own process and in every Python process that the script starts. The
interpreter itself then runs the script: its ``__main__``, arguments, signals, exit code and
tracebacks are what they are without us. Until torch is imported nothing but the standard
library is loaded, so that a script which sets thread counts or devices first still can.
"""

# ruff: noqa: PTH100, PTH120 (pathlib would be a large import for a process that is not ours)
from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

HERE = os.path.dirname(os.path.abspath(__file__))
SETTINGS = "TRNSCOPE_CAPTURE"
ROOT = "TRNSCOPE_CAPTURE_ROOT"
NEURON_PACKAGE = "torch_neuronx"
SIMULATED = '"device": "sim:'
"""In the settings' text: the script runs on a simulated device."""


class _AfterTorch(MetaPathFinder):
    """Finds torch as the import system would, and starts the recorder after its import."""

    def __init__(self, settings: str, is_root: bool) -> None:
        self.settings = settings
        self.is_root = is_root

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Answer for torch alone, once."""
        if name != "torch":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self)
        return spec

    def start(self) -> None:
        """Start the recorder; a failure is told in one line and the script goes on."""
        try:
            from trnscope.capture.session import start
        except ImportError as error:
            print(
                f"trnscope: cannot record this process, {sys.executable} has no trnscope: {error}",
                file=sys.stderr,
            )
            return
        start(self.settings, is_root=self.is_root)


class _Loader(Loader):
    """Torch's own loader, followed by the recorder's start."""

    def __init__(self, loader: Loader, after: _AfterTorch) -> None:
        self._loader = loader
        self._after = after

    def __getattr__(self, name: str) -> object:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the real loader does it."""
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, leave no trace of this loader, start the recorder."""
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        self._after.start()


class _StandIn(MetaPathFinder, Loader):
    """Lets a script import torch_neuronx before torch: on the simulated device, torch brings it."""

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Answer for torch_neuronx alone, once; the real package goes first."""
        if name != NEURON_PACKAGE:
            return None
        sys.meta_path.remove(self)
        if PathFinder.find_spec(name, path, target) is not None:
            return None
        importlib.import_module("torch")
        return ModuleSpec(name, self) if name in sys.modules else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The module that the simulated device has put in place."""
        return sys.modules[spec.name]

    def exec_module(self, module: ModuleType) -> None:
        """It has run already."""


def _run_the_users_own_sitecustomize() -> None:
    # Ours hides one that the environment may have; run it as the interpreter would have.
    ours = sys.modules.pop("sitecustomize")
    try:
        importlib.import_module("sitecustomize")
    except ImportError as error:
        if error.name != "sitecustomize":
            raise
        sys.modules["sitecustomize"] = ours


def _install() -> None:
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.curdir) != HERE]
    is_root = os.environ.pop(ROOT, None) is not None
    settings = os.environ.get(SETTINGS)
    if settings is not None:
        sys.meta_path.insert(0, _AfterTorch(settings, is_root))
        if SIMULATED in settings:
            sys.meta_path.insert(0, _StandIn())
    _run_the_users_own_sitecustomize()


_install()
