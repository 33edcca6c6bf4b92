"""The report of 100,000 rows in a browser: seconds until it can be used, milliseconds until a movement is seen.

    python benchmarks/report_page.py                # 100,000 rows with names and texts, on a desktop and on a phone
    python benchmarks/report_page.py --rows 1000 --repeats 3

A page counts as loaded when its first frame has been painted, and a movement as seen when the frame after it has; the
browser's own 16 milliseconds a frame are therefore part of every figure. The phone is a screen of 390 by 844 with two
pixels a CSS pixel and a processor slowed down four times. Needs playwright and a Chromium on the path.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import OUT, arguments, machine, markdown
from playwright.sync_api import Browser, Page, sync_playwright
from sklearn.base import BaseEstimator

from fiedler.report import summarize, write_report

K, WORDS, MOVES = 25, 12, 20
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
SCREENS = {
    "desktop": ({"viewport": {"width": 1280, "height": 900}}, 1),
    "phone": (
        {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True},
        4,
    ),
}
FRAME = "await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));"
MOVE = """async ([moves, deltaY]) => {
    const canvas = document.getElementById("canvas"), box = canvas.getBoundingClientRect(), seen = [];
    const turn = { deltaY, ctrlKey: true, clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 };
    for (let i = 0; i < moves; i++) {
        const start = performance.now();
        canvas.dispatchEvent(new WheelEvent("wheel", { ...turn, cancelable: true }));
        await new Promise((done) => requestAnimationFrame(done));
        seen.push(performance.now() - start);
    }
    return seen;
}"""
PAN = """async (moves) => {
    const canvas = document.getElementById("canvas"), seen = [];
    for (let i = 0; i < moves; i++) {
        const start = performance.now();
        canvas.dispatchEvent(new KeyboardEvent("keydown", { key: i % 2 ? "ArrowLeft" : "ArrowRight" }));
        await new Promise((done) => requestAnimationFrame(done));
        seen.push(performance.now() - start);
    }
    return seen;
}"""
SEARCH = """async (words) => {
    const field = document.getElementById("search"), start = performance.now();
    field.value = words;
    field.dispatchEvent(new Event("input"));
    while (!document.querySelector("#results button")) await new Promise((done) => requestAnimationFrame(done));
    return performance.now() - start;
}"""
DRAWN = """() => performance.getEntriesByName("draw").map((entry) => entry.duration)"""


class Blobs(BaseEstimator):
    """A clusterer after its fit, for a page needs no more."""

    def fit(self, X):
        """Nothing is left to do."""
        return self


def page_of(n: int, folder: Path) -> Path:
    """Rows around K centres, each with a name, a text and memberships that blur where clusters meet."""
    rng = np.random.RandomState(0)
    centres = 6 * rng.normal(size=(K, 2))
    X = centres[rng.randint(K, size=n)] + rng.normal(size=(n, 2))
    log_shares = -((X[:, None] - centres) ** 2).sum(axis=2) / 2
    Q = np.exp(log_shares - log_shares.max(axis=1, keepdims=True))
    model = Blobs()
    model.memberships_ = Q / Q.sum(axis=1, keepdims=True)
    model.labels_ = Q.argmax(axis=1)
    texts = [" ".join(f"word{word}" for word in row) for row in rng.randint(500, size=(n, WORDS))]
    summary = summarize(model, X, ids=[f"folder/row-{i:06}.txt" for i in range(n)], texts=texts, title=f"{n:,} rows")
    return write_report(summary, folder / "page.html")


def visit(browser: Browser, path: Path, screen: str) -> dict[str, float]:
    """One visit, from the address to the last search."""
    options, slower = SCREENS[screen]
    context = browser.new_context(offline=True, **options)
    page = context.new_page()
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": slower})
    start = time.perf_counter()
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]")
    page.evaluate(f"async () => {{ {FRAME} }}")
    loaded = time.perf_counter() - start
    found = {"load_s": loaded, **movements(page)}
    context.close()
    return found


def movements(page: Page) -> dict[str, float]:
    zoomed = page.evaluate(MOVE, [MOVES, -20]) + page.evaluate(MOVE, [MOVES, 20])
    moved = page.evaluate(PAN, MOVES)
    drawn = page.evaluate(DRAWN)
    return {
        "zoom_ms": statistics.median(zoomed),
        "zoom_worst_ms": max(zoomed),
        "pan_ms": statistics.median(moved),
        "pan_worst_ms": max(moved),
        "draw_ms": statistics.median(drawn),
        "search_ms": page.evaluate(SEARCH, "word123"),
    }


def main() -> None:
    options = arguments(rows={"type": int, "default": 100_000}, repeats={"type": int, "default": 5})
    binary = next(filter(None, map(shutil.which, BROWSERS)), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as driver:
        start = time.perf_counter()
        path = page_of(options.rows, Path(folder))
        made, size = time.perf_counter() - start, path.stat().st_size / 1e6
        browser = driver.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        rows = []
        for screen in SCREENS:
            visits = [visit(browser, path, screen) for _ in range(options.repeats)]
            rows.append({"screen": screen} | {key: statistics.median(one[key] for one in visits) for key in visits[0]})
        version = browser.version
        browser.close()
    title = f"The report of {options.rows:,} rows: {size:.1f} MB, made in {made:.1f} s"
    text = f"### {title}\n\n{machine()}, Chromium {version}\n\n{markdown(rows)}\n"
    print(text)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "report_page.md").write_text(text)


if __name__ == "__main__":
    main()
