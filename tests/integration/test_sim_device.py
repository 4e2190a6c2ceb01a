"""The simulated device: tensors, training, streams, memory and virtual time."""

from __future__ import annotations

import pytest

from tests.integration.sim_checks import has_compiler, names_of, results_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not has_compiler(), reason="no C++ compiler for the simulated device"),
]
MODULES = ("training", "tensors", "virtual_time", "compiled", "ranks")
CASES = [(module, name) for module in MODULES for name in names_of(module)]


@pytest.mark.parametrize(("module", "check"), CASES)
def test_device(module: str, check: str) -> None:
    failure = results_of(module)[check]
    assert failure is None, failure
