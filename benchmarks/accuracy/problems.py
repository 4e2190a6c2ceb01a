"""What is wrong with a table or a workload file, in one line that names the place."""

from __future__ import annotations

from pathlib import Path


class InputProblem(ValueError):
    """A file that cannot be used as it stands."""


def in_file(path: Path, where: str, problem: object) -> InputProblem:
    """A problem with its file and place."""
    return InputProblem(f"{path}: {where}: {said(problem)}")


def said(problem: object) -> str:
    """An error in words: a missing key is no message by itself."""
    if isinstance(problem, KeyError):
        return f"{problem.args[0]!r} is missing or not known"
    return " ".join(str(problem).split()) or type(problem).__name__
