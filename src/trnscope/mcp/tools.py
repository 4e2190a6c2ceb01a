"""The tools that an agent can call. Their docstrings are what the agent reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from trnscope.advisor.registry import RULES, find_rule
from trnscope.errors import TrnscopeError, UsageError
from trnscope.mcp.profiles import AgentProfile, AgentProfiles
from trnscope.opened import OpenedProfile
from trnscope.report.bounded import Json, bounded, cut_text
from trnscope.report.document import to_document
from trnscope.report.marks import incomplete_reason
from trnscope.report.rules import rules_json
from trnscope.report.sentence import where_time_goes
from trnscope.server.query import FirstRows, first_rows

MAX_CHARACTERS = 40_000
"""Of the JSON text of an answer: some 10,000 tokens."""
MAX_ID = 32
"""Characters of an evidence id."""
ProfileId = Annotated[str, Field(description="What open_profile returned, such as p1.")]
Limit = Annotated[int, Field(description="Most rows in a list.", ge=1, le=500)]
Params = ParamSpec("Params")


class Tools:
    """One method a tool; all answers are the documents of ``trnscope COMMAND --json``, bounded."""

    def __init__(self, profiles: AgentProfiles) -> None:
        self._profiles = profiles

    @property
    def all(self) -> tuple[Callable[..., Json], ...]:
        """The tools, in the order in which they are useful."""
        return tuple(
            _answering(tool)
            for tool in (
                self.open_profile,
                self.explain,
                self.evidence,
                self.rule,
                self.health,
                self.breakdown,
                self.steps,
                self.ops,
                self.kernels,
                self.memory,
                self.roofline,
                self.sql,
            )
        )

    def open_profile(
        self,
        paths: Annotated[
            list[str],
            Field(description="Trace files, or one folder; several files are ranks of one job."),
        ],
    ) -> Json:
        """Open a profile and learn where the time of its steps goes.

        The answer holds the id that all other tools want, one sentence, and marks: `incomplete`
        (figures stand for a part) and `simulated_by` (times come from a model, not from hardware).
        """
        name = self._profiles.open([Path(path) for path in paths])
        profile = self._profiles.get(name).opened
        sentence = where_time_goes(
            profile.breakdown(),
            incomplete=incomplete_reason(profile) is not None,
            simulated=profile.simulated_by is not None,
            virtual=profile.is_virtual,
        )
        document = {
            "schema": 1,
            "profile": name,
            "sentence": sentence,
            "paths": [str(trace.source.path) for trace in profile.traces],
            "num_events": profile.num_events,
        }
        return _bounded({**document, **_marks(profile)}, 50)

    def explain(self, profile: ProfileId, evidence: Limit = 5) -> Json:
        """Name the causes of lost time, with nanoseconds per step that each would give back.

        Times are [low, likely, high]. `evidence` holds ids such as `0:2174`; pass one to the tool
        `evidence` to see the slice of the trace. `withheld` lists rules that could not be asked.
        """
        asked = self._profiles.get(profile)
        explanation = asked.explanation
        document = {**explanation.to_json(), **_marks(asked.opened)}
        for key, findings in (("findings", explanation.findings), ("hidden", explanation.hidden)):
            document[key] = [
                {**one.to_json(), "evidence": [f"{one.trace}:{at}" for at in one.evidence]}
                for one in findings
            ]
        return _findings_bounded(document, evidence)

    def evidence(
        self,
        profile: ProfileId,
        evidence_id: Annotated[str, Field(description="An id from explain, such as 0:2174.")],
    ) -> Json:
        """Show one slice of the trace: times, args, what encloses it, neighbours and links."""
        trace, slice_id = _parse_evidence(evidence_id)
        asked = self._profiles.get(profile)
        document = asked.finder.details(trace, slice_id).to_json()
        return _bounded({"evidence_id": evidence_id, **document, **_marks(asked.opened)}, 20)

    def rule(
        self,
        code: Annotated[
            str | None, Field(description="A rule's code or name; all rules in short without it.")
        ] = None,
    ) -> Json:
        """Read a rule's manual page: how it computes, when it is wrong, and what to try."""
        if code is not None:
            return rules_json((find_rule(code),))
        rules = [
            {"code": rule.code, "rule": rule.name, "summary": rule.page.summary} for rule in RULES
        ]
        return {"schema": 1, "rules": rules}

    def health(self, profile: ProfileId, limit: Limit = 30) -> Json:
        """Say how far the figures can be trusted: damage, losses, missing parts."""
        return self._ask(profile, lambda one: one.opened.health(), limit)

    def breakdown(self, profile: ProfileId, limit: Limit = 20) -> Json:
        """Split each step into compute, exposed communication, copies, host and launch waits."""
        return self._ask(profile, lambda one: one.opened.breakdown(), limit)

    def steps(self, profile: ProfileId, limit: Limit = 50) -> Json:
        """List the steps with their durations and device time, ns."""
        return self._ask(profile, lambda one: one.opened.steps(), limit)

    def ops(
        self,
        profile: ProfileId,
        by: Literal["name", "shape", "stack", "module"] = "name",
        limit: Limit = 20,
    ) -> Json:
        """List ops by their own time: calls, self and total time on host and device, ns."""
        return self._ask(profile, lambda one: one.opened.ops(by), limit)

    def kernels(
        self,
        profile: ProfileId,
        by: Literal["name", "device", "stream"] = "name",
        limit: Limit = 20,
    ) -> Json:
        """List device work: kernels, copies and collectives, ns."""
        return self._ask(profile, lambda one: one.opened.kernels(by), limit)

    def memory(self, profile: ProfileId, limit: Limit = 20) -> Json:
        """Show memory by device: start, peak, end, and which ops hold it."""
        return self._ask(profile, lambda one: one.opened.memory(), limit)

    def roofline(self, profile: ProfileId, limit: Limit = 20) -> Json:
        """Hold each op against the peaks of its device: FLOPs, bytes, MFU, what binds it."""
        return self._ask(profile, lambda one: one.opened.roofline(), limit)

    def sql(
        self,
        profile: ProfileId,
        query: Annotated[
            str,
            Field(description="One SELECT in DuckDB's dialect over the views of the profile."),
        ],
        limit: Limit = 50,
    ) -> Json:
        """Ask anything: views slices, ops, kernels, device_work, launches, tracks, args and more.

        `SHOW TABLES` lists the views, `DESCRIBE ops` the columns of one. `has_more` says whether
        rows are missing.
        """
        asked = self._profiles.get(profile).opened
        return {**_fitting_rows(first_rows(asked, query, limit)), **_marks(asked)}

    def _ask(self, profile: str, ask: Callable[[AgentProfile], Any], limit: int) -> Json:
        asked = self._profiles.get(profile)
        return _bounded({**ask(asked).to_json(), **_marks(asked.opened)}, limit)


def _bounded(document: Json, rows: int) -> Json:
    return bounded(document, rows, MAX_CHARACTERS)


def _marks(profile: OpenedProfile) -> Json:
    """What has to be said beside every figure of the profile."""
    return {"incomplete": incomplete_reason(profile), "simulated_by": profile.simulated_by}


def _fitting_rows(found: FirstRows) -> Json:
    """Whole rows, as many as fit; ``has_more`` says that some did not."""
    document = found.to_json()
    rows = [[_short(cell) for cell in row] for row in found.rows]
    while rows and len(json.dumps(rows)) > MAX_CHARACTERS:
        rows = rows[: len(rows) // 2]
    has_more = found.has_more or len(rows) < len(found.rows)
    return {**document, "rows": rows, "has_more": has_more}


def _short(cell: object) -> object:
    return cut_text(cell) if isinstance(cell, str) else cell


def _findings_bounded(document: Json, evidence: int) -> Json:
    """All findings are kept; of the evidence of each, and of its lines, only so much."""
    left_out = 0
    for key in ("findings", "hidden"):
        for finding in document[key]:
            left_out += max(0, len(finding["evidence"]) - evidence)
            finding["evidence"] = finding["evidence"][:evidence]
    return {**document, "num_evidence_left_out": left_out}


def _parse_evidence(evidence_id: str) -> tuple[int, int]:
    trace, _, slice_id = evidence_id.partition(":")
    if len(evidence_id) > MAX_ID or not (trace.isdecimal() and slice_id.isdecimal()):
        raise UsageError(
            f"{evidence_id[:MAX_ID]} is no evidence id",
            "ids look like 0:2174 and come from explain",
        )
    return int(trace), int(slice_id)


def _answering(tool: Callable[Params, Json]) -> Callable[Params, Json]:
    """The tool with expected failures as messages for the agent."""

    @wraps(tool)
    def answer(*args: Params.args, **kwargs: Params.kwargs) -> Json:
        try:
            document: Json = to_document(tool(*args, **kwargs))
        except TrnscopeError as error:
            raise ToolError(str(error)) from None
        return document

    return answer
