"""deviceProperties: what is read of well-formed ones, and that no other value stops a diagnosis."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.made_trace import MadeTrace
from tests.unit.rule_cases_device import GPU
from trnscope.analysis.device_properties import smallest
from trnscope.opened import OpenedProfile, explain_profile


def described(folder: Path, text: str) -> OpenedProfile:
    """Kernels of two blocks on a GPU that is described so."""
    made = MadeTrace(folder, GPU)

    def body() -> None:
        made.op("aten::mm", 5, lambda: made.launch(500, grid="[2, 1, 1]"))
        made.wait()

    made.steps(4, body)
    return made.open(metadata={"deviceProperties": text})


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ('[{"numSms": 132}, {"numSms": 80}]', 80),
        ('[{"numSms": 0}, {"numSms": 132}, {"id": 2}, 7]', 132),
        ('[{"numSms": "132"}]', None),
        ('[{"numSms": true}]', None),
        ("[]", None),
        ("5", None),
        ("null", None),
        ('{"numSms": 132}', None),
        ("[[", None),
        ("[" * 100_000, None),
    ],
)
def test_the_smallest_device_counts_and_other_values_do_not(
    tmp_path: Path, text: str, number: int | None
) -> None:
    profile = described(tmp_path, text)
    assert smallest(profile.traces[0], "numSms") == number
    codes = {finding.code for finding in explain_profile(profile).findings}
    assert ("DE01" in codes) == (number is not None)


def test_each_key_by_itself(tmp_path: Path) -> None:
    text = json.dumps([{"numSms": 132, "totalGlobalMem": 80 << 30}, {"totalGlobalMem": 16 << 30}])
    trace = described(tmp_path, text).traces[0]
    assert (smallest(trace, "numSms"), smallest(trace, "totalGlobalMem")) == (132, 16 << 30)
