"""``trnscope run``: runs a script as it is, in its own process, and collects what it recorded."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from trnscope.capture.options import ProcessSettings, RunOptions
from trnscope.capture.record import SUFFIX, CaptureRecord
from trnscope.errors import CaptureError, TraceFormatError, UsageError

BOOTSTRAP = Path(__file__).with_name("bootstrap")
OUTPUT_FOLDER = "trnscope-out"
FORWARDED = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGQUIT")

# Kineto announces every start and stop of a recording on stderr; this level leaves errors out
# too, which is why the recorder reports its own.
KINETO_QUIET = "6"


@dataclass(frozen=True)
class RunResult:
    """What came of one ``trnscope run``."""

    exit_code: int
    """The script's own; 128 + the signal's number when a signal ended it."""
    signal: int | None
    out: Path
    records: tuple[CaptureRecord, ...]
    """One for each process that recorded, by rank; the script's own process always has one
    once it has imported torch."""
    elapsed_ns: int

    @property
    def traces(self) -> tuple[Path, ...]:
        """The trace files, by rank."""
        return tuple(record.trace for record in self.records if record.trace is not None)

    @property
    def reason(self) -> str | None:
        """Why there is no trace; None when there is one."""
        if self.traces:
            return None
        root = next((record for record in self.records if record.is_root), None)
        ended = "" if self.ending is None else f" (it ended with {self.ending})"
        if root is None:
            return f"the script never imported torch{ended}"
        if root.hint is None:
            return f"{root.reason}{ended}"
        if self.ending is None:
            return f"{root.reason}; {root.hint}"
        # Advice on what it lacks would mislead: it did not come so far.
        return f"the script ended with {self.ending} before a step was recorded"

    @property
    def ending(self) -> str | None:
        """How the script failed: its exit code or its signal; None where it went well."""
        if self.exit_code == 0:
            return None
        if self.signal is not None:
            return f"signal {signal.Signals(self.signal).name}"
        return f"exit code {self.exit_code}"

    @property
    def left_device_idle(self) -> bool:
        """Whether a simulated device was there and no process gave it anything."""
        launches = [one.num_launches for one in self.records if one.num_launches is not None]
        return bool(launches) and not any(launches)


def run_script(options: RunOptions, env: Mapping[str, str] | None = None) -> RunResult:
    """Run a script to its end and record a few of its steps.

    The script runs under the same interpreter, in this process's working folder and with its
    standard streams, and ends as it would have without us. Raises :class:`UsageError` when it
    cannot be started and :class:`CaptureError` when the output folder cannot be made; a script
    of which nothing could be recorded is no error, see :attr:`RunResult.reason`.
    """
    command = command_for(options)
    out, is_ours = _output_folder(options)
    claims = out / f".run-{uuid.uuid4().hex[:12]}"
    claims.mkdir()
    settings = ProcessSettings(options.capture, out, claims)
    started = time.perf_counter_ns()
    try:
        code = _run_child(command, child_environment(settings, os.environ if env is None else env))
        elapsed = time.perf_counter_ns() - started
        records = _collect(out, settings.run)
    finally:
        shutil.rmtree(claims, ignore_errors=True)
        if is_ours:
            with contextlib.suppress(OSError):
                out.rmdir()  # only if it is empty
    ended_by = -code if code < 0 else None
    return RunResult(code if code >= 0 else 128 - code, ended_by, out, records, elapsed)


def command_for(options: RunOptions) -> list[str]:
    """The command line that runs the script as the user would have run it."""
    target, args = options.target, list(options.args)
    if options.is_module:
        return [sys.executable, "-m", target, *args]
    path = Path(target)
    if path.is_file() or (path / "__main__.py").is_file():
        return [sys.executable, target, *args]
    program = shutil.which(target)
    if program is None:
        raise UsageError(f"{target}: no such script or program", hint="check the path")
    return [program, *args]


def child_environment(settings: ProcessSettings, base: Mapping[str, str]) -> dict[str, str]:
    """The environment in which a process, and those it starts, record themselves."""
    env = dict(base)
    inherited = env.get("PYTHONPATH")
    # An empty PYTHONPATH and none mean the same; an empty entry would mean the working folder.
    env["PYTHONPATH"] = os.pathsep.join([str(BOOTSTRAP), *([inherited] if inherited else [])])
    env["TRNSCOPE_CAPTURE"] = settings.to_text()
    env["TRNSCOPE_CAPTURE_ROOT"] = "1"
    env.setdefault("KINETO_LOG_LEVEL", KINETO_QUIET)
    return env


def _output_folder(options: RunOptions) -> tuple[Path, bool]:
    """The folder for the traces, made; and whether it was made for this run alone."""
    try:
        if options.out is not None:
            options.out.mkdir(parents=True, exist_ok=True)
            return options.out.resolve(), False
        name = options.target if options.is_module else Path(options.target).stem
        return _new_folder(Path(OUTPUT_FOLDER) / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"), True
    except OSError as error:
        raise CaptureError(
            f"cannot make the output folder {error.filename}: {error.strerror}",
            hint="name another one with --out",
        ) from error


def _new_folder(wanted: Path) -> Path:
    folder, number = wanted, 1
    while not _made(folder):
        number += 1
        folder = wanted.with_name(f"{wanted.name}-{number}")
    return folder.resolve()


def _made(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True)
    except FileExistsError:
        return False
    return True


def _run_child(command: list[str], env: dict[str, str]) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        child = subprocess.Popen(command, env=env)
    except OSError as error:
        raise UsageError(f"cannot run {command[0]}: {error.strerror}") from error
    with _signals_go_to(child):
        return child.wait()


@contextlib.contextmanager
def _signals_go_to(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Pass signals on to the script, and outlive them to report on it."""

    def forward(number: int, _frame: object) -> None:
        if number != signal.SIGINT or not _typed_by_a_person():
            child.send_signal(number)

    before = {}
    for name in (*FORWARDED, "SIGINT"):
        number = getattr(signal, name, None)
        if number is not None:
            with contextlib.suppress(ValueError):  # not on the main thread: nothing to pass on
                before[number] = signal.signal(number, forward)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _typed_by_a_person() -> bool:
    """Whether a Ctrl-C reaches the script by itself, being in the terminal's foreground too."""
    try:
        with Path("/dev/tty").open() as terminal:
            return os.tcgetpgrp(terminal.fileno()) == os.getpgrp()
    except OSError:
        return False


def _collect(out: Path, run: str) -> tuple[CaptureRecord, ...]:
    """The records of this run; the folder may hold others', some of them being written now."""
    found = []
    for path in out.glob(f"*{SUFFIX}"):
        with contextlib.suppress(OSError, TraceFormatError):
            found.append(CaptureRecord.read(path))
    (out / f"root.{run}{SUFFIX}").unlink(missing_ok=True)
    return tuple(sorted((record for record in found if record.run == run), key=_by_rank))


def _by_rank(record: CaptureRecord) -> tuple[bool, int, int]:
    return (record.rank is None, record.rank or 0, record.pid)
