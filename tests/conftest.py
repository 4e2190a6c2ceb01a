"""Fixtures that every test may use."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from trnscope.store.cache import cache_directory

REPO = Path(__file__).resolve().parents[1]
SHARED = REPO.parent / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of sample traces and cases beside the checkout; skips where it is absent."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the sample traces in {SHARED}, which is not there")
    return SHARED


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the indices that tests build out of the user's own cache.

    The compiled simulated device stays there: it takes minutes to make, and is kept by content.
    """
    device = cache_directory() / "device"
    device.mkdir(parents=True, exist_ok=True)
    own = tmp_path_factory.mktemp("cache")
    (own / "device").symlink_to(device)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRNSCOPE_CACHE_DIR", str(own))
        yield


def pytest_configure() -> None:
    """Undo what a runner leaves in its processes: a terminal's width, and a Ctrl-C ignored.

    pytest-xdist sets the width; a shell ignores Ctrl-C in what it starts in the background.
    """
    os.environ.pop("COLUMNS", None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
