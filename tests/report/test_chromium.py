"""The page in a real browser, cut off from the network; skipped where there is none."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits

from fiedler.plots.style import colours
from fiedler.report import summarize, write_report
from fiedler.text import DocumentVectorizer

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
BINARY = next((path for path in map(shutil.which, NAMES) if path), None)
pytestmark = pytest.mark.skipif(BINARY is None, reason=f"no browser on the path: none of {', '.join(NAMES)}")

DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True}
NARROW = PHONE | {"viewport": {"width": 360, "height": 640}}
EVIL = "</script><script>window.broken = 1</script><img src=x onerror='window.broken = 1'>"


class Fitted(BaseEstimator):
    def fit(self, X):
        return self


def a_model(labels, memberships):
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
    """300 digits with images, texts, a truth, and names that try to be markup."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    Q = np.full((300, 10), 0.03) + 0.7 * np.eye(10)[y]
    names = [f"digit {i}" for i in range(300)]
    summary = summarize(
        a_model(y, Q),
        X,
        plane=np.column_stack([y % 4 + 0.02 * (np.arange(300) % 17), y // 4 + 0.02 * (np.arange(300) % 13)]),
        ids=names,
        texts=[f"needle {i} {EVIL}" for i in range(300)],
        images=X.reshape(-1, 8, 8),
        truth=[EVIL if digit == 0 else str(digit) for digit in y],
        title=EVIL,
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
        a_model(y, Q),
        xy,
        ids=[f"folder/row-{i:06}.txt" for i in range(len(y))],
        texts=[" ".join(f"word{word}" for word in row) for row in words],
    )
    return write_report(summary, tmp_path_factory.mktemp("report") / "large.html")


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """Eight texts in three clusters: one with a name that tries to be markup, one with terms alone, one row alone."""
    texts = ["oak and elm", "oak or elm", "elm", "oak"] + ["bread " * 30 + "and fresh butter"] * 3 + ["stars"]
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 2])
    Q = 0.2 + 0.4 * np.eye(3)[labels]
    words = DocumentVectorizer()
    summary = summarize(
        a_model(labels, Q),
        words.fit_transform(texts),
        texts=texts,
        feature_names=words.get_feature_names_out(),
        names=["<b>ash</b>", None, None],
        plane=np.column_stack([np.arange(8.0), np.zeros(8)]),
    )
    return write_report(summary, tmp_path_factory.mktemp("report") / "named.html")


@pytest.fixture
def visit(browser):
    """A function from a page's file to the page in the browser, with all that it asked for and complained about."""
    contexts = []

    def go(path, **options):
        context = browser.new_context(offline=True, reduced_motion="reduce", **options)
        contexts.append(context)
        page, heard = context.new_page(), SimpleNamespace(requests=[], complaints=[])
        page.on("request", lambda request: heard.requests.append(request.url))
        page.on("console", lambda message: heard.complaints.append(message.text))
        page.on("pageerror", lambda error: heard.complaints.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        page.heard = heard
        return page

    yield go
    for context in contexts:
        context.close()


def settled(page):
    """The page after its next frame."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page


def zoom_of(page):
    return float(settled(page).locator("#canvas").get_attribute("data-zoom"))


def picture(page):
    return settled(page).evaluate("document.getElementById('canvas').toDataURL()")


def pointed_at_a_row(page):
    """The mouse moved over the map until it meets a row."""
    page.locator("#canvas").scroll_into_view_if_needed()
    box = page.locator("#canvas").bounding_box()
    for step in range(0, int(box["width"]), 8):
        page.mouse.move(box["x"] + step, box["y"] + box["height"] / 2)
        if page.locator("#tooltip").is_visible():
            return box["x"] + step, box["y"] + box["height"] / 2
    raise AssertionError("there is no row on the middle line of the map")


def scrolls_beyond(page, y):
    """Whether the page gets there within a few hundred frames."""
    return page.evaluate(
        """(y) => new Promise((done) => {
            let frames = 0;
            const look = () => scrollY > y || ++frames > 300 ? done(scrollY > y) : requestAnimationFrame(look);
            look();
        })""",
        y,
    )


def overflow(page):
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


def test_the_page_asks_for_nothing_and_complains_of_nothing(visit, small):
    page = visit(small, **DESKTOP)

    assert [url for url in page.heard.requests if not url.startswith("data:")] == [small.as_uri()]
    assert page.heard.complaints == []
    assert page.locator(".card").count() == 10
    assert page.locator("#scores dd").first.inner_text() == "1.000"


def test_markup_in_data_stays_text(visit, small):
    page = visit(small, **DESKTOP)
    page.fill("#search", "needle 7 ")
    page.wait_for_selector("#found button")

    assert page.title() == EVIL
    assert EVIL in page.locator("#found small").first.inner_text()
    assert page.evaluate("[window.broken, document.images.length]") == [None, 0]


def test_a_clusters_name_stands_wherever_it_is_called(visit, named):
    page = visit(named, **DESKTOP)
    page.fill("#search", "oak and")
    page.wait_for_selector("#found button")
    first, second = (page.locator(".card").nth(place) for place in (0, 1))

    assert first.locator("h3").inner_text() == "<b>ash</b>"
    assert first.locator(".size").inner_text() == "Cluster 0 · 4 rows · 50\u00a0%"
    assert second.locator("h3").inner_text().startswith("bread, ")  # as without names
    assert "or <b>ash</b> (20\u00a0%)" in second.inner_text()
    assert page.locator("#legend button").nth(0).inner_text().split("\n") == ["<b>ash</b>", "4", "Cluster 0"]
    assert page.locator("#legend button").nth(1).inner_text().startswith("Cluster 1\n3\nbread, ")
    assert page.locator("#found .of").inner_text().split() == ["<b>ash</b>", "Cluster", "0"]
    page.locator("#found button").click()
    assert page.locator("#tooltip span").first.inner_text().strip() == "<b>ash</b> · 60\u00a0% sure"
    assert page.locator("#tooltip small").inner_text() == "Cluster 0"
    assert page.locator("b").count() == 0
    assert page.heard.complaints == []


def test_texts_have_terms_and_one_is_no_plural(visit, named, tmp_path):
    page = visit(named, **DESKTOP)
    assert "3 clusters among 8 rows of 6 terms." in page.locator("#lede").inner_text()

    alone = write_report(summarize(a_model(np.array([0]), np.ones((1, 1))), [[1.0]]), tmp_path / "one.html")
    page = visit(alone, **DESKTOP)
    assert "1 cluster among 1 row of 1 feature." in page.locator("#lede").inner_text()
    assert page.locator("#figures dt").all_inner_texts()[:2] == ["row", "cluster"]


def test_a_text_that_is_found_is_shown_where_the_word_is(visit, named):
    page = visit(named, **DESKTOP)
    page.fill("#search", "Butter")
    page.locator("#found p", has_text="3 rows match").wait_for()

    assert page.locator("#found small").first.inner_text() == "…and fresh butter"


def test_pointing_at_a_row_tells_of_it(visit, small):
    page = visit(small, **DESKTOP)
    pointed_at_a_row(page)

    told = page.locator("#tooltip").inner_text()
    assert "digit" in told
    assert "73\u00a0% sure" in told
    assert page.locator("#tooltip .thumb").count() == 1


def test_the_wheel_scrolls_the_page_until_the_map_is_meant(visit, small):
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
    assert page.locator("#hint.shown").count() == 0  # who has clicked need not be told to
    page.mouse.wheel(0, 4000)
    assert zoom_of(page) < closer
    page.mouse.move(1, 1)
    scrolled = page.evaluate("window.scrollY")
    page.locator("#canvas").hover(position={"x": 3, "y": 3})
    page.mouse.wheel(0, 100)
    assert scrolls_beyond(page, scrolled)  # having left it, one is free again


def stroke(page, *steps):
    """Fingers on the screen: where each of them is, step by step, until they are lifted."""
    session = page.context.new_cdp_session(page)
    for number, spots in enumerate(steps):
        points = [{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(spots)]
        kind = "touchMove" if number else "touchStart"
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        settled(page)
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def middle_of_the_map(page):
    page.locator("#stage").evaluate("node => node.scrollIntoView({block: 'center'})")
    box = page.locator("#canvas").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_one_finger_scrolls_the_page_and_leaves_the_map(visit, small):
    page = visit(small, **PHONE)
    (x, y), before = middle_of_the_map(page), page.evaluate("window.scrollY")

    stroke(page, *([(x, y - up)] for up in range(0, 200, 20)))

    assert scrolls_beyond(page, before + 50)
    assert zoom_of(page) == 1


def test_two_fingers_zoom_the_map_and_leave_the_page(visit, small):
    page = visit(small, **PHONE)
    (x, y), before = middle_of_the_map(page), page.evaluate("window.scrollY")

    stroke(page, *([(x - apart, y - apart), (x + apart, y + apart)] for apart in (30, 45, 60, 90)))

    assert 2.5 < zoom_of(page) < 3.5  # they end three times as far apart as they began
    assert page.evaluate("window.scrollY") == before


def test_buttons_keys_and_double_click_zoom(visit, small):
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


def test_a_cluster_is_highlighted_from_legend_card_and_map(visit, small):
    page = visit(small, **DESKTOP)
    before = picture(page)

    page.locator("#legend button").nth(3).click()
    assert page.locator("#legend button").nth(3).get_attribute("aria-pressed") == "true"
    assert "lit" in page.locator(".card").nth(3).get_attribute("class")
    assert picture(page) != before
    page.locator("#legend button").nth(3).click()
    assert picture(page) == before
    page.locator(".card h3 button").nth(5).click()
    assert page.locator("#legend button[aria-pressed=true]").count() == 1
    page.locator("#canvas").press("Escape")
    assert page.locator("#legend button[aria-pressed=true]").count() == 0
    page.mouse.click(*pointed_at_a_row(page))
    assert page.locator("#legend button[aria-pressed=true]").count() == 1


def test_search_finds_rows_and_shows_them(visit, small):
    page = visit(small, **DESKTOP)
    before = picture(page)

    page.fill("#search", "digit 123")
    page.wait_for_selector("#found button")
    assert page.locator("#found p").inner_text() == "1 row matches"
    assert picture(page) != before
    page.locator("#found button").click()
    assert zoom_of(page) == 3
    assert "digit 123" in page.locator("#tooltip").inner_text()
    page.fill("#search", "no such thing")
    page.locator("#found p", has_text="Nothing matches").wait_for()


@pytest.mark.parametrize("way", ["truth", "confidence"])
def test_rows_can_be_coloured_otherwise(way, visit, small):
    page = visit(small, **DESKTOP)
    before = picture(page)
    page.locator(f"#colour input[value={way}]").check(force=True)

    assert picture(page) != before
    assert page.heard.complaints == []


@pytest.mark.parametrize("screen", [DESKTOP, PHONE, NARROW], ids=["desktop", "phone", "narrow"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_the_screen_in_either_theme(screen, scheme, visit, small):
    page = visit(small, color_scheme=scheme, **screen)

    assert overflow(page) <= 0
    assert page.locator("html").get_attribute("data-theme") == scheme
    page.click("#theme")
    assert page.locator("html").get_attribute("data-theme") != scheme
    assert page.heard.complaints == []


def test_a_tap_tells_of_a_row(visit, small):
    page = visit(small, **PHONE)
    box = page.locator("#canvas").bounding_box()
    page.locator("#canvas").scroll_into_view_if_needed()
    for step in range(0, int(box["width"]), 20):
        page.locator("#canvas").tap(position={"x": step, "y": box["height"] / 2})
        page.wait_for_timeout(30)
        if page.locator("#tooltip").is_visible():
            break

    assert page.locator("#tooltip").is_visible()
    assert "sure" in page.locator("#tooltip").inner_text()


def test_a_hundred_thousand_rows_load_move_and_answer(visit, large):
    """With names and texts. Seconds are measured in benchmarks/report_page.py."""
    assert large.stat().st_size < 20e6  # so that it can be sent by mail
    page = visit(large, **DESKTOP)
    page.locator("#canvas").click(position={"x": 3, "y": 3})
    page.mouse.wheel(0, -100)
    assert zoom_of(page) > 1
    before = picture(page)
    page.locator("#canvas").press("ArrowLeft")
    assert picture(page) != before

    page.locator("#canvas").press("0")
    pointed_at_a_row(page)
    assert "folder/row-" in page.locator("#tooltip").inner_text()
    assert "word" in page.locator("#tooltip p").inner_text()
    page.fill("#search", "row-099999")
    page.locator("#found p", has_text="1 row matches").wait_for()
    page.fill("#search", "word499")
    page.locator("#found p", has_text="the first 12").wait_for()
    assert page.heard.complaints == []
    assert overflow(page) <= 0


def test_many_movements_between_two_frames_are_drawn_once(visit, large):
    page = visit(large, **DESKTOP)
    settled(page)

    drawn = page.evaluate(
        """async () => {
            performance.clearMeasures();
            const turn = { deltaY: -10, ctrlKey: true, clientX: 400, clientY: 500, cancelable: true };
            for (let i = 0; i < 50; i++) document.getElementById("canvas").dispatchEvent(new WheelEvent("wheel", turn));
            await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
            return performance.getEntriesByName("draw").length;
        }"""
    )

    assert drawn == 1
    assert zoom_of(page) > 1


# ------------------------------------------------------------------------------------------------- honest and readable


def colour_of_the_first_row(visit, path):
    """In the middle of its disc; it lies in the lower left corner."""
    page = settled(visit(path, **DESKTOP))
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
def test_a_confidence_looks_the_same_whatever_the_others_are(others, visit, tmp_path):
    """Opacity is confidence: colour = c · palette + (1 - c) · white."""
    Q = np.array([[0.6, 0.4], [others, 1 - others], [1 - others, others]])
    xy = np.array([[0.0, 0.0], [1.0, 0.4], [1.0, 1.0]])
    path = write_report(summarize(a_model(np.array([0, 0, 1]), Q), xy), tmp_path / "page.html")

    found = colour_of_the_first_row(visit, path)

    assert_allclose(found, 255 * (0.6 * colours([0])[0] + 0.4), atol=3)


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
    const told = [];
    for (const node of document.body.querySelectorAll("*")) {
        const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
        if (!own || !node.checkVisibility() || node.matches("script, .none, .unseen, .hint, .skip")) continue;
        const style = getComputedStyle(node), behind = ground(node);
        const [one, other] = [light(over(rgba(node.closest("svg") ? style.fill : style.color), behind)), light(behind)];
        told.push([Math.max(one, other) / Math.min(one, other), node.textContent.slice(0, 30)]);
    }
    return told;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_word_stands_out_from_what_is_behind_it(scheme, visit, small):
    """WCAG 2, level AA: a contrast of 4.5."""
    found = visit(small, color_scheme=scheme, **DESKTOP).evaluate(CONTRASTS)

    assert len(found) > 100
    assert [each for each in found if each[0] < 4.5] == []


def test_keys_alone_lead_from_a_card_to_its_row_on_the_map_and_back(visit, small):
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


def test_everything_that_can_be_used_has_a_name_and_a_place_in_the_order_of_keys(visit, small):
    page = visit(small, **DESKTOP)

    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, input, canvas, [tabindex]")]
            .filter((node) => node.checkVisibility())
            .filter((node) => !(node.textContent.trim() || node.ariaLabel || node.labels?.length) || node.tabIndex < 0)
            .map((node) => node.outerHTML.slice(0, 80))"""
    )

    assert nameless == []
