"""Takes out of a document what says whose machine it comes from."""

from __future__ import annotations

import getpass
import re
import socket
from collections.abc import Callable, Iterable
from typing import Any

_FOLDERS = re.compile(r"(?<![\w.~-])(?:[A-Za-z]:)?[/\\](?:[^/\\\s:;'\"(),<>]+[/\\])+")
"""An absolute path in a text, up to its last part; a name in it with a space ends the path."""
_LEADING = re.compile(r"^(?:[A-Za-z]:)?[/\\](?:[^/\\\n:]+[/\\])+")
"""The same at the beginning of a text, where names may hold spaces."""
LEAST_NAME = 3
"""A shorter name would also be part of words that are no name."""
_COMMON = {"root", "user", "localhost"}


def names_of_this_machine() -> tuple[str, ...]:
    """The user and the host, where they say something."""
    names = (_name_from(getpass.getuser), _name_from(socket.gethostname))
    return tuple(name for name in names if name is not None and name not in _COMMON)


def _name_from(ask: Callable[[], str]) -> str | None:
    try:
        return ask()
    except (OSError, KeyError):
        # A container's user may have no name.
        return None


def redacted(value: Any, names: Iterable[str] = (), folders: Iterable[str] = ()) -> Any:
    """The same with each absolute path cut to its last part, and these names and folders gone."""
    wanted = [re.escape(name) for name in names if len(name) >= LEAST_NAME]
    pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(wanted)})(?![^\W_])") if wanted else None
    known = sorted((folder.rstrip("/\\") for folder in folders), key=len, reverse=True)
    return _redacted(value, pattern, tuple(folder for folder in known if folder not in ("", ".")))


def _redacted(value: Any, names: re.Pattern[str] | None, folders: tuple[str, ...]) -> Any:
    if isinstance(value, dict):
        return {key: _redacted(item, names, folders) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(item, names, folders) for item in value]
    return _redacted_text(value, names, folders) if isinstance(value, str) else value


def _redacted_text(text: str, names: re.Pattern[str] | None, folders: tuple[str, ...]) -> str:
    for folder in folders:
        for separator in "/\\":
            text = text.replace(folder + separator, "…/")
    text = _FOLDERS.sub("…/", _LEADING.sub("…/", text))
    return text if names is None else names.sub("…", text)
