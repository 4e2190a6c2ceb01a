"""Draws the pictures of docs/howto/open-the-explorer.md from a run of the demo, in a browser.

Needs Debian's chromium (or another one named by CHROMIUM) and the built page.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

import trnscope
from tools.make_docs import DOCS
from trnscope.demo import run_demo
from trnscope.server.serve import listen, serve

IMAGES = DOCS / "images"
SIZE = {"width": 1180, "height": 720}
MAX_BYTES = 200_000
CHROMIUM_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def overview(page: Page) -> None:
    """The first page, as it opens."""
    page.wait_for_selector(".parts")
    page.wait_for_selector(".verdict")


def finding(page: Page) -> None:
    """The first cause, marked on the timeline."""
    page.get_by_role("button", name="Show on the timeline").first.click()
    page.wait_for_selector(".legend li")


def timeline(page: Page) -> None:
    """A matrix product with what it is inside of."""
    page.get_by_label("Finding to mark").select_option("")
    page.keyboard.press("/")
    page.keyboard.type("aten::addmm")
    page.wait_for_selector(".search-count:not(:empty)")
    page.keyboard.press("Enter")
    page.wait_for_selector(".details dl")
    page.get_by_label("Search slices by name").fill("")
    page.locator("main").focus()


def ops(page: Page) -> None:
    """The table of ops."""
    page.keyboard.press("Escape")
    page.keyboard.press("3")
    page.wait_for_selector("tbody tr")


SHOTS: dict[str, Callable[[Page], None]] = {
    "explorer-overview.png": overview,
    "explorer-finding.png": finding,
    "explorer-timeline.png": timeline,
    "explorer-ops.png": ops,
}


def draw(url: str) -> None:
    """Every picture, one after the other in one page."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=CHROMIUM_ARGS
        )
        page = browser.new_page(viewport=SIZE, color_scheme="light", reduced_motion="reduce")
        page.goto(url)
        for name, prepare in SHOTS.items():
            prepare(page)
            page.wait_for_timeout(500)
            page.screenshot(path=IMAGES / name)
            size = (IMAGES / name).stat().st_size
            print(f"{name}: {size:,} bytes")
            if size > MAX_BYTES:
                raise SystemExit(f"{name} is larger than {MAX_BYTES:,} bytes")
        browser.close()


def main() -> None:
    """Record the demo, or take the traces that are named, and draw."""
    with tempfile.TemporaryDirectory() as folder:
        traces = [Path(name) for name in sys.argv[1:]] or recorded(Path(folder))
        listening = listen(0)
        ready = threading.Event()
        args = (trnscope.open(*traces), listening, ready.set)
        threading.Thread(target=serve, args=args, daemon=True).start()
        ready.wait()
        draw(listening.url)


def recorded(folder: Path) -> list[Path]:
    """The demo's traces."""
    run_demo(folder)
    return sorted(folder.rglob("*.pt.trace.json*"))


if __name__ == "__main__":
    main()
