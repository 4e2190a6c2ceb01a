"""What a folder of Neuron profiles holds is found; raw captures are named with their export."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

import trnscope
from tests.unit.neuron_profiles import SEQUENCE, chain, write_tables
from tests.unit.test_neuron_device import INSTRUCTIONS, instruction
from trnscope.cli.main import run
from trnscope.errors import UsageError
from trnscope.ingest.neuron_folder import find_sources
from trnscope.ingest.sniff import FileKind, sniff

TRACE = {"traceEvents": [{"ph": "X", "name": "aten::mm", "cat": "cpu_op", "pid": 1, "tid": 1,
         "ts": 1, "dur": 2}]}  # fmt: skip


def capture(root: Path, name: str, *files: str, time: str = "20260101_000000_000") -> Path:
    folder = root / name / time
    folder.mkdir(parents=True)
    for file in files:
        text = json.dumps(TRACE) if file.endswith(".json") else "raw"
        (folder / file).write_text("" if file.startswith("empty") else text)
    return folder


def test_every_level_above_the_tables_leads_to_them(tmp_path: Path) -> None:
    home = tmp_path / "explorer"
    folder = write_tables(home / "profiles/global/run1@latest", {"Instruction": INSTRUCTIONS})
    for path in (home, home / "profiles", home / "profiles/global", folder):
        (source,) = find_sources(path)
        assert source.path == folder
        assert source.place.members == (folder / "Instruction.parquet",)


def test_a_listed_device_profile_is_no_source_of_its_own(tmp_path: Path) -> None:
    listed = [{"device_profile_name": "i_pid_1_nc_0", "process_id": 42, "nc_id": 0}]
    system = {"SystemProfileEvents": chain(1, SEQUENCE, 1, 1), "DeviceProfileList": listed}
    folder = write_tables(tmp_path / "r@latest", system)
    device = write_tables(tmp_path / "r_i_pid_1_nc_0@latest", {"Instruction": INSTRUCTIONS})
    (source,) = find_sources(tmp_path)
    assert source.path == folder
    assert {path.parent for path in source.place.members} == {folder, device}


def test_a_changed_table_is_read_again_also_beside(tmp_path: Path) -> None:
    listed = [{"device_profile_name": "i_pid_1_nc_0", "process_id": 42, "nc_id": 0}]
    system = {"SystemProfileEvents": chain(1000, SEQUENCE, 1, 1), "DeviceProfileList": listed}
    write_tables(tmp_path / "r@latest", system)
    busy = []
    for end in (1055, 1059):
        rows = [instruction(1050, end, "vector", "ADD", id=1)]
        write_tables(tmp_path / "r_i_pid_1_nc_0@latest", {"Instruction": rows})
        busy.append(trnscope.open(tmp_path / "r@latest").summary().engines[0].busy_ns)
    assert busy == [5, 9]


def test_capture_folders_are_ranks(tmp_path: Path) -> None:
    for pid in (9, 10, 8):
        capture(tmp_path, f"i-0_pid_{pid}", "trace.json", "ntrace.pb", "trace_info.pb")
    profile = trnscope.open(tmp_path)
    assert [trace.source.rank for trace in profile.traces] == [0, 1, 2]
    assert [Path(t.source.path).parent.parent.name for t in profile.traces] == [
        "i-0_pid_8",
        "i-0_pid_9",
        "i-0_pid_10",
    ]
    assert profile.is_multi_rank
    codes = {finding.code for finding in profile.health().warnings}
    assert "raw-capture-not-read" in codes
    assert "ranks-unknown" not in codes


def test_the_rank_that_a_trace_names_counts(tmp_path: Path) -> None:
    for pid, rank in ((1, 3), (2, 1)):
        folder = capture(tmp_path, f"i-0_pid_{pid}")
        document = TRACE | {"distributedInfo": {"rank": rank, "world_size": 4}}
        (folder / "trace.json").write_text(json.dumps(document))
    assert [trace.source.rank for trace in trnscope.open(tmp_path).traces] == [3, 1]


def test_the_newest_recording_of_a_process_counts(tmp_path: Path) -> None:
    capture(tmp_path, "i-0_pid_1", "trace.json", time="20260101_000000_000")
    newest = capture(tmp_path, "i-0_pid_1", "trace.json", time="20260102_000000_000")
    (source,) = find_sources(tmp_path)
    assert source.path == newest / "trace.json"
    assert [(w.code, w.count) for w in source.place.warnings] == [("older-recordings", 1)]
    assert source.place.rank is None


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (
            ("ntrace.pb", "trace_info.pb", "a.neff", "a.ntff"),
            "neuron-explorer view -d {} --ingest-only --display-name profile --data-path explorer",
        ),
        (
            ("neff_1_vnc_0.neff", "profile_nc_0_session_0.ntff"),
            "neuron-explorer view -n {}/neff_1_vnc_0.neff -s {}/profile_nc_0_session_0.ntff",
        ),
        (("a.ntff",), "an .ntff needs the .neff that it was captured from"),
        (("a.neff", "empty.ntff"), "every .ntff is empty (0 bytes)"),
        (("a.neff",), "without an .ntff nothing of its runs was captured"),
        (("cpu_util.pb", "ntrace.pb"), "needs both ntrace.pb and trace_info.pb"),
    ],
)
def test_raw_captures_are_named_with_their_export(
    tmp_path: Path, files: tuple[str, ...], expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "session"
    folder.mkdir()
    for name in files:
        (folder / name).write_text("" if name.startswith("empty") else "raw")
    assert run(["summary", str(folder)]) == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "holds raw captures of the Neuron runtime" in err
    assert expected.replace("{}", str(folder)) in err


def test_a_folder_without_profiles_is_no_trace(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(UsageError, match="is a directory; name the trace files inside it"):
        find_sources(tmp_path)


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("a.ntff", b"\x01\x02\x03", "is a raw device capture of the Neuron runtime"),
        ("a.neff", b"\x00\x02\x03", "is a compiled Neuron program"),
        ("ntrace.pb", b"\n\x05hello\x01\x02", "is a raw system capture of the Neuron runtime"),
        ("Instruction.parquet", b"PAR1\x15", "is a Parquet table; give the folder"),
    ],
)
def test_raw_files_are_refused_in_one_line(
    tmp_path: Path, name: str, data: bytes, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_bytes(data)
    assert run(["summary", str(tmp_path / name)]) == 1
    err = capsys.readouterr().err
    assert re.fullmatch(rf"trnscope: error: .*{re.escape(problem)}.*\n", err)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"mem_usage": [{"a": "]"}], "trace_event": [', FileKind.NEURON),
        ('[{"name": "nrt_execute", "timestamp": 5, "args": {"ph": 1}}', FileKind.JSON),
        ('[{"name": "nrt_execute", "timestamp": 5}', FileKind.NEURON),
        ('[{"name": "x", "ph": "X", "timestamp": 5}', FileKind.JSON),
        ('{"traceEvents": [{"name": "x", "args": {"trace_event": 1}}', FileKind.JSON),
        ('{"events": [{"event_type": "a", "phase": "start"', FileKind.NEURON),
        ('{"events": [{"event_type": "a"', FileKind.JSON),
        ('{"instruction": []', FileKind.NEURON),
        ('{"n_00ff11": {', FileKind.NEURON),
        ('{"n_1": {}}', FileKind.JSON),
        ("{}", FileKind.JSON),
    ],
)
def test_content_tells_neuron_s_documents(tmp_path: Path, text: str, kind: FileKind) -> None:
    path = tmp_path / "any.name"
    path.write_text(text)
    assert sniff(path) is kind


def test_a_copied_folder_finds_its_index(tmp_path: Path) -> None:
    write_tables(tmp_path / "a@latest", {"Instruction": INSTRUCTIONS})
    shutil.copytree(tmp_path / "a@latest", tmp_path / "b@latest")
    stores = {
        trnscope.open(tmp_path / name).traces[0].directory for name in ("a@latest", "b@latest")
    }
    assert len(stores) == 1
