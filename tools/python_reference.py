"""Writes docs/reference/python.md from the docstrings and annotations of the Python API."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from trnscope import api, errors, opened
from trnscope.capture import profile as capture

_NAME = re.compile(r"[A-Za-z_]\w*")
_ROLE = re.compile(r":\w+:`~?(?:[\w.]+\.)?(\w+)`")
_WIDTH = 90
_OURS = ("self", "opener")
"""Parameters that a caller does not give."""
INTRODUCTION = """\
# Python

Generated from the program by `make docs`; `help()` says the same. A walk through it:
[I want the figures in Python](../howto/use-from-python.md).

Times are integer nanoseconds, ratios run from 0 to 1, and `None` means not recorded. Results are
frozen dataclasses. What a result lists is in `rows`; where it is by device, stream or host, in
`devices`, `streams` or `hosts`. `to_json()` of a result is the document that its command prints
with `--json` ([documents](json.md)). Failures that a user can act on are `TrnscopeError`s.
"""


def python_reference() -> str:
    """The page as Markdown."""
    lines = [INTRODUCTION]
    lines += ["## trnscope.open", "", *_function(api.open, "trnscope.open")]
    lines += ["## trnscope.profile", "", *_capture()]
    lines += ["## What open() returns", "", _prose(opened.OpenedProfile), ""]
    results: dict[str, type] = {}
    for method in _methods(opened.OpenedProfile):
        lines += [f"### .{method.__name__}", "", *_function(method, f".{method.__name__}")]
        results |= _types_in(method.__annotations__["return"], opened)
    lines += ["## Results", ""]
    for result in _with_members(results):
        lines += _result(result)
    lines += ["## Errors", "", *_errors()]
    return "\n".join(lines).rstrip("\n") + "\n"


def _capture() -> Iterator[str]:
    yield from _function(capture.profile.__init__, "trnscope.profile", _prose(capture.profile))
    yield "| Member | Meaning |"
    yield "|---|---|"
    for name, member in vars(capture.profile).items():
        if not name.startswith("_"):
            call = "" if isinstance(member, property) else "()"
            yield f"| `{name}{call}` | {_summary(inspect.getdoc(member))} |"
    yield ""


def _methods(kind: type) -> Iterator[Callable[..., Any]]:
    for name, member in vars(kind).items():
        if inspect.isfunction(member) and not name.startswith("_"):
            yield member


def _function(function: Callable[..., Any], name: str, prose: str | None = None) -> Iterator[str]:
    signature = inspect.signature(function)
    returns = "" if function.__name__ == "__init__" else f" -> {signature.return_annotation}"
    shown = [each for each in signature.parameters.values() if each.name not in _OURS]
    yield "```py"
    yield from _call(name, list(_parameters(shown)), returns)
    yield "```"
    yield ""
    yield _prose(function) if prose is None else prose
    yield ""


def _parameters(parameters: list[inspect.Parameter]) -> Iterator[str]:
    keyword_only = False
    for each in parameters:
        if each.kind is each.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            if not any(one.kind is one.VAR_POSITIONAL for one in parameters):
                yield "*"
        star = "*" if each.kind is each.VAR_POSITIONAL else ""
        default = "" if each.default is each.empty else f" = {each.default!r}"
        yield f"{star}{each.name}: {each.annotation}{default}"


def _call(name: str, parameters: list[str], returns: str) -> list[str]:
    """A signature on one line, or with a line for each parameter."""
    whole = f"{name}({', '.join(parameters)}){returns}"
    if len(whole) <= _WIDTH:
        return [whole]
    return [f"{name}(", *(f"    {parameter}," for parameter in parameters), f"){returns}"]


def _prose(of: Any) -> str:
    """A docstring as Markdown: roles become code, an indented example a block."""
    text = _ROLE.sub(r"`\1`", inspect.getdoc(of) or "").replace("``", "`")
    head, marker, rest = text.partition("::\n\n")
    if not marker:
        return text
    body: list[str] = []
    after: list[str] = []
    for line in rest.splitlines():
        (after if after or (line and not line.startswith("    ")) else body).append(line)
    example = textwrap.dedent("\n".join(body)).strip()
    parts = [head.strip(), f"```py\n{example}\n```", "\n".join(after).strip()]
    return "\n\n".join(part for part in parts if part)


def _summary(text: str | None) -> str:
    """A docstring in one table cell."""
    plain = _ROLE.sub(r"`\1`", text or "").replace("``", "`")
    return " ".join(plain.split()).replace("|", "\\|")


def _types_in(annotation: str, module: Any) -> dict[str, type]:
    """The dataclasses of this project that an annotation names, found as the module finds them."""
    found: dict[str, type] = {}
    for name in _NAME.findall(annotation):
        kind = getattr(module, name, None) or _imported_for_typing(name, module)
        is_ours = inspect.isclass(kind) and kind.__module__.startswith("trnscope.")
        if is_ours and dataclasses.is_dataclass(kind):
            found[name] = kind
    return found


def _imported_for_typing(name: str, module: Any) -> Any:
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and name in {each.name for each in node.names}:
            return getattr(importlib.import_module(node.module or ""), name)
    return None


def _with_members(results: dict[str, type]) -> list[type]:
    """The results, each followed by the classes of its members."""
    ordered: dict[str, type] = {}

    def add(name: str, kind: type) -> None:
        if name in ordered:
            return
        ordered[name] = kind
        module = inspect.getmodule(kind)
        for annotation in kind.__annotations__.values():
            for member_name, member in _types_in(str(annotation), module).items():
                add(member_name, member)

    for name, kind in results.items():
        add(name, kind)
    return list(ordered.values())


def _result(kind: type) -> Iterator[str]:
    yield f"### {kind.__name__}"
    yield ""
    yield _prose(kind)
    yield ""
    rows = list(_members(kind))
    if rows:
        yield "| Member | Type | Meaning |"
        yield "|---|---|---|"
        yield from rows
        yield ""


def _members(kind: type) -> Iterator[str]:
    told = _field_docs(kind)
    for name, annotation in kind.__annotations__.items():
        if not name.startswith("_"):
            yield _member(name, str(annotation), told.get(name))
    for name, member in vars(kind).items():
        if isinstance(member, property) and not name.startswith("_"):
            returns = str(inspect.signature(member.fget).return_annotation)  # type: ignore[arg-type]
            yield _member(name, returns, inspect.getdoc(member))
        elif inspect.isfunction(member) and not name.startswith(("_", "to_json")):
            returns = str(inspect.signature(member).return_annotation)
            yield _member(f"{name}()", returns, inspect.getdoc(member))


def _member(name: str, kind: str, meaning: str | None) -> str:
    shown = kind.strip("'").replace("|", "\\|")
    return f"| `{name}` | `{shown}` | {_summary(meaning)} |"


def _field_docs(kind: type) -> dict[str, str]:
    """The string under each field of a class."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    told = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            value = below.value if isinstance(below, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                told[field.target.id] = value.value
    return told


def _errors() -> Iterator[str]:
    yield "All are in `trnscope.errors`."
    yield ""
    yield "| Error | Raised when |"
    yield "|---|---|"
    for name, kind in vars(errors).items():
        if inspect.isclass(kind) and issubclass(kind, errors.TrnscopeError):
            yield f"| `{name}` | {_summary(inspect.getdoc(kind))} |"
    yield ""
