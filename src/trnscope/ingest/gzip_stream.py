"""Inflates a gzip file beside the scanner and keeps all that can be had of a damaged one."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, cast

from isal import isal_zlib

_CHUNK_BYTES = 1 << 18
_PIECE_BYTES = 4 << 20
_FINE_BYTES = 512
_RAW = -15
_FHCRC, _FEXTRA, _FNAME, _FCOMMENT = 2, 4, 8, 16
_TRAILER_BYTES = 8
_InflateError = cast("type[Exception]", isal_zlib.error)  # its stub says it is an instance


class Sink(Protocol):
    """What takes the inflated bytes (the scanner)."""

    def feed(self, data: bytes, /) -> object:
        """Take the next bytes; may wait until there is room."""

    def close_input(self) -> object:
        """No more bytes will come."""


@dataclass(frozen=True)
class GzipDamage:
    """Why inflating ended early, or what does not add up."""

    code: str
    """``gzip-truncated``, ``gzip-corrupt``, ``gzip-checksum`` or ``gzip-trailing-data``."""
    message: str
    data_lost: bool


class _Truncated(Exception):
    """The file ends inside a member."""


class _Corrupt(Exception):
    """The compressed data contradict themselves."""


class GzipReader:
    """Inflates the members of one gzip file in order.

    ``damage`` is complete once :meth:`chunks` is exhausted. ``bytes_read`` counts compressed
    bytes and may be read from another thread.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.bytes_read = 0
        self.bytes_inflated = 0
        self.damage: list[GzipDamage] = []

    def chunks(self) -> Iterator[bytes]:
        """Inflated bytes in pieces of any size."""
        with self._path.open("rb") as file:
            source = _Source(file, self)
            try:
                while source.has_more():
                    if not source.at_member():
                        self._note(
                            "gzip-trailing-data", "data after the end that is no gzip", False
                        )
                        return
                    yield from self._member(source)
            except _Truncated:
                self._note("gzip-truncated", "the compressed file is cut off", True)
            except _Corrupt as error:
                yield from self._salvage()
                self._note("gzip-corrupt", f"the compressed data are damaged ({error})", True)

    def _member(self, source: _Source) -> Iterator[bytes]:
        _skip_header(source)
        inflater = isal_zlib.decompressobj(wbits=_RAW)
        checksum, size, data = 0, 0, b""
        while not inflater.eof:
            try:
                piece = inflater.decompress(data or source.take_all(), _PIECE_BYTES)
            except _InflateError as error:
                raise _Corrupt(str(error)) from error
            data = inflater.unconsumed_tail
            checksum = isal_zlib.crc32(piece, checksum)
            size += len(piece)
            self.bytes_inflated += len(piece)
            if piece:
                yield piece
        source.give_back(inflater.unused_data)
        trailer = source.take(_TRAILER_BYTES)
        expected = checksum.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little")
        if trailer != expected:
            self._note("gzip-checksum", "the checksum does not match the data", True)

    def _salvage(self) -> Iterator[bytes]:
        """Inflate again in small steps, for the bytes between the last chunk and the damage."""
        skip = self.bytes_inflated
        with self._path.open("rb") as file:
            for piece in _fine_pieces(file):
                keep = piece[max(skip, 0) :]
                skip -= len(piece)
                if keep:
                    self.bytes_inflated += len(keep)
                    yield keep

    def _note(self, code: str, problem: str, data_lost: bool) -> None:
        message = (
            f"{problem}: byte {self.bytes_read} of the file, after "
            f"{self.bytes_inflated} bytes of JSON"
        )
        self.damage.append(GzipDamage(code, message, data_lost))


class _Source:
    """Compressed input with push-back; tells the reader how far it is."""

    def __init__(self, file: BinaryIO, reader: GzipReader) -> None:
        self._file = file
        self._reader = reader
        self._buffer = b""

    def peek(self) -> bytes:
        """What is buffered, at least one byte unless the file has ended."""
        if not self._buffer:
            self._buffer = self._read()
        return self._buffer

    def _read(self) -> bytes:
        data = self._file.read(_CHUNK_BYTES)
        self._reader.bytes_read += len(data)
        return data

    def has_more(self) -> bool:
        """Whether anything but zero padding follows; the padding is skipped."""
        while self.peek() and self._buffer[0] == 0:
            self._buffer = self._buffer.lstrip(b"\0")
        return bool(self._buffer)

    def at_member(self) -> bool:
        """Whether a gzip member starts here."""
        while len(self._buffer) < 2:
            more = self._read()
            if not more:
                return False
            self._buffer += more
        return self._buffer.startswith(b"\x1f\x8b")

    def take_all(self) -> bytes:
        data = self.peek()
        if not data:
            raise _Truncated
        self._buffer = b""
        return data

    def take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            more = self._read()
            if not more:
                raise _Truncated
            self._buffer += more
        data, self._buffer = self._buffer[:size], self._buffer[size:]
        return data

    def take_text(self) -> None:
        """Skip a zero-terminated text."""
        data = self.take_all()
        while (end := data.find(b"\0")) < 0:
            data = self.take_all()
        self._buffer = data[end + 1 :]

    def give_back(self, data: bytes) -> None:
        self._buffer = data + self._buffer


def _skip_header(source: _Source) -> None:
    """Read past a member's header (RFC 1952)."""
    head = source.take(10)
    if head[2] != 8:
        raise _Corrupt("unknown compression method")
    flags = head[3]
    if flags & _FEXTRA:
        source.take(int.from_bytes(source.take(2), "little"))
    for flag in (_FNAME, _FCOMMENT):
        if flags & flag:
            source.take_text()
    if flags & _FHCRC:
        source.take(2)


def _fine_pieces(file: BinaryIO) -> Iterator[bytes]:
    """Inflate with zlib in small steps until the end or the damage, whichever comes first."""
    inflater = zlib.decompressobj(wbits=31)
    while data := file.read(_CHUNK_BYTES):
        while data:
            try:
                piece = inflater.decompress(data, _FINE_BYTES)
            except zlib.error:
                return
            yield piece
            data = inflater.unconsumed_tail
            if inflater.eof:
                data, inflater = inflater.unused_data.lstrip(b"\0"), zlib.decompressobj(wbits=31)


class GzipFeeder:
    """A thread that inflates a file into a sink, so that inflating and scanning overlap."""

    def __init__(self, path: Path, sink: Sink) -> None:
        self.reader = GzipReader(path)
        self._sink = sink
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="trnscope-inflate", daemon=True)

    def start(self) -> None:
        """Begin to inflate."""
        self._thread.start()

    def join(self) -> None:
        """Wait for the end; raises what inflating raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            for piece in self.reader.chunks():
                self._sink.feed(piece)
        except Exception as error:  # of any kind: join raises it in the caller's thread
            self._error = error
        finally:
            self._sink.close_input()
