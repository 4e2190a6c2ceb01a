"""The command line as a user meets it: values, documents, refusals, pipes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.make_example_trace import small_trace
from trnscope.cli.app import app
from trnscope.cli.main import run
from trnscope.cli.plain import READING_COMMANDS, plain_command

US = 1_000
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))
PERFETTO = b"\x0a\x0f\x0a\x04\x08\x01\x12\x00\x12\x07\x73\x79\x73\x74\x65\x6d\x00" * 8
ANALYSES = [
    "summary",
    "breakdown",
    "steps",
    "ops",
    "kernels",
    "overlap",
    "launch",
    "memory",
    "roofline",
    "health",
]


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example of the documentation; its figures follow from tools/make_example_trace.py."""
    path = tmp_path_factory.mktemp("cli") / "small.json"
    path.write_text(small_trace(), encoding="utf-8")
    return path


def document(capsys: pytest.CaptureFixture[str], *args: str | Path) -> Any:
    """The JSON that a command prints; it must succeed."""
    code = run([*map(str, args), "--json"])
    out = capsys.readouterr()
    assert code == 0, out.err
    return json.loads(out.out)


def refusal(capsys: pytest.CaptureFixture[str], *args: str | Path) -> tuple[int, str]:
    """Exit code and the one line on stderr of a command that must fail."""
    code = run([*map(str, args)])
    out = capsys.readouterr()
    assert out.out == ""
    assert out.err.startswith("trnscope: error: ")
    assert out.err.count("\n") == 1
    assert out.err.endswith("\n")
    return code, out.err


def in_process_of_its_own(
    *args: str | Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """The command as the shell starts it."""
    return subprocess.run(
        [sys.executable, "-m", "trnscope.cli.main", *map(str, args)],
        capture_output=True,
        text=True,
        env=os.environ | (env or {}),
        check=False,
    )


def test_summary_of_the_example(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = document(capsys, "summary", small)
    assert [source["path"] for source in summary["sources"]] == [str(small)]
    assert summary["sources"][0]["format"] == "kineto"
    assert summary["sources"][0]["rank"] == 0
    assert summary["health"]["complete"] is True
    # From the first step's start to the end of the third one's.
    assert summary["span_ns"] == 30_000 * US
    (device,) = summary["devices"]
    expected = {
        "device": "cuda:0",
        "kind": "cuda",
        "simulated": False,
        "num_kernels": 15,
        "sum_ns": 13_500 * US,
        "busy_ns": 12_300 * US,
        "idle_ns": 12_000 * US,
        "compute_ns": 9_900 * US,
        "communication_ns": 2_400 * US,
        "exposed_communication_ns": 1_200 * US,
        "memcpy_ns": 1_200 * US,
        "exposed_memcpy_ns": 1_200 * US,
        "unlinked_ns": 0,
    }
    assert {key: device[key] for key in expected} == expected
    steps = [(s["name"], s["start_ns"], s["duration_ns"], s["device_ns"]) for s in summary["steps"]]
    assert steps == [
        (f"ProfilerStep#{n}", n * 10_000 * US, 10_000 * US, 4_100 * US) for n in range(3)
    ]


def test_documents_have_the_members_of_the_contract(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = document(capsys, "summary", small)
    assert {"schema", "sources", "health", "span_ns", "devices", "steps"} <= set(summary)
    assert summary["schema"] == 1
    typed = {
        "sources": {"path": str, "format": str, "rank": int, "num_events": int},
        "devices": {"device": str, "kind": str, "simulated": bool, "num_kernels": int},
        "steps": {"name": str, "start_ns": int, "duration_ns": int, "device_ns": int},
    }
    for member, types in typed.items():
        for row in summary[member]:
            assert {key: type(row[key]) for key in types} == types
    health = summary["health"]
    assert {key: type(health[key]) for key in health} == {
        "complete": bool,
        "num_events_read": int,
        "num_events_repaired": int,
        "num_events_unreadable": int,
        "warnings": list,
    }
    ops = document(capsys, "ops", small)
    assert set(ops) == {"schema", "ops", "unattributed_device_ns"}
    assert set(ops["ops"][0]) == {
        "name",
        "calls",
        "self_cpu_ns",
        "cpu_total_ns",
        "self_device_ns",
        "device_total_ns",
    }
    assert "input_shapes" in document(capsys, "ops", small, "--by", "shape")["ops"][0]


def test_ops_of_the_example(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["name"]: row for row in document(capsys, "ops", small)["ops"]}
    assert rows["aten::linear"] == {
        "name": "aten::linear",
        "calls": 3,
        "self_cpu_ns": 150 * US,
        "cpu_total_ns": 600 * US,
        "self_device_ns": 0,
        "device_total_ns": 3_600 * US,
    }
    assert rows["aten::addmm"]["self_cpu_ns"] == 3 * (150 - 10) * US
    assert rows["aten::addmm"]["self_device_ns"] == 3_600 * US
    backward = rows["autograd::engine::evaluate_function: AddmmBackward0"]
    assert (backward["self_device_ns"], backward["device_total_ns"]) == (0, 4_800 * US)


@pytest.mark.parametrize("command", ANALYSES)
def test_every_analysis_prints_text_and_a_document(
    small: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert document(capsys, command, small)["schema"] == 1
    assert run([command, str(small)]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert len(shown.splitlines()) >= 3


GARBAGE = {
    "garbage": b"\x01\x02garbage, no trace\xff",
    "words": b"this is a text\n",
    "empty": b"",
    "png": PNG,
    "perfetto": PERFETTO,
    "blanks": b"   \n\n",
    "gzip": b"\x1f\x8b\x08\x00",
    "number": b"17",
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_what_is_no_trace_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    path = tmp_path / f"{kind}.json"
    path.write_bytes(GARBAGE[kind])
    code, line = refusal(capsys, "summary", path)
    assert code == 1
    assert str(path) in line


@pytest.mark.parametrize("text", ['{"traceEvents": []}', "[]", '{"schemaVersion": 1}'])
def test_a_file_without_events_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    path = tmp_path / "none.json"
    path.write_text(text)
    code, line = refusal(capsys, "summary", path)
    assert code == 1
    assert str(path) in line


def test_a_directory_and_a_missing_file_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(capsys, "ops", tmp_path)[0] == 1
    assert "directory" in refusal(capsys, "ops", tmp_path)[1]
    code, line = refusal(capsys, "ops", tmp_path / "absent.json")
    assert code == 1
    assert "no such file" in line
    code, line = refusal(capsys, "ops", tmp_path / "*.json")
    assert code == 1
    assert "no file matches" in line


def test_an_unreadable_file_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "loop.json"
    path.symlink_to(path)
    assert refusal(capsys, "summary", path)[0] == 1


@pytest.mark.parametrize(
    "args",
    [["summry"], ["summary"], ["ops", "x.json", "--by", "color"], ["summary", "--nope", "x.json"],
     ["ops", "x.json", "--limit", "-1"]],
)  # fmt: skip
def test_wrong_usage_ends_with_2_and_points_to_help(
    capsys: pytest.CaptureFixture[str], args: list[str]
) -> None:
    code, line = refusal(capsys, *args)
    assert code == 2
    assert "--help" in line


def test_brackets_in_a_name_are_no_pattern(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fit-[Strategy]One*.json"
    path.write_bytes(small.read_bytes())
    (source,) = document(capsys, "summary", path)["sources"]
    assert source["path"] == str(path)


def test_patterns_are_expanded_in_order(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rank in (1, 0):
        text = small.read_text().replace('"rank": 0', f'"rank": {rank}')
        (tmp_path / f"rank{rank}.json").write_text(text)
    summary = document(capsys, "summary", tmp_path / "rank*.json")
    assert [(Path(s["path"]).name, s["rank"]) for s in summary["sources"]] == [
        ("rank0.json", 0),
        ("rank1.json", 1),
    ]
    assert [device["busy_ns"] for device in summary["devices"]] == [12_300 * US] * 2


def test_a_copy_of_a_trace_is_shown_under_its_own_name(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document(capsys, "summary", small)
    copy = tmp_path / "copy.json"
    copy.write_bytes(small.read_bytes())
    assert document(capsys, "summary", copy)["sources"][0]["path"] == str(copy)


def test_a_cut_file_is_marked_in_text_and_told_on_stderr(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "cut.json"
    text = small.read_text()
    path.write_text(text[: len(text) // 2])
    for command in ANALYSES:
        assert run([command, str(path)]) == 0
        assert "INCOMPLETE" in capsys.readouterr().out
        assert run([command, str(path), "--json"]) == 0
        out = capsys.readouterr()
        assert out.err.startswith("trnscope: warning: incomplete: ")
        assert out.err.count("\n") == 1
        json.loads(out.out)


def test_hostile_names_do_not_reach_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "\x1b]0;owned\x07\u202e\u2066\r\n\x9b31m\ud800"
    event = {"ph": "X", "cat": "cpu_op", "name": name, "pid": name, "tid": 1, "ts": 1, "dur": 5}
    path = tmp_path / "hostile\x1b[2J.json"
    path.write_text(json.dumps({"traceEvents": [event]}))
    for command in ANALYSES:
        for options in ([], ["--json"]):
            assert run([command, str(path), *options]) == 0
            out = capsys.readouterr()
            assert all(c.isprintable() or c == "\n" for c in out.out + out.err)
    # Names become columns' names here, and the second is the head of the first column.
    for query in (
        "PIVOT (SELECT name, dur_ns FROM slices) ON name USING sum(dur_ns)",
        "PIVOT (SELECT 1 AS one, name, dur_ns FROM slices) ON name USING sum(dur_ns)",
        "SELECT name, map([name], [name]), {'a': name}, [name] FROM slices",
        'SELECT 1 AS "\x1b]0;owned\x07", 2 AS "\x1b[2J"',
    ):
        assert run(["sql", str(path), query]) == 0
        out = capsys.readouterr()
        assert all(c.isprintable() or c == "\n" for c in out.out + out.err)
    path.write_text("{")
    assert "\x1b" not in refusal(capsys, "summary", path)[1]


def test_colours_only_on_a_terminal(small: Path) -> None:
    plain = in_process_of_its_own("summary", small)
    assert "\x1b" not in plain.stdout
    forced = in_process_of_its_own("summary", small, env={"FORCE_COLOR": "1"})
    assert "\x1b[" in forced.stdout
    silenced = in_process_of_its_own("summary", small, env={"NO_COLOR": "1"})
    assert silenced.stdout == plain.stdout


def test_a_reader_that_stops_early_is_no_error(small: Path) -> None:
    command = f'"{sys.executable}" -m trnscope.cli.main ops "{small}" --limit 0'
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command} | head -1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout == "Ops by name\n"


def test_output_in_another_encoding_is_no_error(small: Path) -> None:
    done = in_process_of_its_own("summary", small, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert done.stdout.isascii()


def test_ctrl_c_ends_quietly(small: Path) -> None:
    command = [sys.executable, "-m", "trnscope", "sql", str(small), "-"]
    child = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdin is not None
    # More than a pipe holds: returns once the command has begun to read its query.
    child.stdin.write("-" * 100_000)
    child.stdin.flush()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (130, "", "trnscope: error: interrupted\n")


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    missing = tmp_path / "absent.json"
    assert "Traceback" not in in_process_of_its_own("summary", missing).stderr
    done = in_process_of_its_own("summary", missing, "--debug")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "UsageError" in done.stderr


def test_version_loads_no_heavy_package() -> None:
    code = (
        "import sys; from trnscope.cli.main import run; run(['--version']);"
        "heavy = ('numpy', 'pyarrow', 'duckdb', 'torch', 'rich.text');"
        "print([name for name in heavy if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["trnscope 0.1.0", "[]"]


def test_every_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.callback.__name__
        assert run([name, "--help"]) == 0
        shown = capsys.readouterr().out
        assert f"Example:\n    trnscope {name}" in shown
        # A server has no document: one prints its address alone, one speaks a protocol.
        has_json = re.search(r"^  --json  ", shown, re.MULTILINE) is not None
        assert has_json == (name not in ("open", "mcp"))


def test_choices_are_those_of_the_analyses() -> None:
    from trnscope.analysis.kernels import KernelsBy
    from trnscope.analysis.ops import GroupBy
    from trnscope.capture.options import StepsBy
    from trnscope.cli.commands.kernels import KernelsGroup
    from trnscope.cli.commands.ops import OpsBy
    from trnscope.cli.commands.run import StepsFrom

    assert [choice.value for choice in KernelsGroup] == [choice.value for choice in KernelsBy]
    assert [choice.value for choice in OpsBy] == [choice.value for choice in GroupBy]
    assert [choice.value for choice in StepsFrom] == [choice.value for choice in StepsBy]


@pytest.mark.parametrize("command", READING_COMMANDS)
def test_a_plain_command_line_does_what_the_parser_makes_of_it(
    small: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    assert run([command, str(small)]) == 0
    text = capsys.readouterr().out
    assert run([command, "--", str(small)]) == 0
    assert capsys.readouterr().out == text
    assert run([command, str(small), "--json"]) == 0
    printed = capsys.readouterr().out
    assert run([command, "--json", "--", str(small)]) == 0
    assert capsys.readouterr().out == printed


def test_only_plain_command_lines_need_no_parser() -> None:
    assert plain_command(["ops", "a.json", "b.json", "--json"]) is not None
    for args in ([], ["ops"], ["ops", "--json"], ["ops", "a", "-n", "3"], ["run", "a"], ["--help"]):
        assert plain_command(args) is None


def test_an_answer_as_json_loads_no_heavy_package(small: Path) -> None:
    code = (
        "import os, sys; from trnscope.cli.main import run; run(['ops', sys.argv[1], '--json']);"
        "heavy = ('pyarrow', 'duckdb', 'torch', 'pydantic', 'rich.text', 'numpy.ma');"
        "print([name for name in heavy if name in sys.modules], os.environ.get(sys.argv[2]))"
    )
    in_process_of_its_own("ops", small)  # indexes it
    variable = "OPENBLAS_NUM_THREADS"
    env = {key: value for key, value in os.environ.items() if key != variable}
    done = subprocess.run(
        [sys.executable, "-c", code, str(small), variable],
        capture_output=True,
        text=True,
        check=True,
        env=env,
    )
    assert done.stdout.splitlines()[-1] == "[] None"


LONG = "void at::native::vectorized_elementwise_kernel<4, at::native::F{}, {}>(int, float*)"


@pytest.mark.parametrize(("columns", "widest"), [("60", 60), ("80", 80), (None, 120)])
@pytest.mark.parametrize("command", ["kernels", "ops"])
def test_long_names_leave_tables_readable(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    columns: str | None,
    widest: int,
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    names = [LONG.format(number, "x" * 100) for number in range(3)]
    events = [
        {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 7, "ts": 10.0 * at, "dur": 1.125,
         "args": {"device": 0, "stream": 7}}
        for at, name in enumerate(names)
        for cat in (["kernel"] if command == "kernels" else ["cpu_op"])
    ]  # fmt: skip
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    assert run([command, str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= widest
    assert sum("1.125 µs" in line for line in lines) == 3
    assert sum(line.rstrip().endswith("(…)") or ">(…) " in line for line in lines) == 3
    # Rows of a query are data, and stay whole where no terminal bounds them.
    run(["sql", str(path), "SELECT name FROM slices"])
    assert (names[0] in capsys.readouterr().out) == (columns is None)


def test_only_arguments_that_are_needed_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert refusal(capsys, "run") == (
        2,
        "trnscope: error: Missing argument 'SCRIPT'; see trnscope run --help\n",
    )


@pytest.mark.parametrize("given", [[], ["trace.json"], ["one.json", "--limit", "3"]])
def test_sql_without_a_query_says_what_it_needs(
    capsys: pytest.CaptureFixture[str], given: list[str]
) -> None:
    assert refusal(capsys, "sql", *given) == (
        2,
        "trnscope: error: sql needs PATH... and then QUERY; see trnscope sql --help\n",
    )
