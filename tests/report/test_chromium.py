"""The page in a real browser, cut off from the network; skipped where there is none."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import load_digits

from fiedler.report import summarize, write_report

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
BINARY = next((path for path in map(shutil.which, NAMES) if path), None)
pytestmark = pytest.mark.skipif(BINARY is None, reason=f"no browser on the path: none of {', '.join(NAMES)}")

DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "has_touch": True, "is_mobile": True}
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
    """100,000 rows in 25 clusters."""
    rng = np.random.RandomState(0)
    y = rng.randint(25, size=100_000)
    xy = np.column_stack([y % 5, y // 5]) + 0.2 * rng.normal(size=(len(y), 2))
    Q = np.full((len(y), 25), 0.01) + 0.75 * np.eye(25)[y]
    return write_report(summarize(a_model(y, Q), xy), tmp_path_factory.mktemp("report") / "large.html")


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


def test_pointing_at_a_row_tells_of_it(visit, small):
    page = visit(small, **DESKTOP)
    pointed_at_a_row(page)

    told = page.locator("#tooltip").inner_text()
    assert "digit" in told
    assert "73 % sure" in told
    assert page.locator("#tooltip .thumb").count() == 1


def test_wheel_buttons_keys_and_double_click_zoom(visit, small):
    page = visit(small, **DESKTOP)
    page.locator("#canvas").hover()
    assert zoom_of(page) == 1

    page.mouse.wheel(0, -200)
    assert (first := zoom_of(page)) > 1
    page.click("#zoom-in")
    assert (second := zoom_of(page)) > first
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


@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
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
    page = visit(large, **DESKTOP)
    page.locator("#canvas").hover()
    page.mouse.wheel(0, -100)

    assert zoom_of(page) > 1
    assert float(page.locator("#canvas").get_attribute("data-milliseconds")) < 1000  # a tenth of it or less, usually
    pointed_at_a_row(page)
    page.fill("#search", "Row 99999")
    page.wait_for_selector("#found button")
    assert page.heard.complaints == []
    assert overflow(page) <= 0
