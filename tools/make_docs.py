"""Writes the generated parts of the documentation: ``make docs``.

Generated are, in docs/reference: cli.md from the command line itself, python.md and rules.md from
docstrings, and hardware.md from the hardware data; the output under each command of a ``console``
block, from running it; the lists of how-to and of metric pages; and the example traces.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_type_hints

from tools import hardware_page, make_example_neuron, make_example_trace
from tools.python_reference import python_reference
from trnscope.advisor.registry import RULES
from trnscope.cli.app import app
from trnscope.report.rules import rules_markdown

REPO = Path(__file__).resolve().parents[1]
DOCS = REPO / "docs"
INDEX = DOCS / "README.md"
REFERENCE = DOCS / "reference" / "cli.md"
PYTHON = DOCS / "reference" / "python.md"
RULES_PAGE = DOCS / "reference" / "rules.md"
CONCEPTS = DOCS / "concepts.md"
WIDTH = 100

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LIST = re.compile(r"(<!-- (\w+): begin -->\n).*?(<!-- \2: end -->)", re.DOTALL)


def pages() -> list[Path]:
    """Every page of the documentation that is written by hand."""
    found = [REPO / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [
        page for page in found if page not in (REFERENCE, PYTHON, RULES_PAGE, hardware_page.PAGE)
    ]


def commands_in(page: str) -> list[str]:
    """The command lines of a page's ``console`` blocks."""
    return [command for block in _BLOCK.findall(page) for command in _commands(block)]


def _commands(block: str) -> list[str]:
    return [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]


def with_fresh_output(page: str, folder: Path) -> str:
    """The page with each ``console`` block's output as the commands print it now."""
    return _BLOCK.sub(lambda found: _fresh_block(found.group(1), folder), page)


def _fresh_block(block: str, folder: Path) -> str:
    parts = [f"$ {command}\n{output_of(command, folder)}" for command in _commands(block)]
    return "```console\n" + "".join(parts) + "```"


def output_of(command: str, folder: Path) -> str:
    """What a command of a page prints, run beside a copy of the examples."""
    env = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": str(WIDTH),
        "NO_COLOR": "1",
        "TRNSCOPE_CACHE_DIR": str(folder / ".cache"),
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if "internal error" in done.stdout:
        raise SystemExit(f"{command}\n{done.stdout}")
    return done.stdout


def example_folder(place: Path) -> Path:
    """A folder in which the commands of the pages can run."""
    shutil.copytree(DOCS / "examples", place / "docs" / "examples")
    return place


def reference() -> str:
    """The command line reference as Markdown."""
    lines = [
        "# Command line",
        "",
        "Generated from the program by `make docs`; `trnscope COMMAND --help` says the same.",
        "",
        "- Exit codes: 0 fine; 1 an error that the user can mend, told in one line on stderr;",
        "  2 wrong usage; 3 a gate failed. `trnscope run` ends with the script's own code.",
        "- `NO_COLOR`, a pipe or a file turn colours off. A table is as wide as the terminal,",
        "  in a pipe or a file 120 characters; names give way, numbers never do. Rows of `sql` in",
        "  a pipe or a file, and every document of `--json`, hold names whole.",
        "- `TRNSCOPE_CACHE_DIR` names the folder of the indices, `TRNSCOPE_DEBUG=1` does what",
        "  `--debug` does.",
        "- `trnscope --version` prints the version.",
    ]
    for command in app.registered_commands:
        function = command.callback
        assert function is not None
        lines += ["", f"## trnscope {function.__name__}", "", *_description(function)]
        lines += ["", "| Argument or option | Meaning | Default |", "|---|---|---|"]
        lines += _parameters(function)
    return "\n".join(lines) + "\n"


def _description(function: Callable[..., Any]) -> list[str]:
    """A command's help: its prose, then its example as a block."""
    prose, _, example = (inspect.getdoc(function) or "").partition("\b")
    commands = [line.strip() for line in example.splitlines() if line.startswith("  ")]
    return [prose.strip(), "", "```sh", *commands, "```"]


def _parameters(function: Callable[..., Any]) -> Iterator[str]:
    """One row for each argument and option, from the function's own annotations."""
    hints = get_type_hints(function, include_extras=True)
    for name, parameter in inspect.signature(function).parameters.items():
        kind, info = get_args(hints[name])
        # In Annotated the first spelling is where the default would be.
        decls = [each for each in (info.default, *(info.param_decls or ())) if each is not ...]
        names = [spelled for each in decls for spelled in each.split("/")] or [info.metavar]
        values = "\\|".join(_choices(kind)) or (info.metavar if decls else None)
        spelled = ", ".join(f"`{each} {values}`" if values else f"`{each}`" for each in names)
        meaning, _, stated = info.help.partition("[default: ")
        default = stated.rstrip("]") or _default(parameter.default)
        yield f"| {spelled} | {meaning.strip()} | {default} |"


def _choices(kind: Any) -> list[str]:
    members = [kind, *get_args(kind)]
    return [
        choice.value
        for member in members
        if isinstance(member, type) and issubclass(member, Enum)
        for choice in member
    ]


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return "required"
    plain = getattr(value, "value", value)
    return "" if plain in (None, False, True) else f"`{plain}`"


def list_of(folder: str) -> str:
    """One line for each page of a folder of docs: its title."""
    return "".join(
        f"- [{page.read_text(encoding='utf-8').splitlines()[0].removeprefix('# ')}]"
        f"({folder}/{page.name})\n"
        for page in sorted((DOCS / folder).glob("*.md"))
    )


def with_lists(page: str) -> str:
    """A page whose lists of other pages, between their marks, are up to date."""
    return _LIST.sub(lambda found: found[1] + list_of(found[2]) + found[3], page)


def main() -> None:
    """Write all of it again."""
    make_example_trace.main()
    make_example_neuron.main()
    REFERENCE.parent.mkdir(exist_ok=True)
    REFERENCE.write_text(reference(), encoding="utf-8")
    PYTHON.write_text(python_reference(), encoding="utf-8")
    RULES_PAGE.write_text(rules_markdown(RULES), encoding="utf-8")
    hardware_page.PAGE.write_text(hardware_page.hardware_page(), encoding="utf-8")
    for page in (CONCEPTS, INDEX):
        page.write_text(with_lists(page.read_text(encoding="utf-8")), encoding="utf-8")
    with tempfile.TemporaryDirectory() as place:
        folder = example_folder(Path(place))
        for page in pages():
            text = page.read_text(encoding="utf-8")
            page.write_text(with_fresh_output(text, folder), encoding="utf-8")


if __name__ == "__main__":
    main()
