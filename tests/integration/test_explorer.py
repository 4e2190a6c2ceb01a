"""The Explorer in a real browser: what it shows equals what the command line prints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.explorer_browser import CHROMIUM, CHROMIUM_ARGS, opened, require_browser
from tests.unit.chrome_json import complete, kernel, write

sync_api = pytest.importorskip("playwright.sync_api")
expect = sync_api.expect
# A machine that runs other tests meanwhile is slow; nothing here waits longer than it must.
expect.set_options(timeout=30_000)

pytestmark = pytest.mark.slow

REPO = Path(__file__).resolve().parents[2]
CUDA = "traces/HTA/tests/data/nccl_parser_config/nccl_data.json.gz"
HOSTILE = '<img src=x onerror="document.title=1">\u202e"\'</script>'


@pytest.fixture(scope="module")
def browser():
    require_browser()
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGS)
        yield started
        started.close()


@pytest.fixture
def page(browser):
    """A page that fails the test for any error, refused resource or request elsewhere."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page = context.new_page()
    troubles: list[str] = []
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("console", lambda text: troubles.append(text.text) if text.type == "error" else None)
    page.on(
        "request",
        lambda request: (
            None
            if request.url.startswith(("http://127.0.0.1:", "data:"))
            else troubles.append(request.url)
        ),
    )
    yield page
    context.close()
    assert troubles == []


@pytest.fixture(scope="module")
def cuda(shared) -> Path:
    path: Path = shared / CUDA
    return path


@pytest.fixture(scope="module")
def cuda_url(cuda):
    require_browser()
    with opened(cuda) as url:
        yield url


def printed(*args: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "trnscope", *args, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def printed_text(*args: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "trnscope", *args], capture_output=True, text=True, check=True
    ).stdout


def search(page, text: str) -> None:
    """Search as a user does, and wait for the count."""
    page.keyboard.press("/")
    page.keyboard.type(text)
    expect(page.locator(".search-count")).not_to_have_text("")


def table_rows(page) -> list[list[str]]:
    """The text of each body row of the table on the page."""
    rows: list[list[str]] = page.evaluate(
        """() => [...document.querySelectorAll('.table-view tbody tr:not(.spacer)')].map(
            (row) => [...row.children].map((cell) => cell.textContent.trim()))"""
    )
    return rows


def test_the_overview_says_what_the_command_line_says(page, cuda, cuda_url):
    page.goto(cuda_url)
    sentence = page.locator("h1.sentence")
    expect(sentence).to_be_visible()
    said = " ".join(printed_text("summary", str(cuda)).split())
    assert " ".join(sentence.inner_text().split()) in said
    assert "token" not in page.url
    breakdown = printed("breakdown", str(cuda))
    bars = page.locator(".bars .bar")
    expect(bars).to_have_count(len(breakdown["rows"]))
    label = bars.first.get_attribute("aria-label")
    row = breakdown["rows"][0]
    assert label.startswith(f"{row['name']}, {row['duration_ns'] / 1e6:.3f} ms: ")
    assert f"compute {row['compute_ns'] / 1e6:.3f} ms" in label
    (device,) = printed("summary", str(cuda))["devices"]
    busy = device["busy_ns"] / (device["busy_ns"] + device["idle_ns"])
    expect(page.locator(".device h3 strong")).to_have_text(f"{busy * 100:.1f} % busy")
    expect(page.locator(".device dd").first).to_have_text(f"{device['busy_ns'] / 1e6:.3f} ms")


def test_the_causes_are_the_doctors_and_lead_to_their_evidence(page, cuda, cuda_url):
    document = printed("explain", str(cuda))
    finding = document["findings"][0]
    page.goto(cuda_url)
    card = page.locator(".causes")
    expect(card.locator(".verdict")).to_have_text(document["verdict"])
    expect(card.locator("ol > li")).to_have_count(len(document["findings"]))
    low, likely, high = (f"{ns / 1e6:.3f} ms" for ns in finding["recoverable_ns_per_step"])
    first = card.locator("ol > li").first
    for text in (finding["title"], likely, low, high, *finding["try"], finding["confidence"]):
        expect(first).to_contain_text(text)
    first.get_by_role("button", name="Show on the timeline").click()
    chosen = page.get_by_label("Finding to mark")
    expect(chosen).to_have_value("0")
    page.wait_for_url(re.compile("finding=1"))
    chosen.select_option("")
    page.wait_for_url(re.compile("^(?!.*finding=)"))


def test_a_step_leads_to_its_place_on_the_timeline(page, cuda, cuda_url):
    page.goto(cuda_url)
    page.locator(".bars .bar").nth(1).click()
    expect(page.locator(".timeline")).to_be_visible()
    step = printed("steps", str(cuda))["steps"][1]
    page.wait_for_url(re.compile(r"#timeline\?at="))
    start, end = map(int, re.search(r"at=(-?\d+)_(\d+)", page.url).groups())
    assert end - start == pytest.approx(step["duration_ns"] * 1.1, rel=1e-3)


def test_an_op_is_found_and_followed_to_the_device(page, cuda_url):
    page.goto(cuda_url)
    expect(page.locator("h1.sentence")).to_be_visible()
    search(page, "aten::addmm")
    expect(page.locator(".search-count")).to_have_text("3")
    page.keyboard.press("Enter")
    panel = page.locator(".details")
    expect(panel.locator("h2")).to_have_text("aten::addmm")
    expect(panel.locator("dl")).to_contain_text("136.713 µs")
    launched = panel.get_by_role("button", name=re.compile("^ampere_sgemm"))
    launched.click()
    expect(panel.locator("h2")).to_contain_text("ampere_sgemm_32x32_sliced1x4_tn")
    expect(panel.locator("dl")).to_contain_text("stream 7")
    panel.get_by_role("button", name="cudaLaunchKernel").first.click()
    expect(panel.locator("h2")).to_have_text("cudaLaunchKernel")
    panel.get_by_role("button", name="aten::addmm").first.click()
    expect(panel.locator("h2")).to_have_text("aten::addmm")
    page.locator("main").focus()
    page.keyboard.press("]")
    expect(panel.locator("h2")).not_to_have_text("aten::addmm")
    page.keyboard.press("[")
    expect(panel.locator("h2")).to_have_text("aten::addmm")
    page.keyboard.press("Escape")
    expect(panel).to_have_count(0)


def test_the_numbers_of_the_whole_range_are_those_of_the_tables(page, cuda, cuda_url):
    length = printed("summary", str(cuda))["span_ns"]
    page.goto(cuda_url)
    expect(page.locator("h1.sentence")).to_be_visible()
    page.goto(f"{page.url.split('#')[0]}#timeline?range=0_{length}")
    panel = page.locator(".panel.range")
    expect(panel.locator("tbody tr").first).to_be_visible()
    kernels = printed("kernels", str(cuda))
    top = kernels["kernels"][0]
    cells = panel.locator("tbody tr").first.locator("td").all_inner_texts()
    assert cells == [top["kind"], f"{top['count']:,}", f"{top['sum_ns'] / 1e6:.3f} ms"]
    device = panel.locator(".range-devices li")
    expect(device).to_contain_text(f"busy {kernels['busy_ns'] / 1e6:.3f} ms")


def test_a_range_is_dragged_and_counted(page, cuda_url):
    page.goto(cuda_url)
    page.get_by_role("button", name="Timeline", exact=True).click()
    pane = page.locator(".pane")
    expect(page.locator(".legend")).to_contain_text("kernel")
    box = pane.bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 300)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 310, steps=5)
    page.mouse.up()
    panel = page.locator(".panel.range")
    page.wait_for_timeout(500)
    start, end = map(int, re.search(r"range=(\d+)_(\d+)", page.url).groups())
    # 300 of the pane's pixels, of the profile and a hundredth on both sides.
    assert end - start == pytest.approx(684_372_939 * 1.02 * 300 / box["width"], rel=0.01)
    expect(panel.locator("h2")).to_contain_text(f"Range of {(end - start) / 1e6:.3f} ms")
    expect(panel.locator("tbody tr").first).to_be_visible()
    expect(panel.locator(".range-devices")).to_contain_text("busy")


def test_the_keyboard_moves_zooms_marks_and_fits(page, cuda_url):
    page.goto(cuda_url)
    expect(page.locator("h1.sentence")).to_be_visible()
    page.keyboard.press("2")
    expect(page.locator(".legend")).to_contain_text("kernel")

    def shown() -> tuple[int, int]:
        page.wait_for_timeout(350)
        found = re.search(r"at=(-?\d+)_(\d+)", page.url)
        assert found is not None
        return int(found[1]), int(found[2])

    whole = shown()
    page.keyboard.press("w")
    near = shown()
    assert near[1] - near[0] == pytest.approx(0.7 * (whole[1] - whole[0]), rel=1e-3)
    page.keyboard.press("d")
    right = shown()
    assert right[0] > near[0] and right[1] - right[0] == pytest.approx(near[1] - near[0], abs=2)
    page.keyboard.press("ArrowLeft")
    assert shown() == pytest.approx(near, abs=2)
    page.keyboard.press("m")
    page.wait_for_url(re.compile("marks="))
    page.keyboard.press("f")
    assert shown() == whole
    page.keyboard.press("r")
    expect(page.locator(".panel.range h2")).to_contain_text("684.373 ms")


def test_the_ops_table_is_the_command_lines(page, cuda, cuda_url):
    page.goto(cuda_url)
    page.get_by_role("button", name="Ops", exact=True).click()
    ops = printed("ops", str(cuda))["ops"]
    expect(page.locator(".table-view tbody tr").first).to_be_visible()
    rows = table_rows(page)
    for row, op in zip(rows[:10], ops[:10], strict=True):
        assert row[0] == op["name"]
        assert row[1] == f"{op['calls']:,}"
        assert row[5] == f"{op['self_device_ns'] / 1e6:.3f} ms"
    page.get_by_role("button", name="calls").click()
    most = max(ops, key=lambda op: op["calls"])
    expect(page.locator(".table-view tbody tr").first.locator("td").first).to_have_text(
        f"{most['calls']:,}"
    )
    page.get_by_label("Filter rows").fill("conv backward")
    names = [row[0] for row in table_rows(page)]
    assert names == [
        op["name"]
        for op in sorted(ops, key=lambda op: -op["calls"])
        if "conv" in op["name"].lower() and "backward" in op["name"].lower()
    ]


def test_a_grouping_that_was_not_recorded_says_so(browser, cuda_url):
    context = browser.new_context()
    page = context.new_page()
    page.goto(cuda_url)
    page.get_by_role("button", name="Ops", exact=True).click()
    page.get_by_label("Group rows by").select_option("module")
    expect(page.get_by_role("alert")).to_contain_text("no modules were recorded")
    page.get_by_label("Group rows by").select_option("name")
    expect(page.locator(".table-view tbody tr").first).to_be_visible()
    context.close()


def test_the_kernels_table_is_the_command_lines(page, cuda, cuda_url):
    page.goto(cuda_url)
    page.get_by_role("button", name="Kernels", exact=True).click()
    kernels = printed("kernels", str(cuda))["kernels"]
    expect(page.locator(".table-view tbody tr").first).to_be_visible()
    rows = table_rows(page)
    for row, found in zip(rows[:10], kernels[:10], strict=True):
        assert row[1] == found["kind"]
        assert row[2] == f"{found['count']:,}"
        assert row[3] == f"{found['sum_ns'] / 1e6:.3f} ms"
    assert len(rows) < len(kernels)
    page.locator(".table-view .scroll").evaluate("(box) => box.scrollTo(0, box.scrollHeight)")
    expect(
        page.locator(".table-view tbody tr:not(.spacer)").last.locator("td").nth(1)
    ).to_have_text(f"{kernels[-1]['count']:,}")
    page.get_by_label("Group rows by").select_option("stream")
    expect(page.locator(".table-view tbody th").first).to_contain_text("stream")


def test_a_bad_token_gets_a_page_that_says_what_to_do(browser, cuda_url):
    context = browser.new_context()
    page = context.new_page()
    answer = page.goto(re.sub(r"token=.*", "token=wrong", cuda_url))
    assert answer.status == 403
    expect(page.locator("h1")).to_contain_text("needs the token")
    context.close()


@pytest.fixture(scope="module")
def cpu_trace(tmp_path_factory):
    """A real CPU trace, recorded by torch here."""
    torch = pytest.importorskip("torch")
    path = tmp_path_factory.mktemp("cpu") / "cpu.json"
    with torch.profiler.profile(record_shapes=True) as profiler:
        for _ in range(3):
            with torch.profiler.record_function("forward"):
                torch.nn.functional.relu(torch.ones(32, 32) @ torch.ones(32, 32)).sum()
            profiler.step()
    profiler.export_chrome_trace(str(path))
    return path


def test_a_cpu_trace_shows_host_time_and_no_device_columns(page, browser, cpu_trace):
    with opened(cpu_trace) as url:
        page.goto(url)
        expect(page.locator("h1.sentence")).to_be_visible()
        expect(page.locator(".card", has_text="all work spans")).to_contain_text("not recorded")
        page.keyboard.press("3")
        expect(page.locator(".table-view tbody tr").first).to_be_visible()
        ops = printed("ops", str(cpu_trace))["ops"]
        assert {row[0] for row in table_rows(page)} == {op["name"] for op in ops}
        assert "self device" not in page.locator(".table-view thead").inner_text()
        page.get_by_label("Group rows by").select_option("shape")
        expect(page.locator(".table-view tbody")).to_contain_text("[[32,32],[32,32]]")
        page.get_by_role("button", name="Kernels", exact=True).click()
        expect(page.locator("main")).to_contain_text("No device work was recorded")


def test_hostile_names_stay_text(page, browser, tmp_path):
    events = [
        complete(HOSTILE, "cpu_op", 0, 50, args={HOSTILE: HOSTILE}),
        complete("x" * 10_000, "cpu_op", 60, 40),
        kernel(HOSTILE, 20, 30),
    ]
    trace = write(tmp_path / "t.json", events)
    with opened(trace) as url:
        page.goto(url)
        expect(page.locator(".top-ops")).to_contain_text("<img src=x onerror=")
        search(page, "<img")
        page.keyboard.press("Enter")
        panel = page.locator(".details")
        expect(panel.locator("h2")).to_contain_text("<img src=x")
        assert "\u202e" not in page.locator("body").inner_text()
        assert "\\u202e" in panel.inner_text()
        page.get_by_role("button", name="Ops", exact=True).click()
        expect(page.locator(".table-view tbody tr")).to_have_count(2)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 1280
        assert page.title() == "trnscope"


def test_ten_thousand_tracks_stay_usable(page, browser, tmp_path):
    events = [
        complete(f"op{i % 7}", "cpu_op", i % 1000, 5, pid=1 + i % 10, tid=i) for i in range(10_000)
    ]
    trace = write(tmp_path / "many.json", events)
    with opened(trace) as url:
        page.goto(url)
        expect(page.locator("h1.sentence")).to_be_visible()
        page.keyboard.press("2")
        expect(page.locator(".corner")).to_have_text("10,000 tracks")
        expect(page.locator(".legend")).to_contain_text("op")
        assert page.locator(".label").count() < 100
        page.locator(".tracks").evaluate("(box) => box.scrollTo(0, box.scrollHeight)")
        expect(page.locator(".label").last).to_contain_text("thread")
        # The doctor may still be at work: stopping the server does not wait for it.
        page.close()


def test_an_incomplete_and_a_simulated_profile_say_so(page, browser, tmp_path):
    header = {"trnscopeSimulation": {"model": "trn2 model v1"}}
    trace = write(
        tmp_path / "s.json", [complete("a", "cpu_op", 0, 50), kernel("k", 5, 9)], **header
    )
    trace.write_text(trace.read_text()[:-2])
    with opened(trace) as url:
        page.goto(url)
        expect(page.locator(".banner.simulated")).to_contain_text("trn2 model v1")
        expect(page.locator(".banner.incomplete")).to_contain_text("s.json")
        page.keyboard.press("4")
        expect(page.locator(".banner.simulated")).to_be_visible()


def test_everything_can_be_reached_and_named_without_a_mouse(page, cuda_url):
    page.goto(cuda_url)
    expect(page.locator(".bars .bar").first).to_be_visible()
    for view in "1234567":
        page.locator("main").focus()
        page.keyboard.press(view)
        page.wait_for_timeout(300)
        nameless = page.evaluate(
            """() => [...document.querySelectorAll('button, input, select, a, [tabindex="0"]')]
                .filter((one) => one.checkVisibility())
                .filter((one) => !(one.ariaLabel || one.textContent.trim()
                    || one.labels?.length || one.getAttribute('aria-labelledby')))
                .map((one) => one.outerHTML.slice(0, 120))"""
        )
        assert nameless == []
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("zoom in, zoom out")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_serious_fault(browser, cuda_url, theme):
    script = REPO / "explorer" / "node_modules" / "axe-core" / "axe.min.js"
    if not script.is_file():
        pytest.skip("needs axe-core, which make install brings where Node.js is")
    context = browser.new_context(
        viewport={"width": 1280, "height": 800},
        bypass_csp=True,
        color_scheme=theme,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.goto(cuda_url)
    expect(page.locator(".top-ops button").first).to_be_visible()
    page.add_script_tag(path=script)
    for view in "1234567":
        page.locator("main").focus()
        page.keyboard.press(view)
        page.wait_for_timeout(300)
        if view == "2":
            search(page, "aten::addmm")
            page.keyboard.press("Enter")
            expect(page.locator(".details dl")).to_be_visible()
            page.locator("main").focus()
            page.keyboard.press("r")
            expect(page.locator(".panel.range tbody tr").first).to_be_visible()
        faults = page.evaluate("() => axe.run().then((found) => found.violations)")
        assert [
            (fault["id"], fault["nodes"][0]["html"], fault["nodes"][0]["failureSummary"])
            for fault in faults
            if fault["impact"] in ("serious", "critical")
        ] == []
    context.close()


def test_what_is_selected_is_scrolled_into_sight(browser, cuda_url):
    context = browser.new_context(viewport={"width": 1024, "height": 700}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(cuda_url)
    page.get_by_role("button", name="Timeline", exact=True).click()
    expect(page.locator(".legend")).to_contain_text("kernel")
    tracks = page.locator(".tracks")
    process = page.locator(".label.group button", has_text="python3.10")
    process.click()
    expect(process).to_have_attribute("aria-expanded", "false")
    expect(page.locator(".label", has_text="pt_main_thread")).to_have_count(0)
    search(page, "aten::addmm")
    page.keyboard.press("Enter")
    expect(page.locator(".details dl")).to_be_visible()
    expect(page.locator(".label", has_text="pt_main_thread")).to_be_visible()
    page.wait_for_timeout(400)
    assert tracks.evaluate("(box) => box.scrollTop") > 0
    context.close()


@pytest.mark.parametrize("width", [1024, 1920])
def test_the_layout_fits(browser, cuda_url, width):
    context = browser.new_context(viewport={"width": width, "height": 700})
    page = context.new_page()
    page.goto(cuda_url)
    expect(page.locator("h1.sentence")).to_be_visible()
    for view in "1234567":
        page.keyboard.press(view)
        page.wait_for_timeout(200)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        right = page.locator(".top .icon").last.bounding_box()
        assert right["x"] + right["width"] <= width
    context.close()


def test_the_theme_is_chosen_and_kept(page, cuda_url):
    page.goto(cuda_url)
    page.get_by_label("Use dark colours").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_label("Use light colours").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_memory_is_that_of_the_command_line(page):
    small = REPO / "docs" / "examples" / "small.json"
    (device,) = printed("memory", str(small))["devices"]
    with opened(small) as url:
        page.goto(url + "#memory")
        figures = page.locator(".figures")
        expect(figures).to_contain_text(f"peakat least {device['peak_bytes'] / 2**20:.2f} MiB")
        expect(figures).to_contain_text("peak reached inaten::mm")
        plot = page.locator(".picture svg")
        expect(plot).to_have_attribute("aria-label", re.compile("up to 7.00 MiB"))
        rows = table_rows(page)
    held = {op["name"]: op["held_at_peak_bytes"] for op in device["ops"]}
    assert [row[0] for row in rows] == sorted(held, key=lambda name: -held[name])
    assert rows[0][1] == f"{held[rows[0][0]] / 2**20:.2f} MiB"


def test_the_roofline_is_that_of_the_command_line(page, tmp_path):
    text = (REPO / "docs" / "examples" / "small.json").read_text("utf-8")
    text = text.replace("example GPU", "NVIDIA H100 80GB HBM3")
    trace = tmp_path / "h100.json"
    trace.write_text(text.replace('"Input Dims"', '"Input type": ["float", "float"], "Input Dims"'))
    document = printed("roofline", str(trace))
    placed = [op for op in document["ops"] if op["arithmetic_intensity"] and op["flops_per_s"]]
    assert placed and document["mbu_device"] is not None
    with opened(trace) as url:
        page.goto(url + "#roofline")
        dots = page.locator(".picture.roofline circle")
        expect(dots).to_have_count(len(placed))
        rate = placed[0]["flops_per_s"] / 1e9
        expect(dots.first.locator("title")).to_contain_text(
            f"{placed[0]['name']}: {placed[0]['time_ns'] / 1e6:.3f} ms, {rate:.3g} GFLOP/s"
        )
        expect(page.locator(".roof-name")).to_contain_text("float32")
        figures = page.locator(".figures")
        expect(figures).to_contain_text(
            f"memory bandwidth usedat least {document['mbu_device'] * 100:.1f} %"
        )
        rows = table_rows(page)
    top = max(document["ops"], key=lambda op: op["time_ns"])
    assert rows[0][0].startswith(top["name"])
    assert rows[0][3] == f"{top['time_ns'] / 1e6:.3f} ms"


def test_a_query_is_answered_kept_and_saved(page, cuda, cuda_url, tmp_path):
    query = "SELECT name, count(*) AS n, max(start_ns) AS at FROM kernels GROUP BY 1 ORDER BY 2, 1"
    page.goto(cuda_url + "#sql")
    page.get_by_label("Query", exact=True).fill(query)
    page.keyboard.press("Control+Enter")
    expect(page.locator(".table-view tbody tr").first).to_be_visible()
    rows = printed("sql", str(cuda), query)["rows"]
    shown = table_rows(page)
    # Each digit of a time since 1970 is there; names that are long are cut in the middle.
    assert [row[1:] for row in shown] == [[str(n), str(at)] for _, n, at in rows[: len(shown)]]
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    target = tmp_path / download.value.suggested_filename
    download.value.save_as(target)
    lines = target.read_text("utf-8").splitlines()
    assert target.name == "rows-of-the-query.csv"
    assert lines[0] == "name,n,at" and len(lines) == len(rows) + 1
    page.get_by_label("Name to keep the query under").fill("by count")
    page.get_by_role("button", name="Keep").click()
    page.reload()
    queries = page.get_by_label("Queries")
    expect(queries.locator("option").nth(1)).to_have_text("by count")
    queries.select_option("0")
    expect(page.get_by_label("Query", exact=True)).to_have_value(query)


def test_a_refused_query_says_why(browser, cuda_url):
    context = browser.new_context()
    page = context.new_page()
    page.goto(cuda_url + "#sql")
    page.get_by_label("Query", exact=True).fill("DROP TABLE ops")
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("alert")).to_contain_text("SELECT")
    expect(page.get_by_label("Query", exact=True)).to_have_value("DROP TABLE ops")
    context.close()


def test_a_report_opens_from_disk_and_asks_nobody(browser, cuda, tmp_path):
    out = tmp_path / "report.html"
    subprocess.run(
        [sys.executable, "-m", "trnscope", "report", str(cuda), "--out", str(out), "--redact"],
        check=True,
    )
    assert out.stat().st_size <= 5_000_000
    context = browser.new_context(viewport={"width": 1280, "height": 800}, offline=True)
    page = context.new_page()
    asked, troubles = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda text: troubles.append(text.text))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.goto(out.as_uri())
    expect(page.locator("h1.sentence")).to_be_visible()
    said = " ".join(printed_text("summary", str(cuda)).split())
    assert " ".join(page.locator("h1.sentence").inner_text().split()) in said
    document = printed("explain", str(cuda))
    expect(page.locator(".verdict")).to_have_text(document["verdict"])
    expect(page.locator(".banner.report")).to_contain_text("Folders and names")
    views = page.get_by_label("Views").get_by_role("button")
    assert views.all_inner_texts() == ["Overview", "Ops", "Kernels", "Memory", "Roofline"]
    views.nth(2).click()
    kernels = printed("kernels", str(cuda))["kernels"]
    top = max(kernels, key=lambda row: row["sum_ns"])
    assert top["name"][:20] in table_rows(page)[0][0]
    assert str(cuda.parent) not in page.content()
    context.close()
    assert [url for url in asked if url != out.as_uri() and not url.startswith("data:")] == []
    assert troubles == []
