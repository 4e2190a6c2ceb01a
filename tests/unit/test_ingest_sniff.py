"""What a file is, is told by its content; what cannot be a trace is refused in one line."""

from __future__ import annotations

import gzip
import io
import os
import sqlite3
import tarfile
from pathlib import Path

import pytest

from trnscope.errors import TraceFormatError, UsageError
from trnscope.ingest.sniff import FileKind, sniff


def written(tmp_path: Path, data: bytes, name: str = "any.name") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def tar_of(data: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo("et.json")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b'{"traceEvents":[]}', FileKind.JSON),
        (b" \n\t[{}]", FileKind.JSON),
        (b"\xef\xbb\xbf{}", FileKind.JSON),
        (gzip.compress(b"[]", mtime=0), FileKind.GZIP_JSON),
        (gzip.compress(b"{}", mtime=0)[:-6], FileKind.GZIP_JSON),
    ],
)
def test_content_decides(tmp_path: Path, data: bytes, kind: FileKind) -> None:
    assert sniff(written(tmp_path, data, "picture.png")) is kind


def test_an_sqlite_database_goes_to_its_importer(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t (a)")
    assert sniff(path) is FileKind.SQLITE


PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
PERFETTO = b"\n\x8a\x01R\x87\x01\n\x83\x01\x0a\x10\x01\x02"
XPLANE = b"\n\xee\x03\x08\x01\x12\x0e/host:metadata\x00"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "is empty (0 bytes)"),
        (b"  \n\n", "holds nothing but blanks"),
        (b"hello world\n", "is text, but no JSON"),
        (PNG, "is a PNG image"),
        (b"\x7fELF\x02\x01", "is a program (ELF)"),
        (PERFETTO, "is a Perfetto protobuf"),
        (XPLANE, "is an XPlane protobuf"),
        (b"PK\x03\x04rest", "is a ZIP archive"),
        (b"\x28\xb5\x2f\xfdrest", "is zstd-compressed"),
        (b"\xff\xfe{\x00", "is UTF-16 text"),
        (bytes(range(1, 32)), "is binary, but no known trace"),
        (tar_of(b"{}"), "is a tar archive"),
        (gzip.compress(tar_of(b"{}"), mtime=0), "holds compressed data that is a tar archive"),
        (gzip.compress(b"plain words", mtime=0), "holds compressed data that is text, but no JSON"),
        (gzip.compress(b"", mtime=0), "is a gzip file that holds no data"),
        (b"\x1f\x8b\x08\x00rubbish-rubbish", "is a damaged gzip file"),
    ],
)
def test_what_is_no_trace_is_named_in_one_line_with_a_hint(
    tmp_path: Path, data: bytes, problem: str
) -> None:
    with pytest.raises(TraceFormatError) as caught:
        sniff(written(tmp_path, data))
    text = str(caught.value)
    assert problem in text
    assert "\n" not in text
    assert caught.value.hint
    assert caught.value.path == tmp_path / "any.name"


def test_paths_that_are_no_readable_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        sniff(tmp_path / "absent")
    with pytest.raises(UsageError, match="is a directory"):
        sniff(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="is no regular file"):
        sniff(tmp_path / "pipe")


def test_brackets_in_a_path_are_no_pattern(tmp_path: Path) -> None:
    assert sniff(written(tmp_path, b"[]", "fit-[Strategy]*?.json")) is FileKind.JSON
