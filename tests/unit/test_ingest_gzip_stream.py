"""Inflating whole, joined, cut and corrupt gzip files."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from trnscope.ingest.gzip_stream import GzipFeeder, GzipReader

TEXT = b"".join(b'{"ph":"X","ts":%d}\n' % random.Random(i).randrange(10**9) for i in range(40_000))


def read(path: Path) -> tuple[bytes, list[str]]:
    reader = GzipReader(path)
    data = b"".join(reader.chunks())
    assert reader.bytes_inflated == len(data)
    return data, [damage.code for damage in reader.damage]


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "t.gz"
    path.write_bytes(data)
    return path


def test_a_whole_file_is_read_without_remarks(tmp_path: Path) -> None:
    assert read(written(tmp_path, gzip.compress(TEXT))) == (TEXT, [])


def test_members_are_joined(tmp_path: Path) -> None:
    data = gzip.compress(b"first,") + gzip.compress(b"") + gzip.compress(b"second")
    assert read(written(tmp_path, data)) == (b"first,second", [])


def test_header_fields_are_skipped(tmp_path: Path) -> None:
    body = gzip.compress(b"payload", mtime=0)
    flags = 2 | 4 | 8 | 16
    extra = b"\x03\x00abc" + b"name\0" + b"comment\0" + b"\x12\x34"
    data = body[:3] + bytes([flags]) + body[4:10] + extra + body[10:]
    assert read(written(tmp_path, data)) == (b"payload", [])


@pytest.mark.parametrize("missing", [1, 8, 9, 20, 1000])
def test_a_cut_file_gives_all_that_a_streaming_reader_can_have(
    tmp_path: Path, missing: int
) -> None:
    whole = gzip.compress(TEXT)
    data, codes = read(written(tmp_path, whole[:-missing]))
    assert codes == ["gzip-truncated"]
    assert TEXT.startswith(data)
    # At most what the missing bytes can hold is lost: deflate needs 8 of them for the trailer.
    assert len(data) >= len(TEXT) - 8 * max(0, missing - 8) * 4
    if missing <= 8:
        assert data == TEXT


def test_a_file_that_ends_within_the_header_is_cut(tmp_path: Path) -> None:
    assert read(written(tmp_path, gzip.compress(b"x") + b"\x1f\x8b\x08")) == (
        b"x",
        ["gzip-truncated"],
    )


def test_damage_in_the_middle_keeps_what_came_before(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(TEXT))
    half = len(whole) // 2
    whole[half : half + 64] = b"\xff" * 64
    data, codes = read(written(tmp_path, bytes(whole)))
    assert codes in (["gzip-corrupt"], ["gzip-checksum"])
    common = next(
        (i for i, (a, b) in enumerate(zip(data, TEXT, strict=False)) if a != b), len(data)
    )
    assert common > len(TEXT) * 0.4


def test_a_wrong_checksum_keeps_all_data_and_is_named(tmp_path: Path) -> None:
    whole = bytearray(gzip.compress(TEXT))
    whole[-8] ^= 0xFF
    assert read(written(tmp_path, bytes(whole))) == (TEXT, ["gzip-checksum"])


def test_zero_padding_is_no_damage_and_other_trailing_data_is_named(tmp_path: Path) -> None:
    whole = gzip.compress(b"data")
    assert read(written(tmp_path, whole + b"\0" * 512)) == (b"data", [])
    assert read(written(tmp_path, whole + b"rubbish")) == (b"data", ["gzip-trailing-data"])


def test_the_feeder_hands_over_all_bytes_and_closes_the_sink(tmp_path: Path) -> None:
    class Sink:
        def __init__(self) -> None:
            self.pieces: list[bytes] = []
            self.closed = 0

        def feed(self, data: bytes) -> None:
            self.pieces.append(data)

        def close_input(self) -> None:
            self.closed += 1

    sink = Sink()
    feeder = GzipFeeder(written(tmp_path, gzip.compress(TEXT)), sink)
    feeder.start()
    feeder.join()
    assert b"".join(sink.pieces) == TEXT
    assert sink.closed == 1


def test_a_file_that_vanishes_raises_in_the_caller(tmp_path: Path) -> None:
    class Sink:
        def feed(self, data: bytes) -> None: ...

        def close_input(self) -> None: ...

    feeder = GzipFeeder(tmp_path / "absent.gz", Sink())
    feeder.start()
    with pytest.raises(FileNotFoundError):
        feeder.join()


def test_a_long_name_in_a_later_member_is_skipped_at_once(tmp_path: Path) -> None:
    body = gzip.compress(b"payload", mtime=0)
    name = b"n" * (1 << 20) + b"\0"
    named = body[:3] + b"\x08" + body[4:10] + name + body[10:]
    data = gzip.compress(b"first,") + named + gzip.compress(b"last")
    assert read(written(tmp_path, data)) == (b"first,payloadlast", [])


def test_any_exception_of_the_inflating_thread_reaches_the_caller(tmp_path: Path) -> None:
    class Failing:
        closed = False

        def feed(self, data: bytes, /) -> None:
            raise ValueError(f"{len(data)} bytes are refused")

        def close_input(self) -> None:
            self.closed = True

    sink = Failing()
    feeder = GzipFeeder(written(tmp_path, gzip.compress(b"payload")), sink)
    feeder.start()
    with pytest.raises(ValueError, match="7 bytes are refused"):
        feeder.join()
    assert sink.closed
