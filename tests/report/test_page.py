import base64
import copy
import hashlib
import json
import re
import struct
import zlib

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.cluster import KMeans

from fiedler.plots.style import PALETTE, UNASSIGNED
from fiedler.report import read_summary, summarize, write_report, write_summary
from fiedler.report.page import VERSION, packed_array, png, render
from fiedler.report.script import EXPORT, IMPORT, bundled, template

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)> {{script}} \ud800 &amp; 'quoted' \"twice\""


@pytest.fixture(scope="module")
def summary():
    X = np.random.RandomState(0).normal(size=(30, 2))
    model = KMeans(2, n_init=1, random_state=0).fit(X)
    pixels = np.arange(30 * 12, dtype=np.uint8).reshape(30, 3, 4)
    return summarize(
        model,
        X,
        ids=[EVIL] * 30,
        texts=[EVIL] * 30,
        images=pixels,
        feature_names=[EVIL, "b"],
        truth=[EVIL] * 15 + ["other"] * 15,
        title=EVIL,
        command=EVIL,
        settings={EVIL: EVIL},
    )


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_names_no_other_place(summary, tmp_path):
    page = write_report(summary, tmp_path / "report.html").read_text(encoding="utf-8")

    assert not re.search(r"https?://|//[a-z]+\.|@import|<link|<iframe|src=[\"']", page.replace("src=x", ""))
    assert "default-src 'none'" in page


def test_what_comes_from_data_is_never_markup(summary):
    page = render(summary)

    assert page.count("<script") == 2  # the data and the script
    assert page.count("</script") == 2
    assert "<img" not in page
    assert data_of(page)["rows"]["ids"][0] == EVIL.replace("\ud800", "?")  # and arrives as it was
    assert "{{script}}" in data_of(page)["title"]


def test_the_policy_names_the_script_by_its_hash(summary):
    page = render(summary)
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]

    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page


def test_every_module_is_in_the_script_once_and_after_those_it_uses():
    script = bundled()
    modules = re.findall(r"^const \$(\w+) = ", script, re.MULTILINE)

    assert modules[-1] == "main"
    assert len(set(modules)) == len(modules)
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)
    for place, name in enumerate(modules):
        text = template(f"script/{name}.js")
        for names, home in IMPORT.findall(text):
            wanted = set(re.findall(r"\w+", names))
            assert home in modules[:place]
            assert wanted <= set(EXPORT.findall(template(f"script/{home}.js")))
            assert wanted <= set(re.findall(r"\w+", IMPORT.sub("", text)))  # and uses it


def test_the_page_has_the_colours_of_the_plots(summary):
    page = render(summary)

    assert data_of(page)["palette"]["groups"] == list(PALETTE)
    assert data_of(page)["palette"]["none"] == UNASSIGNED
    assert not re.search(r"#[0-9a-f]{6}\b", bundled())  # the script has none of its own


def test_numbers_of_rows_come_back_from_their_bytes(summary):
    data = data_of(render(summary))

    x = np.frombuffer(base64.b64decode(data["rows"]["x"]), dtype="<u2")
    assert_array_equal(x, summary["rows"]["x"])
    labels = np.frombuffer(base64.b64decode(data["rows"]["labels"]), dtype="<u2")
    assert_array_equal(labels, summary["rows"]["labels"])
    assert packed_array([255.0], "uint8") == "/w=="


def test_a_png_holds_the_pixels_it_was_given(rng):
    pixels = rng.randint(256, size=(3, 5, 3)).astype(np.uint8)

    file = png(pixels)

    assert file.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">IIBB", file[16:26]) == (5, 3, 8, 2)
    size = struct.unpack(">I", file[33:37])[0]
    lines = np.frombuffer(zlib.decompress(file[41 : 41 + size]), dtype=np.uint8).reshape(3, 16)
    assert_array_equal(lines[:, 0], 0)
    assert_array_equal(lines[:, 1:].reshape(3, 5, 3), pixels)


def test_the_sheet_of_thumbnails_begins_with_the_means(summary):
    sheet = data_of(render(summary))["thumbnails"]

    assert (sheet["width"], sheet["height"], sheet["n_means"], len(sheet["rows"])) == (4, 3, 2, 30)
    assert (sheet["columns"], sheet["lines"]) == (32, 1)
    assert base64.b64decode(sheet["png"]).startswith(b"\x89PNG")


def test_a_page_is_whole_or_absent(summary, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="no summary of a clustering"):
        write_report({}, path)
    with pytest.raises(ValueError, match="Out of range float"):
        write_report({**summary, "settings": {"scale": float("nan")}}, path)

    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(FileNotFoundError, match="the folder"):
        write_report(summary, tmp_path / "nowhere" / "report.html")


LACKING = object()


def changed(summary, place, value):
    """The summary with something else in a place, or without it."""
    found = copy.deepcopy(summary)
    *outer, last = place
    part = found
    for key in outer:
        part = part[key]
    if value is LACKING:
        del part[last]
    else:
        part[last] = value
    return found


def zeros(size):
    return base64.b64encode(zlib.compress(bytes(size))).decode()


DAMAGES = [
    (("n_rows",), LACKING, "it lacks n_rows"),
    (("n_rows",), True, "n_rows is not a whole number from 1"),
    (("n_rows",), 29, "rows.x has length 30, not 29"),
    (("n_clusters",), 3, "clusters has length 2, not 3"),
    (("seconds",), float("nan"), "seconds is not a number"),
    (("column",), "pixel", "column is not 'term' or 'feature'"),
    (("rows",), [], "rows is not a record"),
    (("rows", "labels"), LACKING, "it lacks rows.labels"),
    (("rows", "labels"), [0, 1], "rows.labels has length 2, not 30"),
    (("rows", "labels", 3), 7, "rows.labels[3] is not a whole number from -1 to 1"),
    (("rows", "x", 0), 70_000, "rows.x[0] is not a whole number from 0 to 65535"),
    (("rows", "ids", 2), 5, "rows.ids[2] is not a text"),
    (("rows", "confidence"), [2] * 30, "rows.confidence[0] is not a number from 0 to 1"),
    (("clusters", 1), "nonsense", "clusters[1] is not a record"),
    (("clusters", 1, "typical", 0), 30, "clusters[1].typical[0] is not a whole number from 0 to 29"),
    (("clusters", 0, "terms"), [["ash"]], "clusters[0].terms[0] has length 1, not 2"),
    (("clusters", 0, "terms"), [[1, 2]], "clusters[0].terms[0][0] is not a text"),
    (("clusters", 0, "doubtful"), [{"row": 0}], "it lacks clusters[0].doubtful[0].confidence, "),
    (("clusters", 0, "name"), 5, "clusters[0].name is not a text"),
    (("history",), "nonsense", "history is not a record"),
    (("history",), {"objective": [1, "two"]}, "history.objective[1] is not a number"),
    (("evidence",), {"n_clusters": 2}, "it lacks evidence.candidates, "),
    (("spectrum",), {"values": [], "gap": 1}, "spectrum.gap is not a whole number from 1 to 0"),
    (("texts", "values"), ["one"], "texts.values has length 1, not 30"),
    (("truth", "codes", 0), 2, "truth.codes[0] is not a whole number from 0 to 1"),
    (("agreement", "counts", 0), [1], "agreement.counts[0] has length 1, not 2"),
    (("thumbnails", "pixels"), "no base64", "thumbnails.pixels is not as many pixels as there should be"),
    (("thumbnails", "pixels"), zeros(32 * 12 - 1), "thumbnails.pixels is not as many pixels as there should be"),
    (("model", "versions"), {}, "it lacks model.versions.fiedler"),
]


@pytest.mark.parametrize(("place", "value", "fault"), DAMAGES, ids=[fault for *_, fault in DAMAGES])
def test_a_damaged_summary_is_told_in_a_sentence_and_leaves_the_page(place, value, fault, summary, tmp_path):
    page, file = tmp_path / "report.html", tmp_path / "summary.json"
    page.write_text("old")
    damaged = changed(summary, place, value)
    file.write_text(json.dumps(damaged))
    sentence = re.escape(f" is damaged: {fault}") + ".*; make it again with fiedler cluster$"

    with pytest.raises(ValueError, match=f"^the summary{sentence}"):
        write_report(damaged, page)
    with pytest.raises(ValueError, match=f"summary.json'{sentence}"):
        read_summary(file)
    assert page.read_text() == "old"


def test_a_summary_from_before_clusters_had_names_is_still_read(summary, tmp_path):
    older = changed(changed(changed(summary, ["column"], LACKING), ["clusters", 0, "name"], LACKING), ["seconds"], 2)

    assert write_report(older, tmp_path / "report.html").exists()


def test_the_page_of_a_summary_read_again_is_the_same(summary, tmp_path):
    again = read_summary(write_summary(summary, tmp_path / "summary.json"))

    assert render(again) == render(summary)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a summary, or it is damaged"),
        ("[1]", "is no summary of a clustering"),
        ('{"format": "something else"}', "is no summary of a clustering"),
        (f'{{"format": "fiedler clustering", "version": {VERSION + 1}}}', "update fiedler"),
        (
            f'{{"format": "fiedler clustering", "version": {VERSION}}}',
            "is damaged: it lacks n_rows, n_clusters; make it again with fiedler cluster",
        ),
    ],
)
def test_files_that_hold_no_summary_are_told_in_one_sentence(text, message, tmp_path):
    path = tmp_path / "summary.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_summary(path)


def test_a_summary_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no summary file"):
        read_summary(tmp_path / "summary.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="is not a summary, or it is damaged"):
        read_summary(tmp_path / "bytes.json")
