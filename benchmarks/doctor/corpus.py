"""Records, times and diagnoses the corpus; each result is a file, so that a run can be resumed."""

from __future__ import annotations

import hashlib
import inspect
import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks.doctor.case import Case, Twin
from benchmarks.doctor.damage import Damaged
from benchmarks.doctor.record import diagnose, record
from benchmarks.doctor.timing import time_case
from benchmarks.doctor.workshop import Failed, in_a_child

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / "build" / "doctor"
EVERY_PROGRAM = ("plan.py", "data.py", "trainer.py", "record.py", "models/blocks.py")


class Corpus:
    """The files of one folder."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder

    def result(self, one: Case | Twin | Damaged) -> dict[str, Any]:
        """What the doctor said of a program; recorded first if need be."""
        path = self._diagnosis(one)
        if path.is_file():
            return _read(path)
        traces = self._traces(one)
        return self._kept(path, lambda: diagnose(traces), self._place(one.name) / "explain.log")

    def has(self, one: Case | Twin | Damaged) -> bool:
        """Whether it was recorded and diagnosed, and timed where it has to be."""
        is_timed = not isinstance(one, Case) or one.device != "cpu" or not one.fault.costs
        if not is_timed and isinstance(one, Case):
            is_timed = self._file(one.name, f"timing-{_version(one)}").is_file()
        return is_timed and self._diagnosis(one).is_file()

    def timing(self, case: Case) -> dict[str, int] | None:
        """What a step takes without a profiler; absent on the simulated device."""
        if case.device != "cpu" or not case.fault.costs:
            return None
        path = self._file(case.name, f"timing-{_version(case)}")
        if path.is_file():
            return _read(path)
        log = self._place(case.name) / "timing.log"
        return self._kept(path, lambda: time_case(case).to_json(), log)

    def _traces(self, one: Case | Twin | Damaged) -> list[str]:
        if isinstance(one, Damaged):
            twin = Twin(None, "transformer", one.damage.device, None)
            (trace,) = self._traces(twin)
            return [str(one.write(Path(trace), self._place(one.name)))]
        path = self._file(one.name, f"traces-{_version(one)}")
        if path.is_file():
            return list(_read(path)["traces"])
        place = self._place(one.name)
        shutil.rmtree(place, ignore_errors=True)
        log = place / "record.log"
        done = self._kept(path, lambda: {"traces": record(one.plan(), place / "traces")}, log)
        return list(done["traces"])

    def _diagnosis(self, one: Case | Twin | Damaged) -> Path:
        of = _version(
            Twin(None, "transformer", one.damage.device, None) if isinstance(one, Damaged) else one
        )
        return self._file(one.name, f"diagnosis-{of}-{DOCTOR}")

    def _kept(self, path: Path, work: Callable[[], Any], log: Path) -> Any:
        try:
            found = in_a_child(work, log)
        except Failed as error:
            raise Failed(f"{path.parent.name}: {error}") from error
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".part")
        unfinished.write_text(json.dumps(found))
        unfinished.replace(path)
        return found

    def _place(self, name: str) -> Path:
        return self.folder / "recordings" / name

    def _file(self, name: str, what: str) -> Path:
        return self.folder / "cases" / name / f"{what}.json"


def _version(one: Case | Twin) -> str:
    """Changes with the sources of a program."""
    family = one.fault if isinstance(one, Case) else one.setting
    files = [HERE / name for name in EVERY_PROGRAM] + [HERE / "models" / f"{one.model}.py"]
    if family is not None:
        files.append(Path(inspect.getfile(family.change)))
    return _digest(SOURCES[file] for file in files)


def _digest(parts: Iterable[bytes]) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:10]


SOURCES = {file: file.read_bytes() for file in HERE.rglob("*.py")}
"""As they were when this process began, and imported them."""
_DOCTORS = HERE.parents[1] / "src" / "trnscope"
DOCTOR = _digest(
    file.read_bytes()
    for folder in ("advisor", "analysis")
    for file in sorted((_DOCTORS / folder).rglob("*.py"))
)
"""The same of the doctor."""


def _read(path: Path) -> Any:
    return json.loads(path.read_text())
