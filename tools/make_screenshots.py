"""Draws the pictures of docs/howto/open-the-explorer.md from real runs, in a browser.

Needs Debian's chromium (or another one named by CHROMIUM) and the built page.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

import trnscope
from tools.make_docs import DOCS, REPO
from trnscope.demo import run_demo
from trnscope.server.serve import listen, serve

LLAMA = REPO / "examples" / "llama" / "train.py"
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


def memory(page: Page) -> None:
    """Memory over time."""
    page.keyboard.press("5")
    page.wait_for_selector(".picture path")


def roofline(page: Page) -> None:
    """The ops under the ceilings of the chip."""
    page.keyboard.press("6")
    page.wait_for_selector(".picture circle")


def sql(page: Page) -> None:
    """The first query, answered."""
    page.keyboard.press("7")
    page.get_by_role("button", name="Run").click()
    page.wait_for_selector("tbody tr")
    page.locator("main").focus()


Shots = dict[str, Callable[[Page], None]]
OF_THE_DEMO: Shots = {
    "explorer-overview.png": overview,
    "explorer-finding.png": finding,
    "explorer-timeline.png": timeline,
    "explorer-ops.png": ops,
}
OF_A_SIMULATED_RUN: Shots = {
    "explorer-memory.png": memory,
    "explorer-roofline.png": roofline,
    "explorer-sql.png": sql,
}


def draw(url: str, shots: Shots) -> None:
    """Every picture, one after the other in one page."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=os.environ.get("CHROMIUM", "/usr/bin/chromium"), args=CHROMIUM_ARGS
        )
        page = browser.new_page(viewport=SIZE, color_scheme="light", reduced_motion="reduce")
        page.goto(url)
        page.wait_for_selector(".parts")
        for name, prepare in shots.items():
            prepare(page)
            page.wait_for_timeout(500)
            page.screenshot(path=IMAGES / name)
            size = (IMAGES / name).stat().st_size
            print(f"{name}: {size:,} bytes")
            if size > MAX_BYTES:
                raise SystemExit(f"{name} is larger than {MAX_BYTES:,} bytes")
        browser.close()


def show(folder: Path, shots: Shots) -> None:
    """Serve what was recorded into a folder, and draw."""
    listening = listen(0)
    ready = threading.Event()
    args = (trnscope.open(folder), listening, ready.set)
    threading.Thread(target=serve, args=args, daemon=True).start()
    ready.wait()
    draw(listening.url, shots)


def main() -> None:
    """Record the demo and a small Llama on a simulated Trainium, and draw both."""
    with tempfile.TemporaryDirectory() as folder:
        demo, llama = Path(folder, "demo"), Path(folder, "llama")
        run_demo(demo)
        show(demo, OF_THE_DEMO)
        command = [sys.executable, "-m", "trnscope", "run", "--device", "sim:trn2", "--shapes"]
        command += ["--memory", "--out", str(llama), str(LLAMA), "--device", "neuron"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        show(llama, OF_A_SIMULATED_RUN)


if __name__ == "__main__":
    main()
