"""Draws docs/images/demo.svg from what ``trnscope demo`` really prints: ``make picture``.

Apart from ``make docs``, because the demo's figures differ a little with every run.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "demo.svg"
WIDTH = 100

# Rich's own frame loads a font from the network; this one takes what the reader has.
_FRAME = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def demo_output() -> str:
    """The demo's output with its colours."""
    env = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    env.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run(
            [Path(sys.executable).with_name("trnscope"), "demo"],
            cwd=place,
            env=env,
            capture_output=True,
            text=True,
            check=True,
        )
    return done.stdout


def picture_of(output: str) -> str:
    """Terminal output as an SVG picture."""
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False
    )
    console.print(Text("$ trnscope demo", style="bold green"))
    console.print(Text.from_ansi(output.rstrip("\n")))
    return console.export_svg(
        title="trnscope demo", theme=MONOKAI, code_format=_FRAME, unique_id="demo"
    )


if __name__ == "__main__":
    PICTURE.write_text(picture_of(demo_output()), encoding="utf-8")
