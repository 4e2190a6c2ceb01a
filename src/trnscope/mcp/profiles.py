"""The profiles that an agent has opened, each under a short id."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from itertools import count
from pathlib import Path
from threading import Lock

from trnscope.advisor.finding import Explanation
from trnscope.analysis.time_axis import time_axis
from trnscope.api import open as open_traces
from trnscope.errors import UsageError
from trnscope.opened import OpenedProfile
from trnscope.server.slices import SliceFinder

MAX_OPEN = 8
"""Profiles that stay open; the one that was not asked for the longest goes first."""


class AgentProfile:
    """One opened profile, and what is asked of it again and again."""

    def __init__(self, profile: OpenedProfile) -> None:
        self.opened = profile

    @cached_property
    def explanation(self) -> Explanation:
        """The doctor's answer."""
        return self.opened.explain()

    @cached_property
    def finder(self) -> SliceFinder:
        """Describes slices; its times count from the start of the profile."""
        return SliceFinder(self.opened, time_axis(self.opened))


class AgentProfiles:
    """Profiles by id; may be used from any thread."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, AgentProfile] = OrderedDict()
        self._numbers = count(1)
        self._lock = Lock()

    def open(self, paths: Sequence[Path]) -> str:
        """Open traces as one profile and return its id; raises what :func:`trnscope.open` does."""
        profile = AgentProfile(open_traces(*paths))
        with self._lock:
            name = f"p{next(self._numbers)}"
            self._open[name] = profile
            while len(self._open) > MAX_OPEN:
                self._open.popitem(last=False)
        return name

    def get(self, name: str) -> AgentProfile:
        """The profile of this id; raises :class:`UsageError` for one that is not open."""
        with self._lock:
            profile = self._open.get(name)
            if profile is None:
                known = ", ".join(self._open) or "none"
                raise UsageError(
                    f"no profile {name} is open (open: {known})", "call open_profile first"
                )
            self._open.move_to_end(name)
        return profile
