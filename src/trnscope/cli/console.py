"""The console that text is printed on."""

from __future__ import annotations

from rich.console import Console


class PipedConsole(Console):
    """Lets the command's border decide what a reader that went away means."""

    def on_broken_pipe(self) -> None:
        """Pass it on; rich itself would end the program with exit code 1."""
        raise BrokenPipeError
