"""How many workers a recorded process has."""

from __future__ import annotations

import multiprocessing
import time

import pytest

pytest.importorskip("torch")

from trnscope.capture.session import _num_workers


def test_workers_are_children_that_end_with_the_process() -> None:
    spawn = multiprocessing.get_context("spawn")
    worker = spawn.Process(target=time.sleep, args=(60,), daemon=True)
    other = spawn.Process(target=time.sleep, args=(60,), daemon=False)
    before = _num_workers()
    worker.start()
    other.start()
    try:
        assert _num_workers() == before + 1
    finally:
        for process in (worker, other):
            process.kill()
            process.join()
    assert _num_workers() == before
