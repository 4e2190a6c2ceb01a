"""The cache of indices: what it keeps, drops, builds again, and shares between processes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from trnscope.errors import TraceFormatError, UsageError
from trnscope.store.args import ArgsReader
from trnscope.store.builder import TraceBuilder
from trnscope.store.cache import content_key, open_cached
from trnscope.store.lock import FileIdentity
from trnscope.store.schema import META_FILE


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TRNSCOPE_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def one_slice(path, directory):
    """An importer: the file's text as the name of one slice."""
    builder = TraceBuilder(directory)
    builder.slice(builder.thread(), path.read_text(), 0, 5)
    builder.build()


def test_a_file_is_read_once_and_again_when_its_content_changes(tmp_path):
    source, copy = tmp_path / "trace.json", tmp_path / "copy.json"
    reads = []

    def importer(path, directory):
        reads.append(path)
        one_slice(path, directory)

    source.write_text("one")
    copy.write_text("one")
    first = open_cached(source, importer)
    again = open_cached(source, importer)
    open_cached(copy, importer)
    assert reads == [source]
    assert first.strings[0] == again.strings[0] == "one"
    source.write_text("two")
    assert open_cached(source, importer).strings[0] == "two"
    assert reads == [source, source]


def test_a_failed_read_leaves_nothing(tmp_path, home):
    source = tmp_path / "trace.json"
    source.write_text("x")

    def importer(path, directory):
        (directory / "half").write_text("half")
        raise TraceFormatError(path, "is broken")

    with pytest.raises(TraceFormatError):
        open_cached(source, importer)
    assert list(home.iterdir()) == []


def test_the_key_of_a_large_file_sees_its_times(tmp_path):
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(40 << 20)
    status = big.stat()
    key = content_key(big)
    assert content_key(big) == key
    os.utime(big, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    later = content_key(big)
    assert later != key
    # Written between two samples, and the time of change set back: the status change tells.
    with big.open("r+b") as file:
        file.seek(100_000)
        file.write(b"x")
    os.utime(big, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert content_key(big) not in (key, later)


def test_the_key_of_a_small_file_is_its_bytes(tmp_path):
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"same")
    two.write_bytes(b"same")
    os.utime(two, ns=(1, 1))
    assert content_key(one) == content_key(two)
    two.write_bytes(b"Same")
    assert content_key(one) != content_key(two)


def test_what_was_not_used_for_longest_goes_but_nothing_that_is_open(tmp_path, home, monkeypatch):
    sources = [tmp_path / f"{i}.json" for i in range(4)]
    for i, source in enumerate(sources):
        source.write_text(str(i))
    stores = [open_cached(source, one_slice).directory for source in sources[:2]]
    size = sum(file.stat().st_size for file in stores[0].iterdir())
    os.utime(stores[0] / META_FILE, (2000, 2000))
    os.utime(stores[1] / META_FILE, (1000, 1000))
    monkeypatch.setenv("TRNSCOPE_CACHE_LIMIT_GB", str(2.5 * size / 1e9))
    third = open_cached(sources[2], one_slice)
    assert {p.name for p in home.iterdir()} == {stores[0].name, third.directory.name}
    monkeypatch.setenv("TRNSCOPE_CACHE_LIMIT_GB", "0")
    fourth = open_cached(sources[3], one_slice)
    assert {p.name for p in home.iterdir()} == {third.directory.name, fourth.directory.name}
    assert [trace.slices.dur_ns.tolist() for trace in (third, fourth)] == [[5], [5]]


def test_a_limit_that_is_no_number_is_named(tmp_path, monkeypatch):
    source = tmp_path / "trace.json"
    source.write_text("x")
    monkeypatch.setenv("TRNSCOPE_CACHE_LIMIT_GB", "plenty")
    with pytest.raises(UsageError, match=r"TRNSCOPE_CACHE_LIMIT_GB is no number: 'plenty'"):
        open_cached(source, one_slice)


_OPEN_MANY = """
import sys
from pathlib import Path
from trnscope.store.builder import TraceBuilder
from trnscope.store.cache import open_cached

def importer(path, directory):
    builder = TraceBuilder(directory)
    builder.slice(builder.thread(), path.read_text(), 0, 5)
    builder.build()

for source in sys.argv[1:]:
    trace = open_cached(Path(source), importer)
    assert trace.strings[0] == Path(source).read_text()
    assert trace.slices.dur_ns.tolist() == [5]
"""


def test_processes_share_a_cache_that_is_always_full(tmp_path, home):
    sources = [tmp_path / f"{i}.json" for i in range(6)]
    for i, source in enumerate(sources):
        source.write_text(f"content {i}")
    environment = {**os.environ, "TRNSCOPE_CACHE_LIMIT_GB": "0"}
    command = [sys.executable, "-c", _OPEN_MANY, *map(str, sources * 5)]
    openers = [
        subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        for _ in range(6)
    ]
    errors = [opener.communicate()[1] for opener in openers]
    assert errors == [""] * 6
    assert [opener.returncode for opener in openers] == [0] * 6


@pytest.mark.parametrize("damage", ["no meta", "half meta", "half table", "no table"])
def test_a_damaged_store_is_built_again(tmp_path, damage):
    source = tmp_path / "trace.json"
    source.write_text("x")
    store = open_cached(source, one_slice).directory
    broken = store / ("slices.arrow" if "table" in damage else META_FILE)
    if damage.startswith("no "):
        broken.unlink()
    else:
        broken.write_bytes(broken.read_bytes()[: broken.stat().st_size // 2])
    assert open_cached(source, one_slice).slices.dur_ns.tolist() == [5]


def test_a_file_that_changes_while_it_is_read_leaves_no_wrong_store(tmp_path):
    source = tmp_path / "trace.json"
    source.write_text("first")
    changes = ["second"]

    def importer(path, directory):
        if changes:
            path.write_text(changes.pop())
        one_slice(path, directory)

    assert open_cached(source, importer).strings[0] == "second"
    source.write_text("first")
    assert open_cached(source, importer).strings[0] == "first"


def test_a_file_that_never_stops_changing_is_named(tmp_path):
    source = tmp_path / "trace.json"
    source.write_text("0")

    def importer(path, directory):
        path.write_text(path.read_text() + "0")
        one_slice(path, directory)

    with pytest.raises(TraceFormatError, match="changes while it is read"):
        open_cached(source, importer)


def test_a_full_disk_is_one_clear_line(tmp_path):
    source = tmp_path / "trace.json"
    source.write_text("x")

    def importer(path, directory):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(UsageError, match=r"cannot be written.*TRNSCOPE_CACHE_DIR"):
        open_cached(source, importer)


def args_of(tmp_path, text):
    source = tmp_path / "source.json"
    source.write_text(text)
    return ArgsReader(source).value(0, len(text.encode()))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"n": 01, "m": -007, "k": 100}', {"n": 1, "m": -7, "k": 100}),
        ('{"n": +1, "m": .5, "k": -.25}', {"n": 1, "m": 0.5, "k": -0.25}),
        ('{"n": -Infinity, "m": INF}', {"n": float("-inf"), "m": float("inf")}),
        (r'{"p": "C:\\Users", "v": "01 +1 .5 inf"}', {"p": "C:\\Users", "v": "01 +1 .5 inf"}),
        (
            r'{"p": "C:\Users", "v": "01 inf", "n": 0.01}',
            {"p": "C:\\Users", "v": "01 inf", "n": 0.01},
        ),
    ],
)
def test_args_that_are_nearly_json_are_read(tmp_path, text, value):
    assert args_of(tmp_path, text) == value


def test_args_nested_too_deep_are_one_clear_line(tmp_path):
    with pytest.raises(TraceFormatError, match="nested too deep"):
        args_of(tmp_path, '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}")


def test_args_of_a_source_that_was_replaced_are_refused(tmp_path):
    source = tmp_path / "source.json"
    source.write_text('{"x": 1}')
    reader = ArgsReader(source, FileIdentity.of(source))
    source.write_text('{"x": 22}')
    with pytest.raises(TraceFormatError, match="was changed since"):
        reader.value(0, 8)
