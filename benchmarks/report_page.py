"""Measure the HTML report of 100,000 rows in a browser: load time, and the time until zooming and panning are visible.

    python benchmarks/report_page.py                # 100,000 rows with names and texts, on a desktop and on a phone
    python benchmarks/report_page.py --rows 1000 --repeats 3

The load time ends when the first frame is painted, and the time of a movement when the next frame is; each figure
therefore includes the browser's 16 ms per frame. The phone is emulated by a screen of 390 by 844 CSS pixels
with two pixels per CSS pixel and a processor slowed down four times. Needs playwright and a Chromium on the path.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import OUT, machine_info, markdown_table, parse_arguments
from playwright.sync_api import Browser, Page, sync_playwright
from sklearn.base import BaseEstimator

from fiedler.report import summarize, write_report

N_CLUSTERS, N_WORDS, N_MOVES = 25, 12, 20
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
SCREENS = {  # options of the browser context, CPU slowdown
    "desktop": ({"viewport": {"width": 1280, "height": 900}}, 1),
    "phone": (
        {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True},
        4,
    ),
}
WAIT_FOR_PAINT = "await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));"
ZOOM = """async ([moves, deltaY]) => {
    const canvas = document.getElementById("canvas"), box = canvas.getBoundingClientRect(), durations = [];
    const wheel = { deltaY, ctrlKey: true, clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 };
    for (let i = 0; i < moves; i++) {
        const start = performance.now();
        canvas.dispatchEvent(new WheelEvent("wheel", { ...wheel, cancelable: true }));
        await new Promise((done) => requestAnimationFrame(done));
        durations.push(performance.now() - start);
    }
    return durations;
}"""
PAN = """async (moves) => {
    const canvas = document.getElementById("canvas"), durations = [];
    for (let i = 0; i < moves; i++) {
        const start = performance.now();
        canvas.dispatchEvent(new KeyboardEvent("keydown", { key: i % 2 ? "ArrowLeft" : "ArrowRight" }));
        await new Promise((done) => requestAnimationFrame(done));
        durations.push(performance.now() - start);
    }
    return durations;
}"""
SEARCH = """async (words) => {
    const field = document.getElementById("search"), start = performance.now();
    field.value = words;
    field.dispatchEvent(new Event("input"));
    while (!document.querySelector("#results button")) await new Promise((done) => requestAnimationFrame(done));
    return performance.now() - start;
}"""
DRAW_TIMES = """() => performance.getEntriesByName("draw").map((entry) => entry.duration)"""


class FittedClusterer(BaseEstimator):
    """A clusterer whose fitted attributes are set by hand."""

    def fit(self, X):
        """Return the estimator unchanged."""
        return self


def write_page(n: int, folder: Path) -> Path:
    """Write the report of n rows from a Gaussian mixture, each with a name, a text and memberships."""
    rng = np.random.RandomState(0)
    centers = 6 * rng.normal(size=(N_CLUSTERS, 2))
    X = centers[rng.randint(N_CLUSTERS, size=n)] + rng.normal(size=(n, 2))
    log_joint = -((X[:, None] - centers) ** 2).sum(axis=2) / 2
    Q = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    model = FittedClusterer()
    model.memberships_ = Q / Q.sum(axis=1, keepdims=True)
    model.labels_ = Q.argmax(axis=1)
    texts = [" ".join(f"word{word}" for word in row) for row in rng.randint(500, size=(n, N_WORDS))]
    summary = summarize(model, X, ids=[f"folder/row-{i:06}.txt" for i in range(n)], texts=texts, title=f"{n:,} rows")
    return write_report(summary, folder / "page.html")


def visit(browser: Browser, path: Path, screen: str) -> dict[str, float]:
    """Open the page once and time loading, zooming, panning and searching."""
    options, cpu_slowdown = SCREENS[screen]
    context = browser.new_context(offline=True, **options)
    page = context.new_page()
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": cpu_slowdown})
    start = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.evaluate(f"async () => {{ {WAIT_FOR_PAINT} }}")
    load_seconds = time.perf_counter() - start
    times = {"load_s": load_seconds, **time_interactions(page)}
    context.close()
    return times


def time_interactions(page: Page) -> dict[str, float]:
    zoom = page.evaluate(ZOOM, [N_MOVES, -20]) + page.evaluate(ZOOM, [N_MOVES, 20])
    pan = page.evaluate(PAN, N_MOVES)
    draw = page.evaluate(DRAW_TIMES)
    return {
        "zoom_ms": statistics.median(zoom),
        "zoom_worst_ms": max(zoom),
        "pan_ms": statistics.median(pan),
        "pan_worst_ms": max(pan),
        "draw_ms": statistics.median(draw),
        "search_ms": page.evaluate(SEARCH, "word123"),
    }


def main() -> None:
    options = parse_arguments(rows={"type": int, "default": 100_000}, repeats={"type": int, "default": 5})
    binary = next(filter(None, map(shutil.which, BROWSERS)), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        start = time.perf_counter()
        path = write_page(options.rows, Path(folder))
        write_seconds, size = time.perf_counter() - start, path.stat().st_size / 1e6
        browser = driver.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        rows = []
        for screen in SCREENS:
            visits = [visit(browser, path, screen) for _ in range(options.repeats)]
            medians = {key: statistics.median(times[key] for times in visits) for key in visits[0]}
            rows.append({"screen": screen} | medians)
        version = browser.version
        browser.close()
    title = f"HTML report of {options.rows:,} rows: {size:.1f} MB, written in {write_seconds:.1f} s"
    text = f"### {title}\n\n{machine_info()}, Chromium {version}\n\n{markdown_table(rows)}\n"
    print(text)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "report_page.md").write_text(text)


if __name__ == "__main__":
    main()
