"""Runs the checks of one file and prints what each raised, as JSON."""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Callable

from tests.integration.sim_checks import MARK, names_of


def main(module: str) -> None:
    checks = importlib.import_module(f"tests.integration.sim_checks.{module}")
    results = {name: outcome_of(getattr(checks, name)) for name in names_of(module)}
    print(MARK + json.dumps(results), flush=True)


def outcome_of(check: Callable[[], None]) -> str | None:
    try:
        check()
    except Exception:
        return traceback.format_exc()
    return None


if __name__ == "__main__":
    main(sys.argv[1])
