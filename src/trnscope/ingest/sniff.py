"""Says what a file is from its first bytes; the name decides nothing."""

from __future__ import annotations

import stat
import zlib
from enum import Enum
from pathlib import Path

from trnscope.errors import TraceFormatError, UsageError
from trnscope.ingest.neuron_json_kind import NeuronJson, json_kind

_HEAD_BYTES = 4096
_JSON_BYTES = 64 << 10
"""How much of a JSON text tells whose document it is."""
_GZIP = b"\x1f\x8b"
_SQLITE = b"SQLite format 3\x00"
_BOM = b"\xef\xbb\xbf"
_NO_HINT = (
    "trnscope opens Chrome-trace JSON (torch.profiler), also .gz, Nsight SQLite exports, and "
    "folders and JSON of Neuron Explorer"
)
_PARQUET_HINT = "give the folder with all tables of the profile"
_EXPORT_HINT = (
    "its format is private to AWS; give the folder that it lies in: trnscope then names the "
    "command that exports it"
)
_RAW_CAPTURES = {
    ".ntff": "is a raw device capture of the Neuron runtime",
    ".neff": "is a compiled Neuron program",
}
_RAW_SYSTEM = frozenset({"ntrace.pb", "trace_info.pb", "cpu_util.pb", "host_mem.pb"})

_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"\x89PNG\r\n", "is a PNG image", _NO_HINT),
    (b"\xff\xd8\xff", "is a JPEG image", _NO_HINT),
    (b"GIF8", "is a GIF image", _NO_HINT),
    (b"%PDF", "is a PDF document", _NO_HINT),
    (b"\x7fELF", "is a program (ELF)", _NO_HINT),
    (b"MZ", "is a Windows program", _NO_HINT),
    (b"#!", "is a script", "record it with: trnscope run FILE"),
    (b"PK\x03\x04", "is a ZIP archive", "unpack it and give the trace inside"),
    (b"\x28\xb5\x2f\xfd", "is zstd-compressed", "decompress it first: zstd -d FILE"),
    (b"\xfd7zXZ", "is xz-compressed", "decompress it first: xz -d FILE"),
    (b"BZh", "is bzip2-compressed", "decompress it first: bzip2 -d FILE"),
    (b"PAR1", "is a Parquet table", _PARQUET_HINT),
    (b"ARROW1", "is an Arrow file", _NO_HINT),
    (b"\xff\xfe", "is UTF-16 text", "convert it to UTF-8"),
    (b"\xfe\xff", "is UTF-16 text", "convert it to UTF-8"),
)


class FileKind(Enum):
    """The containers that trnscope reads."""

    JSON = "json"
    GZIP_JSON = "gzip"
    SQLITE = "sqlite"
    NEURON = "neuron"
    """JSON of Neuron's tools, plain or compressed."""


def sniff(path: Path) -> FileKind:
    """Tell what ``path`` holds, or raise one clear error when it cannot be a trace."""
    head = _read_head(path)
    if head.startswith(_SQLITE):
        return FileKind.SQLITE
    if head.startswith(_GZIP):
        _require_json(path, _inflated_head(path, head), "holds compressed data that")
        return FileKind.GZIP_JSON if neuron_kind(path) is None else FileKind.NEURON
    _require_json(path, head, "")
    return FileKind.JSON if neuron_kind(path) is None else FileKind.NEURON


def neuron_kind(path: Path) -> NeuronJson | None:
    """Which document of Neuron's tools a JSON file is; null for any other JSON."""
    with path.open("rb") as file:
        head = file.read(_JSON_BYTES)
    if head.startswith(_GZIP):
        try:
            head = zlib.decompressobj(wbits=31).decompress(head, _JSON_BYTES)
        except zlib.error:
            return None
    return json_kind(head.decode("utf-8", "replace"))


def require_readable(path: Path) -> None:
    """Raise one clear error for a path that is no readable regular file."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such file", "check the path") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from error
    if stat.S_ISDIR(mode):
        raise UsageError(f"{path}: is a directory", "name the trace files inside it")
    if not stat.S_ISREG(mode):
        raise UsageError(f"{path}: is no regular file", "write the trace to a file first")


def _read_head(path: Path) -> bytes:
    require_readable(path)
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from error
    if not head:
        raise TraceFormatError(
            path, "is empty (0 bytes)", hint="the program that wrote it may have died; record again"
        )
    return head


def _inflated_head(path: Path, head: bytes) -> bytes:
    """The first inflated bytes; raises where not even these can be had."""
    try:
        text = zlib.decompressobj(wbits=31).decompress(head, _HEAD_BYTES)
    except zlib.error as error:
        raise TraceFormatError(
            path, f"is a damaged gzip file ({error})", offset=0, hint="copy or record it again"
        ) from error
    if not text:
        raise TraceFormatError(path, "is a gzip file that holds no data", hint="record it again")
    return text


def _require_json(path: Path, head: bytes, prefix: str) -> None:
    """Pass if the text starts like a JSON object or list, else say what it is."""
    text = head.removeprefix(_BOM).lstrip()
    if text[:1] in (b"{", b"["):
        return
    problem, hint = _describe(head)
    if path.suffix in _RAW_CAPTURES:
        problem, hint = _RAW_CAPTURES[path.suffix], _EXPORT_HINT
    elif path.name in _RAW_SYSTEM:
        problem, hint = "is a raw system capture of the Neuron runtime", _EXPORT_HINT
    raise TraceFormatError(path, f"{prefix} {problem}".strip(), hint=hint)


def _describe(head: bytes) -> tuple[str, str]:
    if head.startswith(_SQLITE):
        return "is an SQLite database", "decompress it first: gzip -d FILE"
    for magic, problem, hint in _MAGIC:
        if head.startswith(magic):
            return problem, hint
    if head[257:262] == b"ustar":
        return "is a tar archive", "unpack it and give the trace inside"
    if head[0] == 0x0A and not _is_text(head):
        return _describe_protobuf(head)
    if not head.strip():
        return "holds nothing but blanks", "the program that wrote it may have died; record again"
    return ("is text, but no JSON" if _is_text(head) else "is binary, but no known trace"), _NO_HINT


def _describe_protobuf(head: bytes) -> tuple[str, str]:
    """Field 1 with a length: how Perfetto traces and XPlane files begin."""
    if any(mark in head for mark in (b"/host:", b"/device:", b"Task Environment")):
        return "is an XPlane protobuf", "export the trace viewer's JSON (trace.json.gz) and open it"
    return "is a Perfetto protobuf", "convert it first: traceconv json FILE FILE.json"


def _is_text(head: bytes) -> bool:
    return not any(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in head)
