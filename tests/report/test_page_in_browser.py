"""The page in a real browser without network; skipped if there is no browser."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits

from fiedler import ManifoldClustering
from fiedler.manifold import NClustersChoice
from fiedler.plots.style import palette_rgb
from fiedler.report import summarize, write_report
from fiedler.text import DocumentVectorizer

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
BINARY = next((path for path in map(shutil.which, BROWSERS) if path), None)
pytestmark = pytest.mark.skipif(BINARY is None, reason=f"no browser on the path: none of {', '.join(BROWSERS)}")

DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True}
NARROW = PHONE | {"viewport": {"width": 360, "height": 640}}
MARKUP = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'>"


class Fitted(BaseEstimator):
    def fit(self, X):
        return self


def fitted_model(labels, memberships):
    model = Fitted()
    model.labels_, model.memberships_ = labels, memberships
    return model


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=BINARY, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """300 digits with images, texts, classes, and markup in texts and names."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    Q = np.full((300, 10), 0.03) + 0.7 * np.eye(10)[y]
    names = [f"digit {i}" for i in range(300)]
    summary = summarize(
        fitted_model(y, Q),
        X,
        layout=np.column_stack([y % 4 + 0.02 * (np.arange(300) % 17), y // 4 + 0.02 * (np.arange(300) % 13)]),
        ids=names,
        texts=[f"needle {i} {MARKUP}" for i in range(300)],
        images=X.reshape(-1, 8, 8),
        truth=[MARKUP if digit == 0 else str(digit) for digit in y],
        title=MARKUP,
    )
    return write_report(summary, tmp_path_factory.mktemp("report") / "small.html")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """100,000 rows in 25 clusters, each with a name and a text."""
    rng = np.random.RandomState(0)
    y = rng.randint(25, size=100_000)
    xy = np.column_stack([y % 5, y // 5]) + 0.2 * rng.normal(size=(len(y), 2))
    Q = np.full((len(y), 25), 0.01) + 0.75 * np.eye(25)[y]
    words = rng.randint(500, size=(len(y), 12))
    summary = summarize(
        fitted_model(y, Q),
        xy,
        ids=[f"folder/row-{i:06}.txt" for i in range(len(y))],
        texts=[" ".join(f"word{word}" for word in row) for row in words],
    )
    return write_report(summary, tmp_path_factory.mktemp("report") / "large.html")


@pytest.fixture(scope="module")
def named_clusters(tmp_path_factory):
    """Eight texts in three clusters: one whose name contains markup, one with terms only, one of a single row."""
    texts = ["oak and elm", "oak or elm", "elm", "oak"] + ["bread " * 30 + "and fresh butter"] * 3 + ["stars"]
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 2])
    Q = 0.2 + 0.4 * np.eye(3)[labels]
    words = DocumentVectorizer()
    summary = summarize(
        fitted_model(labels, Q),
        words.fit_transform(texts),
        texts=texts,
        feature_names=words.get_feature_names_out(),
        names=["<b>ash</b>", None, None],
        layout=np.column_stack([np.arange(8.0), np.zeros(8)]),
    )
    return write_report(summary, tmp_path_factory.mktemp("report") / "named.html")


@pytest.fixture
def visit(browser):
    """A function that opens a file in the browser and records its requests and console messages."""
    contexts = []

    def open_page(path, **options):
        context = browser.new_context(offline=True, reduced_motion="reduce", **options)
        contexts.append(context)
        page, log = context.new_page(), SimpleNamespace(requests=[], messages=[])
        page.on("request", lambda request: log.requests.append(request.url))
        page.on("console", lambda message: log.messages.append(message.text))
        page.on("pageerror", lambda error: log.messages.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        page.log = log
        return page

    yield open_page
    for context in contexts:
        context.close()


def after_next_frame(page):
    """Wait for the next frame and return the page."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page


def zoom_of(page):
    return float(after_next_frame(page).locator("#canvas").get_attribute("data-zoom"))


def picture(page):
    return after_next_frame(page).evaluate("document.getElementById('canvas').toDataURL()")


def hover_a_row(page):
    """Move the mouse over the map until it is at a row."""
    page.locator("#canvas").scroll_into_view_if_needed()
    box = page.locator("#canvas").bounding_box()
    for step in range(0, int(box["width"]), 8):
        page.mouse.move(box["x"] + step, box["y"] + box["height"] / 2)
        if page.locator("#tooltip").is_visible():
            return box["x"] + step, box["y"] + box["height"] / 2
    raise AssertionError("there is no row on the middle line of the map")


def scrolls_beyond(page, y):
    """Whether the page scrolls beyond y within 300 frames."""
    return page.evaluate(
        """(y) => new Promise((done) => {
            let frames = 0;
            const check = () => scrollY > y || ++frames > 300 ? done(scrollY > y) : requestAnimationFrame(check);
            check();
        })""",
        y,
    )


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def test_the_page_makes_no_requests_and_logs_no_errors(visit, small):
    page = visit(small, **DESKTOP)

    assert [url for url in page.log.requests if not url.startswith("data:")] == [small.as_uri()]
    assert page.log.messages == []
    assert page.locator(".card").count() == 10
    assert page.locator("#scores dd").first.inner_text() == "1.000"


def test_markup_in_data_is_shown_as_text(visit, small):
    page = visit(small, **DESKTOP)
    page.fill("#search", "needle 7 ")
    page.wait_for_selector("#results button")

    assert page.title() == MARKUP
    assert MARKUP in page.locator("#results button > small").first.inner_text()
    assert page.evaluate("[window.broken, document.images.length]") == [None, 0]


def test_the_name_of_a_cluster_is_shown_everywhere(visit, named_clusters):
    page = visit(named_clusters, **DESKTOP)
    page.fill("#search", "oak and")
    page.wait_for_selector("#results button")
    first, second = (page.locator(".card").nth(place) for place in (0, 1))

    assert first.locator("h3").inner_text() == "<b>ash</b>"
    assert first.locator(".size").inner_text() == "Cluster 0 · 4 rows · 50\u00a0%"
    assert second.locator("h3").inner_text().startswith("bread, ")  # leading terms, since it has no name
    assert "or <b>ash</b> (20\u00a0%)" in second.inner_text()
    assert page.locator("#legend button").nth(0).inner_text().split("\n") == ["<b>ash</b>", "4", "Cluster 0"]
    assert page.locator("#legend button").nth(1).inner_text().endswith("\n3\nCluster 1")
    assert page.locator("#results .cluster").inner_text().split() == ["<b>ash</b>", "Cluster", "0"]
    page.locator("#results button").click()
    assert page.locator("#tooltip span").first.inner_text().strip() == "<b>ash</b> · confidence 60\u00a0%"
    assert page.locator("#tooltip small").inner_text() == "Cluster 0"
    assert page.locator("b").count() == 0
    assert page.log.messages == []


def test_columns_of_texts_are_terms_and_one_row_is_singular(visit, named_clusters, tmp_path):
    page = visit(named_clusters, **DESKTOP)
    assert "3 clusters among 8 rows with 6 terms." in page.locator("#lede").inner_text()

    single = write_report(summarize(fitted_model(np.array([0]), np.ones((1, 1))), [[1.0]]), tmp_path / "one.html")
    page = visit(single, **DESKTOP)
    assert "1 cluster among 1 row with 1 feature." in page.locator("#lede").inner_text()
    assert page.locator("#figures dt").all_inner_texts() == ["row", "cluster"]  # no confidence: it is 1 everywhere


def test_the_page_says_that_no_clusters_were_found(visit, tmp_path):
    model = fitted_model(np.zeros(6, dtype=int), np.ones((6, 1)))
    model.evidence_ = NClustersChoice(1, "one cluster", [2, 3])
    page = visit(write_report(summarize(model, np.arange(12.0).reshape(6, 2)), tmp_path / "one.html"), **DESKTOP)

    assert page.locator("#lede").inner_text().startswith(model.evidence_.sentence)
    assert page.locator("#figures dt").all_inner_texts() == ["rows"]


def test_search_results_show_the_text_around_the_match(visit, named_clusters):
    page = visit(named_clusters, **DESKTOP)
    page.fill("#search", "Butter")
    page.locator("#results p", has_text="3 rows match").wait_for()

    assert page.locator("#results button > small").first.inner_text() == "…and fresh butter"


def test_hovering_a_row_shows_its_tooltip(visit, small):
    page = visit(small, **DESKTOP)
    hover_a_row(page)

    tooltip = page.locator("#tooltip").inner_text()
    assert "digit" in tooltip
    assert "confidence 73\u00a0%" in tooltip
    assert page.locator("#tooltip .thumb").count() == 1


def test_the_tooltip_shows_the_cells_of_a_row_and_the_page_how_columns_were_used(visit, tmp_path):
    kind = np.arange(40) % 2
    table = {
        "monthlyUsage_of_data": [f"{value} GB" for value in 10 + 5 * kind],
        "joined": np.array(["2024-01-05", "2023-01-05"], dtype="datetime64[D]")[kind],
        "plan": np.array([MARKUP, "pro"])[kind].tolist(),
        "country": ["CH"] * 40,
    }
    model = fitted_model(kind, 0.2 + 0.6 * np.eye(2)[kind])
    uses = [("monthlyUsage_of_data", "number", "in GB"), ("country", "left out", "constant: all values are equal")]
    layout = np.column_stack([kind, np.zeros(40)])
    summary = summarize(model, np.eye(40), original=table, columns=uses, layout=layout)
    page = visit(write_report(summary, tmp_path / "cells.html"), **DESKTOP)

    page.locator(".members button").first.click()

    lines = page.locator("#tooltip .cells tr")
    shown = dict(zip(*(page.locator(f"#tooltip .cells {cell}").all_inner_texts() for cell in ("th", "td"))))
    assert lines.count() == 3
    assert shown == {"monthlyUsage_of_data": "10 GB", "joined": "2024-01-05", "plan": MARKUP}
    assert page.locator("#tooltip .cells wbr").count() == 3  # where a name may be broken
    assert page.locator("#uses-note").inner_text() == "Rows were compared by 1 of 2 columns."
    assert page.locator("#uses-table .out").inner_text().split("\t") == [
        "country",
        "left out",
        "constant: all values are equal",
    ]
    assert "among 40 rows with 2 columns" in page.locator("#lede").inner_text()
    assert page.log.messages == []


def test_clusters_without_a_name_have_a_picture(visit, small, tmp_path):
    page = visit(small, **DESKTOP)
    assert page.locator("#legend button .thumb").count() == 10

    X = np.random.RandomState(0).normal(size=(60, 20)) + 3 * (np.arange(60) % 2)[:, None]
    model = fitted_model(np.arange(60) % 2, 0.2 + 0.6 * np.eye(2)[np.arange(60) % 2])
    page = visit(write_report(summarize(model, X, layout=X[:, :2]), tmp_path / "lines.html"), **DESKTOP)
    assert page.locator(".card svg.shape polyline").count() == 2
    assert page.locator(".card h3").all_inner_texts() == ["Cluster 0", "Cluster 1"]


def test_the_wheel_scrolls_the_page_until_the_map_is_clicked(visit, small):
    page = visit(small, **DESKTOP)
    page.locator("#canvas").hover(position={"x": 3, "y": 3})
    page.mouse.wheel(0, 100)
    assert scrolls_beyond(page, 0)
    assert zoom_of(page) == 1
    assert page.locator("#hint.shown").count() == 1

    page.locator("#canvas").hover(position={"x": 3, "y": 3})
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    assert (closer := zoom_of(page)) > 1

    page.mouse.move(1, 1)
    page.locator("#canvas").hover(position={"x": 3, "y": 3})
    page.mouse.wheel(0, 1)
    page.locator("#hint.shown").wait_for()
    page.locator("#canvas").click(position={"x": 3, "y": 3})
    assert page.locator("#hint.shown").count() == 0  # no hint is needed after a click
    page.mouse.wheel(0, 4000)
    assert zoom_of(page) < closer
    page.mouse.move(1, 1)
    scrolled = page.evaluate("window.scrollY")
    page.locator("#canvas").hover(position={"x": 3, "y": 3})
    page.mouse.wheel(0, 100)
    assert scrolls_beyond(page, scrolled)  # the page scrolls again after the mouse has left the map


def stroke(page, *steps):
    """Touch the screen: the positions of all fingers step by step, until they are lifted."""
    session = page.context.new_cdp_session(page)
    for number, positions in enumerate(steps):
        points = [{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(positions)]
        kind = "touchMove" if number else "touchStart"
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        after_next_frame(page)
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def centre_of_the_map(page):
    page.locator("#stage").evaluate("node => node.scrollIntoView({block: 'center'})")
    box = page.locator("#canvas").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_one_finger_scrolls_the_page_but_not_the_map(visit, small):
    page = visit(small, **PHONE)
    (x, y), before = centre_of_the_map(page), page.evaluate("window.scrollY")

    stroke(page, *([(x, y - up)] for up in range(0, 200, 20)))

    assert scrolls_beyond(page, before + 50)
    assert zoom_of(page) == 1


def test_two_fingers_zoom_the_map_but_do_not_scroll_the_page(visit, small):
    page = visit(small, **PHONE)
    (x, y), before = centre_of_the_map(page), page.evaluate("window.scrollY")

    stroke(page, *([(x - offset, y - offset), (x + offset, y + offset)] for offset in (30, 45, 60, 90)))

    assert 2.5 < zoom_of(page) < 3.5  # their distance grows by a factor of three
    assert page.evaluate("window.scrollY") == before


def test_buttons_keys_and_double_clicks_zoom(visit, small):
    page = visit(small, **DESKTOP)
    assert zoom_of(page) == 1

    page.click("#zoom-in")
    assert (second := zoom_of(page)) > 1
    page.locator("#canvas").press("+")
    assert (third := zoom_of(page)) > second
    page.locator("#canvas").dblclick(position={"x": 3, "y": 3})
    assert zoom_of(page) > third
    page.locator("#canvas").press("0")
    assert zoom_of(page) == 1


def test_dragging_moves_the_map(visit, small):
    page = visit(small, **DESKTOP)
    before, box = picture(page), page.locator("#canvas").bounding_box()

    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 120, box["y"] + 60, steps=4)
    page.mouse.up()

    assert picture(page) != before
    assert zoom_of(page) == 1


def test_a_cluster_can_be_highlighted_by_legend_card_and_map(visit, small):
    page = visit(small, **DESKTOP)
    before = picture(page)

    page.locator("#legend button").nth(3).click()
    assert page.locator("#legend button").nth(3).get_attribute("aria-pressed") == "true"
    assert "highlighted" in page.locator(".card").nth(3).get_attribute("class")
    assert picture(page) != before
    page.locator("#legend button").nth(3).click()
    assert picture(page) == before
    page.locator(".card h3 button").nth(5).click()
    assert page.locator("#legend button[aria-pressed=true]").count() == 1
    page.locator("#canvas").press("Escape")
    assert page.locator("#legend button[aria-pressed=true]").count() == 0
    page.mouse.click(*hover_a_row(page))
    assert page.locator("#legend button[aria-pressed=true]").count() == 1


def test_search_lists_rows_and_opens_them(visit, small):
    page = visit(small, **DESKTOP)
    before = picture(page)

    page.fill("#search", "digit 123")
    page.wait_for_selector("#results button")
    assert page.locator("#results p").inner_text() == "1 row matches"
    assert picture(page) != before
    page.locator("#results button").click()
    assert zoom_of(page) == 3
    assert "digit 123" in page.locator("#tooltip").inner_text()
    page.fill("#search", "no such row")
    page.locator("#results p", has_text="No matches").wait_for()


def test_the_level_of_the_map_can_be_chosen(visit, tmp_path):
    X = load_digits().data[:300]
    model = ManifoldClustering(3, effort="fast", random_state=0).fit(X)
    page = visit(write_report(summarize(model, X, layout=X[:, 2:4]), tmp_path / "levels.html"))

    page.select_option("#level", "5")

    sizes = page.locator("#legend .count").all_inner_texts()
    assert [int(size) for size in sizes] == np.bincount(model.at(5).labels_).tolist()
    assert "of the level before" in page.inner_text("#level-note")


@pytest.mark.parametrize("colouring", ["truth", "confidence"])
def test_rows_can_be_coloured_by_class_or_confidence(colouring, visit, small):
    page = visit(small, **DESKTOP)
    before = picture(page)
    page.locator(f"#colour input[value={colouring}]").check(force=True)

    assert picture(page) != before
    assert page.log.messages == []


@pytest.mark.parametrize("screen", [DESKTOP, PHONE, NARROW], ids=["desktop", "phone", "narrow"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_the_width_of_the_screen_in_both_themes(screen, scheme, visit, small):
    page = visit(small, color_scheme=scheme, **screen)

    assert overflow(page) <= 0
    assert page.locator("html").get_attribute("data-theme") == scheme
    page.click("#theme")
    assert page.locator("html").get_attribute("data-theme") != scheme
    assert page.log.messages == []


def test_a_tap_shows_the_tooltip(visit, small):
    page = visit(small, **PHONE)
    box = page.locator("#canvas").bounding_box()
    page.locator("#canvas").scroll_into_view_if_needed()
    for step in range(0, int(box["width"]), 20):
        page.locator("#canvas").tap(position={"x": step, "y": box["height"] / 2})
        page.wait_for_timeout(30)
        if page.locator("#tooltip").is_visible():
            break

    assert page.locator("#tooltip").is_visible()
    assert "confidence" in page.locator("#tooltip").inner_text()


def test_a_report_of_100_000_rows_can_be_used(visit, large):
    """With names and texts. Times are measured by benchmarks/report_page.py."""
    assert large.stat().st_size < 20e6  # so that it can be sent by mail
    page = visit(large, **DESKTOP)
    page.locator("#canvas").click(position={"x": 3, "y": 3})
    page.mouse.wheel(0, -100)
    assert zoom_of(page) > 1
    before = picture(page)
    page.locator("#canvas").press("ArrowLeft")
    assert picture(page) != before

    page.locator("#canvas").press("0")
    hover_a_row(page)
    assert "folder/row-" in page.locator("#tooltip").inner_text()
    assert "word" in page.locator("#tooltip p").inner_text()
    page.fill("#search", "row-099999")
    page.locator("#results p", has_text="1 row matches").wait_for()
    page.fill("#search", "word499")
    page.locator("#results p", has_text="the first 12").wait_for()
    assert page.log.messages == []
    assert overflow(page) <= 0


def test_many_movements_within_a_frame_are_drawn_once(visit, large):
    page = visit(large, **DESKTOP)
    after_next_frame(page)

    n_draws = page.evaluate(
        """async () => {
            performance.clearMeasures();
            const options = { deltaY: -10, ctrlKey: true, clientX: 400, clientY: 500, cancelable: true };
            const canvas = document.getElementById("canvas");
            for (let i = 0; i < 50; i++) canvas.dispatchEvent(new WheelEvent("wheel", options));
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            return performance.getEntriesByName("draw").length;
        }"""
    )

    assert n_draws == 1
    assert zoom_of(page) > 1


# ------------------------------------------------------------------------------------- consistency and accessibility


def colour_of_the_first_row(visit, path):
    """The colour at the centre of the first row, which is in the lower left corner."""
    page = after_next_frame(visit(path, **DESKTOP))
    return page.evaluate(
        """() => {
            const canvas = document.getElementById("canvas");
            const { data, width } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            const ground = data.slice(0, 3).join();
            for (let x = 0; x < width; x++)
                for (let y = canvas.height - 1; y > canvas.height / 2; y--) {
                    const at = 4 * (y * width + x + 2);
                    if (data.slice(at - 8, at - 5).join() !== ground) return [...data.slice(at, at + 3)];
                }
        }"""
    )


@pytest.mark.parametrize("others", [0.61, 0.99])
def test_the_colour_of_a_confidence_does_not_depend_on_other_rows(others, visit, tmp_path):
    """Opacity is confidence: colour = c · palette + (1 - c) · white."""
    Q = np.array([[0.6, 0.4], [others, 1 - others], [others, 1 - others], [1 - others, others]])
    xy = np.array([[0.0, 0.0], [1.0, 0.4], [1.0, 0.41], [1.0, 1.0]])  # numbers are written where most rows are
    path = write_report(summarize(fitted_model(np.array([0, 0, 0, 1]), Q), xy), tmp_path / "page.html")

    color = colour_of_the_first_row(visit, path)

    assert_allclose(color, 255 * (0.6 * palette_rgb([0])[0] + 0.4), atol=3)


CONTRASTS = """() => {
    const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour) => {
        paint.clearRect(0, 0, 1, 1);
        paint.fillStyle = colour;
        paint.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = paint.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = (top, ground) => top.slice(0, 3).map((part, i) => top[3] * part + (1 - top[3]) * ground[i]);
    const ground = (node) => node === null ? [255, 255, 255] :
        over(rgba(getComputedStyle(node).backgroundColor), ground(node.parentElement));
    const linear = (part) => part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) + 0.05;
    const contrasts = [];
    for (const node of document.body.querySelectorAll("*")) {
        const hasText = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
        const ignored = node.matches("script, .none, .visually-hidden, .hint, .skip");
        if (!hasText || !node.checkVisibility() || ignored) continue;
        const style = getComputedStyle(node), behind = ground(node);
        const colour = rgba(node.closest("svg") ? style.fill : style.color);
        const [text, background] = [light(over(colour, behind)), light(behind)];
        contrasts.push([Math.max(text, background) / Math.min(text, background), node.textContent.slice(0, 30)]);
    }
    return contrasts;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_has_sufficient_contrast(scheme, visit, small):
    """WCAG 2, level AA: a contrast of 4.5."""
    contrasts = visit(small, color_scheme=scheme, **DESKTOP).evaluate(CONTRASTS)

    assert len(contrasts) > 100
    assert [(contrast, text) for contrast, text in contrasts if contrast < 4.5] == []


def test_the_keyboard_leads_from_a_card_to_its_row_on_the_map_and_back(visit, small):
    page = visit(small, **DESKTOP)
    page.locator(".card h3 button").first.focus()
    page.keyboard.press("Tab")
    row = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("Enter")

    assert page.locator("#tooltip strong").inner_text() == row
    page.locator("#back").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == row
    assert not page.locator("#back").is_visible()


def test_every_control_has_a_name_and_can_be_reached_by_keyboard(visit, small):
    page = visit(small, **DESKTOP)

    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, canvas, [tabindex]")]
            .filter((node) => node.checkVisibility())
            .filter((node) => !(node.textContent.trim() || node.ariaLabel || node.labels?.length) || node.tabIndex < 0)
            .map((node) => node.outerHTML.slice(0, 80))"""
    )

    assert nameless == []
