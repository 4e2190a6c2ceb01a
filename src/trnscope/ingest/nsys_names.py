"""Names in an Nsight Systems export: its string table, its threads, streams and NVTX texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trnscope.ingest.nsys_database import ABSENT, NsysDatabase
from trnscope.model.kinds import DeviceKind, TrackKind
from trnscope.model.track import Device, Track
from trnscope.store.tables import I64, U32, Bool
from trnscope.store.writer import TraceWriter

_NO_STREAM = (ABSENT, 0xFFFFFFFF)

# A call's name ends in the version of its entry point: cudaLaunchKernel_v7000.
_API_VERSION = re.compile(r"_v\d+$")
# torch.autograd.profiler.emit_nvtx puts what it knows of an op behind the op's name.
_TORCH_TEXT = re.compile(
    r"(?P<name>.*?)(?:, seq = (?P<seq>-?\d+))?(?:, op_id = \d+)?"
    r"(?:, sizes = (?P<sizes>\[.*?\]))?(?:, input_op_ids = \[.*\])?",
    re.DOTALL,
)
_OP_NAME = re.compile(r"(?!FSDP::)\w+::\w[\w.]*|detach_?|\w+Backward\d*|autograd::engine::.*")


def process_of(global_id: I64) -> I64:
    """The process (and host) part of global thread or process ids; ABSENT stays."""
    return np.where(global_id == ABSENT, ABSENT, global_id >> 24)


class NsysTexts:
    """The string table being built, and the ids that those of ``StringIds`` became."""

    def __init__(self, database: NsysDatabase) -> None:
        self._database = database
        self._ids: dict[str, int] = {}
        self._of_nsys: dict[tuple[int, bool], int] = {}
        self.all: list[str] = []
        """Every text, by id."""
        self.num_missing = 0

    def intern(self, text: str) -> int:
        """The id of a text."""
        at = self._ids.setdefault(text, len(self.all))
        if at == len(self.all):
            self.all.append(text)
        return at

    def of_nsys(self, ids: I64, *, api: bool = False) -> U32:
        """Ids of ours for ids of ``StringIds``; ``api`` drops the version of an entry point."""
        unique, inverse = np.unique(ids, return_inverse=True)
        asked = unique.tolist()
        new = [i for i in asked if (i, api) not in self._of_nsys]
        found = self._database.strings([i for i in new if i != ABSENT])
        for i in new:
            text = found.get(i)
            self.num_missing += text is None
            name = "(name not recorded)" if text is None else text
            self._of_nsys[i, api] = self.intern(_API_VERSION.sub("", name) if api else name)
        return np.array([self._of_nsys[i, api] for i in asked], np.uint32)[inverse]

    def labelled(self, values: I64, labels: dict[int, str], other: str) -> U32:
        """Ids of the labels of numbers; ``other`` for a number without one."""
        unique, inverse = distinct_rows(values)
        ids = [self.intern(labels.get(value, other)) for (value,) in unique]
        return np.array(ids, np.uint32)[inverse]


class NsysTracks:
    """Finds or makes the track of a thread or a stream, and names it."""

    def __init__(self, database: NsysDatabase, writer: TraceWriter) -> None:
        self._writer = writer
        self._found: dict[tuple[str, int, int, int], int] = {}
        names = database.rows("ThreadNames", ("globalTid", "nameId"))
        texts = database.strings(sorted({i for _, i in names if isinstance(i, int)}))
        self._thread_names = {tid: texts.get(name) for tid, name in names}
        processes = database.rows("PROCESSES", ("globalPid", "name"))
        self._process_names = {
            pid >> 24: str(name) for pid, name in processes if isinstance(pid, int) and name
        }
        gpus = database.rows("TARGET_INFO_GPU", ("id", "name"))
        self._gpu_names = {gpu: str(name) for gpu, name in gpus if name}
        visible = database.rows("TARGET_INFO_CUDA_DEVICE", ("pid", "cudaId", "gpuId"))
        self._gpu_of = {(pid, cuda): gpu for pid, cuda, gpu in visible if isinstance(gpu, int)}

    def threads(self, global_tids: I64, kind: TrackKind, suffix: str = "") -> U32:
        """Tracks of threads; ``suffix`` sets apart a second track of the same thread."""
        unique, inverse = distinct_rows(global_tids)
        tracks = [self._thread(tid, kind, suffix) for (tid,) in unique]
        return np.array(tracks, np.uint32)[inverse]

    def _thread(self, global_tid: int, kind: TrackKind, suffix: str) -> int:
        key = (suffix, global_tid, 0, 0)
        if key not in self._found:
            known = global_tid != ABSENT
            thread = str(global_tid & 0xFFFFFF) if known else "unknown"
            name = self._thread_names.get(global_tid)
            self._found[key] = self._writer.add_track(
                Track(
                    kind,
                    process=_process_text(global_tid >> 24 if known else ABSENT),
                    thread=f"{thread} {suffix}".strip(),
                    process_name=self._process_names.get(global_tid >> 24),
                    thread_name=f"{name or thread} ({suffix})" if suffix else name,
                )
            )
        return self._found[key]

    def device_index(self, process: int, cuda_device: int) -> int:
        """The physical GPU of a process's device; processes may each number their own from 0."""
        if cuda_device == ABSENT:
            return 0
        return self._gpu_of.get((process & 0xFFFFFF, cuda_device), cuda_device)

    def streams(self, process: I64, device: I64, stream: I64, suffix: str = "") -> U32:
        """Tracks of device streams."""
        unique, inverse = distinct_rows(process, device, stream)
        tracks = [self._stream(p, d, s, suffix) for p, d, s in unique]
        return np.array(tracks, np.uint32)[inverse]

    def _stream(self, process: int, device: int, stream: int, suffix: str) -> int:
        key = (suffix, process, device, stream)
        if key not in self._found:
            number = None if stream in _NO_STREAM else stream
            label = f"{'stream' if number is None else f'stream {number}'} {suffix}".strip()
            self._found[key] = self._writer.add_track(
                Track(
                    TrackKind.DEVICE_STREAM,
                    process=_process_text(process),
                    thread=f"cuda:{device} {label}",
                    process_name=self._process_names.get(process),
                    thread_name=label,
                    device=Device(DeviceKind.CUDA, device, self._gpu_names.get(device)),
                    stream=number,
                )
            )
        return self._found[key]


def _process_text(process: int) -> str:
    return "unknown" if process == ABSENT else str(process & 0xFFFFFF)


@dataclass(frozen=True)
class NvtxTexts:
    """What the texts of NVTX rows say, a row each; ABSENT where they say nothing."""

    name: U32
    is_op: Bool
    """torch's emit_nvtx wrote it for an operator."""
    sequence: I64
    dims: I64
    """String ids of the input sizes."""


def parse_nvtx_texts(
    database: NsysDatabase, texts: NsysTexts, inline: Sequence[str | None], text_ids: I64
) -> NvtxTexts:
    """Names of NVTX rows, from the row itself or through ``StringIds``.

    What torch's emit_nvtx appends to a name is taken off and kept as attributes, so that all
    calls of an op share one name. Its op ids are dropped.
    """
    indirect = np.unique(text_ids[np.array([text is None for text in inline], np.bool_)])
    by_id = database.strings([i for i in indirect.tolist() if i != ABSENT])
    known: dict[str, _Parsed] = {}
    rows: list[_Parsed] = []
    for text, text_id in zip(inline, text_ids.tolist(), strict=True):
        whole = by_id.get(text_id, "(unnamed)") if text is None else text
        # Nearly all texts of torch differ in their op id alone.
        head, mark, op_id = whole.rpartition(", op_id = ")
        key = f"{head}, op_id = 0" if mark and op_id.isdecimal() else whole
        parsed = known.get(key)
        if parsed is None:
            parsed = known[key] = _parse_nvtx_text(texts, key)
        rows.append(parsed)
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    return NvtxTexts(
        name=np.array(columns[0], np.uint32),
        is_op=np.array(columns[1], np.bool_),
        sequence=np.array(columns[2], np.int64),
        dims=np.array(columns[3], np.int64),
    )


_Parsed = tuple[int, bool, int, int]
"""Name, whether an op, sequence number, input sizes: as the columns of NvtxTexts."""


def _parse_nvtx_text(texts: NsysTexts, text: str) -> _Parsed:
    by_torch = ", op_id = " in text or ", seq = " in text
    match = _TORCH_TEXT.fullmatch(text) if by_torch else None
    if match is None:
        return texts.intern(text), False, ABSENT, ABSENT
    sequence, sizes = match["seq"], match["sizes"]
    is_op = sequence is not None or _OP_NAME.fullmatch(match["name"]) is not None
    return (
        texts.intern(match["name"]),
        is_op,
        int(sequence) if sequence is not None and int(sequence) >= 0 else ABSENT,
        ABSENT if sizes is None else texts.intern(sizes),
    )


def distinct_rows(*columns: I64) -> tuple[list[tuple[int, ...]], npt.NDArray[np.intp]]:
    """The distinct combinations of values in columns of one length, and which each row has."""
    code = np.zeros(columns[0].size, np.int64)
    for column in columns:
        if column.size and column.min() != column.max():
            values, inverse = np.unique(column, return_inverse=True)
            code = code * values.size + inverse
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    return list(zip(*(column[first].tolist() for column in columns), strict=True)), inverse
