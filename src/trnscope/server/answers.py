"""Answers of the analyses as text, computed once each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from threading import Lock

from trnscope import __version__
from trnscope.advisor.finding import Explanation
from trnscope.opened import OpenedProfile
from trnscope.report.document import to_json_text
from trnscope.report.marks import incomplete_reason
from trnscope.report.sentence import where_time_goes

Document = Callable[[], object]


class Answers:
    """The documents of ``trnscope COMMAND --json``, and what stands above all of them."""

    def __init__(self, profile: OpenedProfile) -> None:
        self._profile = profile
        self._known: dict[tuple[str, str], str] = {}
        self._locks: defaultdict[tuple[str, str], Lock] = defaultdict(Lock)

    def text(self, question: str, by: str = "") -> str:
        """One document; raises :class:`UsageError` where the profile cannot answer."""
        key = (question, by)
        # A lock for each question: a long one keeps only those waiting who ask the same.
        with self._locks[key]:
            if key not in self._known:
                self._known[key] = to_json_text(self._document(question, by), indent=None)
            return self._known[key]

    @cached_property
    def explanation(self) -> Explanation:
        """The doctor's findings."""
        return self._profile.explain()

    def _document(self, question: str, by: str) -> object:
        profile = self._profile
        plain: dict[str, Document] = {
            "about": self._about,
            "sentence": self._sentence,
            "explain": lambda: self.explanation.to_json(),
            "summary": lambda: profile.summary().to_json(),
            "breakdown": lambda: profile.breakdown().to_json(),
            "steps": lambda: profile.steps().to_json(),
            "health": lambda: profile.health().to_json(),
            "memory": lambda: profile.memory().to_json(),
            "roofline": lambda: profile.roofline().to_json(),
            "ops": lambda: profile.ops(by or "name").to_json(),
            "kernels": lambda: profile.kernels(by or "name").to_json(),
        }
        return plain[question]()

    def _sentence(self) -> dict[str, object]:
        """Where the time goes."""
        profile = self._profile
        sentence = where_time_goes(
            profile.breakdown(),
            incomplete=incomplete_reason(profile) is not None,
            simulated=profile.simulated_by is not None,
            virtual=profile.is_virtual,
        )
        return {"schema": 1, "sentence": sentence}

    def _about(self) -> dict[str, object]:
        """What stands above every view: the files, and the marks that their figures need."""
        profile = self._profile
        return {
            "schema": 1,
            "version": __version__,
            "paths": [trace.source.path for trace in profile.traces],
            "num_events": profile.num_events,
            "incomplete": incomplete_reason(profile),
            "simulated_by": profile.simulated_by,
        }
