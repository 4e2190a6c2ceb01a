"""Print the packages that pyproject.toml asks for, for pip to install before the build."""

from __future__ import annotations

import re
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def lists_in(text: str) -> list[str]:
    """The requirements of ``dependencies`` and of the ``dev`` extra (torch is pinned by make).

    A regular expression, because Python 3.10 has no TOML reader of its own.
    """
    found: list[str] = []
    for key in ("dependencies", "dev"):
        block = re.search(rf"^{key} = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
        if block is None:
            raise SystemExit(f"pyproject.toml has no list '{key}'")
        found += re.findall(r'"([^"]+)"', block.group(1))
    return found


if __name__ == "__main__":
    print("\n".join(lists_in(PYPROJECT.read_text(encoding="utf-8"))))
