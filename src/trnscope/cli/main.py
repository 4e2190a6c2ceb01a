"""The border of the command line: runs one command, turns errors into one line and a code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TextIO

from trnscope.cli.debug import debug_wanted
from trnscope.cli.plain import plain_command
from trnscope.errors import TrnscopeError

EXIT_USER_ERROR = 1
EXIT_USAGE = 2
EXIT_INTERRUPTED = 130

_FEW_COLLECTIONS = 100_000
"""Garbage collection after so many new objects: a short process has little garbage."""


def main() -> None:
    """Entry point of the ``trnscope`` command."""
    for stream in (sys.stdout, sys.stderr):
        _never_fail_to_encode(stream)
    sys.excepthook = _report_bug
    gc.set_threshold(_FEW_COLLECTIONS)
    sys.exit(run(sys.argv[1:]))


def run(args: Sequence[str]) -> int:
    """Run one command line; returns its exit code."""
    try:
        code = _dispatch(args)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader (head, a pager) has what it wanted. Point stdout elsewhere, or the
        # interpreter complains when it flushes on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return _fail("interrupted", EXIT_INTERRUPTED)
    except TrnscopeError as error:
        _reraise_in_debug_mode(error)
        return _fail(str(error), EXIT_USER_ERROR)
    except OSError as error:
        _reraise_in_debug_mode(error)
        return _fail(_os_error_text(error), EXIT_USER_ERROR)


def _dispatch(args: Sequence[str]) -> int:
    command = plain_command(args)
    if command is None:
        return _parse_and_run(args)
    command()
    return 0


def _parse_and_run(args: Sequence[str]) -> int:
    import typer
    from typer.main import get_command

    from trnscope.cli.app import app

    # Wrong usage is an exception of the parser inside typer, which older releases take from
    # the package click and newer ones carry themselves; BadParameter is public in both.
    usage_problem: type[Exception] = typer.BadParameter.__mro__[1]
    command = get_command(app)
    try:
        with command.make_context("trnscope", list(args)) as context:
            result = command.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    except typer.Abort:
        return _fail("interrupted", EXIT_INTERRUPTED)
    except usage_problem as problem:
        return _fail(_usage_text(problem), EXIT_USAGE)
    return result if isinstance(result, int) else 0


def _usage_text(problem: Exception) -> str:
    context = getattr(problem, "ctx", None)
    name = "trnscope" if context is None else context.command_path
    message = problem.format_message() if hasattr(problem, "format_message") else str(problem)
    message = message.replace("Value error, ", "").rstrip(".")
    return f"{_of_all_missing(problem, message)}; see {name} --help"


def _of_all_missing(problem: Exception, message: str) -> str:
    """The message; where a missing argument is one of several, with all of them in their order.

    The parser gives the words it has to the last arguments first, and names the wrong one.
    """
    context = getattr(problem, "ctx", None)
    if context is None or not message.startswith("Missing argument"):
        return message
    needed = [
        each
        for each in context.command.params
        if each.param_type_name == "argument" and each.required
    ]
    words = [f"{each.metavar}{'...' if each.nargs < 0 else ''}" for each in needed]
    return message if len(words) < 2 else f"{context.info_name} needs {' and then '.join(words)}"


def _os_error_text(error: OSError) -> str:
    what = error.strerror or str(error)
    return what if error.filename is None else f"{error.filename}: {what}"


def _fail(message: str, code: int) -> int:
    from trnscope.cli.output import print_error

    print_error(message)
    return code


def _reraise_in_debug_mode(error: Exception) -> None:
    if debug_wanted():
        raise error


def _report_bug(
    kind: type[BaseException], error: BaseException, traceback: TracebackType | None
) -> None:
    if debug_wanted():
        sys.__excepthook__(kind, error, traceback)
        return
    _fail(
        f"internal error ({kind.__name__}: {error}); this is a bug in trnscope: "
        "run again with --debug and report what it shows",
        EXIT_USER_ERROR,
    )


def _never_fail_to_encode(stream: TextIO) -> None:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="replace")


if __name__ == "__main__":
    main()
