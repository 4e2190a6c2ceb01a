"""``trnscope rule``: the manual of the rules that explain applies."""

from __future__ import annotations

from typing import Annotated

import typer

from trnscope.cli.options import Debug, Json


def rule(
    code: Annotated[
        str | None,
        typer.Argument(metavar="CODE", help="A rule's code or name; without it all are listed."),
    ] = None,
    as_json: Json = False,
    _debug: Debug = False,
) -> None:
    """Show what a rule finds, how, when it is wrong, and what to try.

    \b
    Example:
      trnscope rule
      trnscope rule IN02
    """
    from trnscope.advisor.registry import RULES, find_rule
    from trnscope.cli.output import print_json, print_lines, terminal_width
    from trnscope.report.rules import rule_lines, rules_json, rules_lines
    from trnscope.report.view import View

    chosen = RULES if code is None else (find_rule(code),)
    if as_json:
        print_json(rules_json(chosen))
    elif code is None:
        print_lines(rules_lines(chosen, View(width=terminal_width())))
    else:
        print_lines(rule_lines(chosen[0].page))
