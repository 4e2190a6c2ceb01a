"""Compiles the device against the installed torch at first use, and keeps it in the user's cache.

torch's C++ interfaces differ with every minor version, so no compiled module could be shipped. The
module is kept by torch's version, the interpreter, the compiler and the sources.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.machinery
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import torch

from trnscope.errors import TrnscopeError
from trnscope.store.cache import cache_directory

MODULE_NAME = "_trnscope_neuron"
MIN_TORCH = (2, 12)
"""The first with a registry for profilers of other devices."""

_SOURCES = Path(__file__).parent / "csrc"
_PRECOMPILED = "torch_headers.h"
_INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)


class DeviceBuildError(TrnscopeError):
    """The simulated device cannot be compiled here."""


@dataclass(frozen=True)
class Toolchain:
    """How to compile against the installed torch."""

    compiler: str
    version: str
    compile_flags: tuple[str, ...]
    link_flags: tuple[str, ...]

    @property
    def is_gcc(self) -> bool:
        """Whether it takes a precompiled header from beside the header itself."""
        return "clang" not in self.version.lower()


def load_device() -> ModuleType:
    """The compiled device, compiled now if need be."""
    check_torch(torch.__version__)
    toolchain = find_toolchain()
    path = _module_path(toolchain)
    if not path.exists():
        _build(toolchain, path)
    return _import(path)


def check_torch(version: str) -> None:
    """Raise where torch is too old for the device."""
    numbers = tuple(int(text) for text in re.findall(r"\d+", version)[:2])
    if numbers < MIN_TORCH:
        raise DeviceBuildError(
            f"the simulated device needs torch 2.12 or newer; this is {version}",
            hint="install torch 2.13",
        )


def find_toolchain() -> Toolchain:
    """The C++ compiler and its flags; ``CXX`` names another one."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None or shutil.which(compiler) is None:
        raise DeviceBuildError(
            "the simulated device is compiled at first use, and there is no C++ compiler",
            hint="install g++ (Debian: apt install g++), or set CXX",
        )
    version = _output_of([compiler, "--version"]).splitlines()[0]
    return Toolchain(compiler, version, _compile_flags(), _link_flags())


def _compile_flags() -> tuple[str, ...]:
    root = Path(torch.__file__).parent / "include"
    includes = (
        root,
        root / "torch" / "csrc" / "api" / "include",
        root / "kineto",
        Path(sysconfig.get_path("include")),
    )
    abi = int(torch.compiled_with_cxx11_abi())
    return (
        "-std=c++20",
        "-O2",
        "-DNDEBUG",  # as the wheel: classes of torch have other members without
        "-g0",
        "-fPIC",
        "-fvisibility=hidden",
        "-w",
        f"-D_GLIBCXX_USE_CXX11_ABI={abi}",
        f"-DTORCH_EXTENSION_NAME={MODULE_NAME}",
        "-DUSE_KINETO",
        "-DFMT_HEADER_ONLY=1",
        *(f"-isystem{path}" for path in includes),
    )


def _link_flags() -> tuple[str, ...]:
    library = Path(torch.__file__).parent / "lib"
    return (
        "-shared",
        f"-L{library}",
        f"-Wl,-rpath,{library}",
        "-lc10",
        "-ltorch_cpu",
        "-ltorch",
        "-ltorch_python",
    )


def _module_path(toolchain: Toolchain) -> Path:
    suffix = sysconfig.get_config_var("EXT_SUFFIX") or ".so"
    key = _digest(_sources_text(), *_toolchain_text(toolchain))[:16]
    return _build_root() / f"{torch.__version__}-{key}" / f"{MODULE_NAME}{suffix}"


def _build_root() -> Path:
    return cache_directory() / "device"


def _toolchain_text(toolchain: Toolchain) -> tuple[str, ...]:
    suffix = str(sysconfig.get_config_var("EXT_SUFFIX"))
    return (toolchain.version, torch.__version__, suffix, *toolchain.compile_flags)


def _sources_text() -> str:
    return "\0".join(path.name + path.read_text() for path in sorted(_SOURCES.iterdir()))


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()


def _build(toolchain: Toolchain, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path.parent / "lock"):
        if path.exists():  # another process was faster
            return
        sys.stderr.write(
            "trnscope: compiling the simulated neuron device for this torch "
            f"({torch.__version__}), once; this takes a minute or two\n"
        )
        _compile_and_link(toolchain, path)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.stderr.write(f"trnscope: waiting for {_holder(path)} (a minute or two, once)\n")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _holder(lock: Path) -> str:
    """The process that compiles, by the number that it wrote into the lock."""
    number = lock.read_text(encoding="utf-8").strip()
    who = f"process {number}" if number.isdecimal() else "another process"
    return f"{who}, which compiles the simulated neuron device"


def _compile_and_link(toolchain: Toolchain, path: Path) -> None:
    folder = _build_root() / "objects"
    folder.mkdir(parents=True, exist_ok=True)
    objects = {source: folder / _object_name(toolchain, source) for source in _units()}
    missing = [source for source, made in objects.items() if not made.exists()]
    if missing:
        with _precompiled_header(toolchain, path.parent) as header:
            _in_parallel(
                [_compile_command(toolchain, unit, objects[unit], header) for unit in missing]
            )
    made = path.with_suffix(f".{os.getpid()}")
    _run([toolchain.compiler, *map(str, objects.values()), *toolchain.link_flags, "-o", str(made)])
    made.replace(path)
    _remove_all_but(folder, set(objects.values()))


def _units() -> list[Path]:
    return sorted(_SOURCES.glob("*.cpp"))


def _object_name(toolchain: Toolchain, source: Path) -> str:
    texts = [path.read_text() for path in sorted(_closure(source))]
    return f"{source.stem}-{_digest(*texts, *_toolchain_text(toolchain))[:16]}.o"


def _closure(source: Path) -> set[Path]:
    """A source and all of our headers that it includes."""
    found: set[Path] = set()
    queue = [source]
    while queue:
        path = queue.pop()
        if path in found or not path.exists():
            continue
        found.add(path)
        queue += [_SOURCES / name for name in _INCLUDE.findall(path.read_text())]
    return found


@contextmanager
def _precompiled_header(toolchain: Toolchain, folder: Path) -> Iterator[Path]:
    """A folder to search first, where torch's headers are precompiled once for all sources."""
    own = folder / "precompiled"
    own.mkdir(exist_ok=True)
    header = own / _PRECOMPILED
    shutil.copyfile(_SOURCES / _PRECOMPILED, header)
    try:
        if toolchain.is_gcc:
            command = [toolchain.compiler, *toolchain.compile_flags, "-x", "c++-header"]
            _run([*command, str(header), "-o", f"{header}.gch"])
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)


def _compile_command(
    toolchain: Toolchain, source: Path, made: Path, header_folder: Path
) -> list[str]:
    return [
        toolchain.compiler,
        *toolchain.compile_flags,
        "-include",
        str(header_folder / _PRECOMPILED),
        f"-iquote{_SOURCES}",
        "-c",
        str(source),
        "-o",
        str(made),
    ]


def _in_parallel(commands: list[list[str]]) -> None:
    jobs = int(os.environ.get("MAX_JOBS", 0)) or os.cpu_count() or 1
    with ThreadPoolExecutor(jobs) as pool:
        for _ in pool.map(_compile_one, commands):
            pass


def _compile_one(command: list[str]) -> None:
    made = Path(command[-1])
    part = made.with_suffix(f".{os.getpid()}")
    _run([*command[:-1], str(part)])
    part.replace(made)


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise DeviceBuildError(
            f"the simulated device is compiled at first use: cannot run {command[0]}: "
            f"{error.strerror}",
            hint="install g++ (Debian: apt install g++), or set CXX",
        ) from error
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr)
        raise DeviceBuildError(
            f"the simulated device does not compile against torch {torch.__version__}: {first}",
            hint="report it with the output of `python -m torch.utils.collect_env`",
        )


def _output_of(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _remove_all_but(folder: Path, kept: set[Path]) -> None:
    for path in folder.iterdir():
        if path not in kept:
            path.unlink(missing_ok=True)


def _import(path: Path) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(MODULE_NAME, str(path))
    spec = importlib.util.spec_from_file_location(MODULE_NAME, path, loader=loader)
    if spec is None:
        raise DeviceBuildError(f"{path} cannot be loaded", hint="remove it and try again")
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
