"""Finds what a folder of Neuron profiles holds: tables, traces by rank, or raw captures.

Layouts: Neuron Explorer's ``<data path>/profiles/global/<name>@latest/<Table>.parquet`` with the
device profiles of a system profile beside it as ``<name>_<device profile>@latest``; the capture
folders ``<instance>_pid_<pid>/[<time>/]`` of the runtime, one a rank.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trnscope.errors import UsageError
from trnscope.ingest.neuron_tables import NeuronTables, is_explorer_folder, table_files
from trnscope.ingest.neuron_values import as_int, as_text
from trnscope.model.health import HealthWarning
from trnscope.model.source import SourcePlace

_MAX_DEPTH = 6
_LATEST = "@latest"
_RANK_FOLDER = re.compile(r"(?P<instance>.+)_pid_(?P<pid>\d+)")
_TRACES = re.compile(
    r"trace\.json|system_profile\.json|neuron_framework_trace_rank_\d+\.json|.*\.pt\.trace\.json"
)
_RAW = (".ntff", ".neff", ".pb")
_RAW_SYSTEM = frozenset({"ntrace.pb", "trace_info.pb"})
_DEVICE_TABLES = ("Instruction", "DmaPacketAggregated", "DmaPacket", "ActiveTime", "CcOp")
_CORE_IN_NAME = re.compile(r"(?:^|_)nc_(\d+)(?:_|$)")


@dataclass(frozen=True)
class FolderSource:
    """One trace of a folder."""

    path: Path
    """A file, or a folder of tables."""
    place: SourcePlace
    """Its rank is by the order of the capture folders, where there are several."""


@dataclass(frozen=True)
class DeviceFolder:
    """The device profile of one core."""

    folder: Path
    tables: NeuronTables
    core: int
    process: str | None = None
    model: int | None = None


def find_sources(folder: Path) -> tuple[FolderSource, ...]:
    """The traces in a folder, each with the files it is read from.

    Raises :class:`UsageError` for a folder without any; raw captures are named with the command
    that makes them readable.
    """
    tables = table_files(folder)
    if is_explorer_folder(tables):
        return (_table_source(folder),)
    folders = [one for one in _walk(folder) if one != folder]
    explorer = [one for one in folders if is_explorer_folder(table_files(one))]
    traces = [path for one in (folder, *folders) for path in _traces_in(one)]
    raw = [path for one in (folder, *folders) for path in _raw_in(one)]
    if traces and (raw or explorer or _rank_folders(traces)):
        return _trace_sources(traces, raw, explorer)
    if explorer:
        return _table_sources(explorer)
    raise _nothing_to_open(folder, raw)


def _walk(folder: Path, depth: int = 0) -> Iterator[Path]:
    """A folder and those inside it, in order, without links and not too deep."""
    yield folder
    if depth < _MAX_DEPTH:
        for path in sorted(folder.iterdir()):
            if path.is_dir() and not path.is_symlink():
                yield from _walk(path, depth + 1)


def _traces_in(folder: Path) -> list[Path]:
    names = sorted(path for path in folder.iterdir() if path.is_file())
    return [path for path in names if _TRACES.fullmatch(path.name.removesuffix(".gz"))]


def _raw_in(folder: Path) -> list[Path]:
    return sorted(p for p in folder.iterdir() if p.suffix in _RAW and p.is_file())


# Tables ----------------------------------------------------------------------------------


def device_folders(folder: Path, tables: NeuronTables) -> tuple[DeviceFolder, ...]:
    """The device profiles of a folder of tables: its own, and those its list names beside it."""
    found = []
    has_device = any(tables.has(name) for name in _DEVICE_TABLES)
    if has_device or not tables.has("SystemProfileEvents"):
        found.append(DeviceFolder(folder, tables, _core_of(folder, tables)))
    for row in tables.objects("DeviceProfileList"):
        name = as_text(row.get("device_profile_name"))
        place = None if name is None else _device_profile(folder, name)
        if place is not None:
            core = as_int(row.get("nc_id"))
            its_tables = NeuronTables(place)
            found.append(
                DeviceFolder(
                    place,
                    its_tables,
                    _core_of(place, its_tables) if core is None else core,
                    as_text(row.get("process_id")),
                    as_int(row.get("model_id")),
                )
            )
    return tuple(found)


def _device_profile(folder: Path, name: str) -> Path | None:
    """Where a device profile of a system profile lies, if it was exported too."""
    display = folder.name.removesuffix(_LATEST)
    for candidate in (f"{display}_{name}{_LATEST}", f"{display}_{name}", f"{name}{_LATEST}", name):
        place = folder.parent / candidate
        if place != folder and place.is_dir() and is_explorer_folder(table_files(place)):
            return place
    return None


def _core_of(folder: Path, tables: NeuronTables) -> int:
    """The core of a device profile: as its metadata or its folder's name says, else 0."""
    core = as_int(tables.first("Metadata").get("neuroncore_idx"))
    if core is not None and core >= 0:
        return core
    match = _CORE_IN_NAME.search(folder.name.removesuffix(_LATEST))
    return int(match[1]) if match else 0


def _table_source(folder: Path) -> FolderSource:
    devices = device_folders(folder, NeuronTables(folder))
    members = [path for parts in table_files(folder).values() for path in parts]
    for one in devices:
        if one.folder != folder:
            members += [path for parts in table_files(one.folder).values() for path in parts]
    return FolderSource(folder, SourcePlace(tuple(members)))


def _table_sources(folders: list[Path]) -> tuple[FolderSource, ...]:
    """One source a profile; device profiles go with the system profile that lists them."""
    sources = [_table_source(folder) for folder in folders]
    taken = {
        member.parent
        for source in sources
        for member in source.place.members
        if member.parent != source.path
    }
    return tuple(source for source in sources if source.path not in taken)


# Captures --------------------------------------------------------------------------------


def _rank_folders(traces: list[Path]) -> list[Path]:
    """The capture folders that traces lie in, in the order of instance and process."""
    found = {folder for path in traces if (folder := _rank_folder(path)) is not None}
    return sorted(found, key=_rank_order)


def _rank_folder(path: Path) -> Path | None:
    return next((one for one in path.parents if _RANK_FOLDER.fullmatch(one.name)), None)


def _rank_order(folder: Path) -> tuple[str, int, Path]:
    match = _RANK_FOLDER.fullmatch(folder.name)
    return ("", 0, folder) if match is None else (match["instance"], int(match["pid"]), folder)


def _trace_sources(
    traces: list[Path], raw: list[Path], explorer: list[Path]
) -> tuple[FolderSource, ...]:
    ranks = {folder: rank for rank, folder in enumerate(_rank_folders(traces))}
    sources = []
    for path in _one_a_rank(traces):
        folder = _rank_folder(path)
        rank = ranks.get(folder) if folder is not None and len(ranks) > 1 else None
        beside = folder or path.parent
        older = {one.parent for one in traces if folder is not None and folder in one.parents}
        warnings = (*_beside(beside, raw, explorer), *_older(older - {path.parent}))
        place = SourcePlace(rank=rank, warnings=warnings)
        sources.append(FolderSource(path, place))
    return tuple(sources)


def _one_a_rank(traces: list[Path]) -> list[Path]:
    """The newest trace of each capture folder: each recording adds a folder named by its time."""
    newest: dict[Path, Path] = {}
    for path in sorted(traces):
        newest[_rank_folder(path) or path] = path
    order = {folder: at for at, folder in enumerate(_rank_folders(traces))}
    return [newest[key] for key in sorted(newest, key=lambda key: (order.get(key, -1), key))]


def _beside(folder: Path, raw: list[Path], explorer: list[Path]) -> tuple[HealthWarning, ...]:
    """What lies beside a trace and is not in it."""
    found = []
    tables = [one for one in explorer if folder in one.parents]
    if tables:
        message = f"tables of the device lie beside this trace: trnscope summary {tables[0]}"
        found.append(HealthWarning("device-tables-beside", message, len(tables)))
    mine = [path for path in raw if folder in path.parents]
    if mine:
        message = f"{_counted(mine)} beside this trace were not read; {_export_hint(folder, mine)}"
        found.append(HealthWarning("raw-capture-not-read", message, len(mine)))
    return tuple(found)


def _older(folders: set[Path]) -> tuple[HealthWarning, ...]:
    """Earlier recordings of the same process, which are not opened."""
    if not folders:
        return ()
    message = f"{len(folders)} earlier recordings of this process lie beside this one"
    return (HealthWarning("older-recordings", message, len(folders)),)


def _nothing_to_open(folder: Path, raw: list[Path]) -> UsageError:
    if raw:
        return UsageError(
            f"{folder}: holds raw captures of the Neuron runtime ({_counted(raw)}), whose format "
            "is private to AWS",
            _export_hint(folder, raw),
        )
    return UsageError(f"{folder}: is a directory", "name the trace files inside it")


def _counted(raw: list[Path]) -> str:
    counts = {suffix: sum(path.suffix == suffix for path in raw) for suffix in _RAW}
    return ", ".join(f"{count} {suffix}" for suffix, count in counts.items() if count)


def _export_hint(folder: Path, raw: list[Path]) -> str:
    """The command that makes tables of raw captures, or what is missing for it."""
    by_suffix = {suffix: [p for p in raw if p.suffix == suffix] for suffix in _RAW}
    empty = [path for path in by_suffix[".ntff"] if path.stat().st_size == 0]
    view, more = "neuron-explorer view", "--ingest-only --display-name profile --data-path explorer"
    if {path.name for path in raw} >= _RAW_SYSTEM:
        command = f"{view} -d {folder} {more}"
    elif by_suffix[".neff"] and len(empty) < len(by_suffix[".ntff"]):
        ntff = next(path for path in by_suffix[".ntff"] if path not in empty)
        neff = by_suffix[".neff"][0]
        command = f"{view} -n {neff} -s {ntff} {more}"
    else:
        return f"it cannot be exported: {_missing(by_suffix, empty)}; record it again"
    return f"export them where neuron-explorer is installed: {command}; then open explorer"


def _missing(by_suffix: dict[str, list[Path]], empty: list[Path]) -> str:
    if by_suffix[".ntff"] and len(empty) == len(by_suffix[".ntff"]):
        return "every .ntff is empty (0 bytes)"
    if by_suffix[".ntff"]:
        return "an .ntff needs the .neff that it was captured from"
    if by_suffix[".neff"]:
        return "an .neff is a compiled program; without an .ntff nothing of its runs was captured"
    return "a system profile needs both ntrace.pb and trace_info.pb"
