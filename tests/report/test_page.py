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

from fiedler.errors import DataNotFoundError, FileFormatError
from fiedler.plots.style import PALETTE, UNASSIGNED
from fiedler.report import read_summary, summarize, write_report, write_summary
from fiedler.report.page import (
    EXPORT,
    IMPORT,
    bundle_script,
    encode_array,
    encode_png,
    read_template,
    render,
)
from fiedler.report.summary import SUMMARY_VERSION

MARKUP = "</script><script>alert(1)</script><img src=x onerror=alert(1)> {{script}} \ud800 &amp; 'quoted' \"twice\""


@pytest.fixture(scope="module")
def summary():
    X = np.random.RandomState(0).normal(size=(30, 2))
    model = KMeans(2, n_init=1, random_state=0).fit(X)
    pixels = np.arange(30 * 12, dtype=np.uint8).reshape(30, 3, 4)
    return summarize(
        model,
        X,
        ids=[MARKUP] * 30,
        texts=[MARKUP] * 30,
        images=pixels,
        feature_names=[MARKUP, "b"],
        truth=[MARKUP] * 15 + ["other"] * 15,
        title=MARKUP,
        command=MARKUP,
        settings={MARKUP: MARKUP},
    )


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])


def test_the_page_contains_no_external_addresses(summary, tmp_path):
    page = write_report(summary, tmp_path / "report.html").read_text(encoding="utf-8")

    assert not re.search(r"https?://|//[a-z]+\.|@import|<link|<iframe|src=[\"']", page.replace("src=x", ""))
    assert "default-src 'none'" in page


def test_data_never_becomes_markup(summary):
    page = render(summary)

    assert page.count("<script") == 2  # the data and the script
    assert page.count("</script") == 2
    assert "<img" not in page
    assert data_of(page)["rows"]["ids"][0] == MARKUP.replace("\ud800", "?")  # unchanged, apart from the lone surrogate
    assert "{{script}}" in data_of(page)["title"]


def test_the_policy_contains_the_hash_of_the_script(summary):
    page = render(summary)
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL)[1]

    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page


def test_every_module_is_bundled_once_and_after_its_imports():
    script = bundle_script()
    modules = re.findall(r"^const \$(\w+) = ", script, re.MULTILINE)

    assert modules[-1] == "main"
    assert len(set(modules)) == len(modules)
    assert not re.search(r"^(import|export) ", script, re.MULTILINE)
    for position, name in enumerate(modules):
        text = read_template(f"script/{name}.js")
        for names, module in IMPORT.findall(text):
            imported = set(re.findall(r"\w+", names))
            assert module in modules[:position]
            assert imported <= set(EXPORT.findall(read_template(f"script/{module}.js")))
            assert imported <= set(re.findall(r"\w+", IMPORT.sub("", text)))  # every import is used


def test_the_page_uses_the_colours_of_the_plots(summary):
    page = render(summary)

    assert data_of(page)["colours"]["groups"] == list(PALETTE)
    assert data_of(page)["colours"]["unassigned"] == UNASSIGNED
    assert not re.search(r"#[0-9a-f]{6}\b", bundle_script())  # no colours are defined in the script


def test_encoded_arrays_can_be_decoded(summary):
    data = data_of(render(summary))

    x = np.frombuffer(base64.b64decode(data["rows"]["x"]), dtype="<u2")
    assert_array_equal(x, summary["rows"]["x"])
    labels = np.frombuffer(base64.b64decode(data["rows"]["labels"]), dtype="<u2")
    assert_array_equal(labels, summary["rows"]["labels"])
    assert encode_array([255.0], "uint8") == "/w=="


def test_encoded_png_contains_the_pixels(rng):
    pixels = rng.randint(256, size=(3, 5, 3)).astype(np.uint8)

    file = encode_png(pixels)

    assert file.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">IIBB", file[16:26]) == (5, 3, 8, 2)
    size = struct.unpack(">I", file[33:37])[0]
    lines = np.frombuffer(zlib.decompress(file[41 : 41 + size]), dtype=np.uint8).reshape(3, 16)
    assert_array_equal(lines[:, 0], 0)
    assert_array_equal(lines[:, 1:].reshape(3, 5, 3), pixels)


def test_the_image_of_thumbnails_begins_with_the_means(summary):
    sheet = data_of(render(summary))["thumbnails"]

    assert (sheet["width"], sheet["height"], sheet["n_means"], len(sheet["rows"])) == (4, 3, 2, 30)
    assert (sheet["columns"], sheet["lines"]) == (32, 1)
    assert base64.b64decode(sheet["png"]).startswith(b"\x89PNG")


LEVELS = {"groups": [0, 1, -1] * 10, "clusters": [[0, 0], [1, 0]], "p_values": [None, 0.5], "splits": [None, [0, 0, 1]]}


def test_levels_are_encoded_and_unassigned_rows_follow_the_last_group(summary, tmp_path):
    with_levels = {**summary, "levels": LEVELS}

    levels = data_of(render(with_levels))["levels"]

    assert np.frombuffer(base64.b64decode(levels["groups"]), "<u2").tolist() == [0, 1, 2] * 10
    assert levels["clusters"] == LEVELS["clusters"]
    assert read_summary(write_summary(with_levels, tmp_path / "summary.json")) == with_levels


@pytest.mark.parametrize(
    ("part", "value", "fault"),
    [
        ("groups", [2] * 30, "levels.groups[0] is not an integer from -1 to 1"),
        ("clusters", [[0, 0], [0]], "levels.clusters[1] has length 1, not 2"),
        ("p_values", [None, 2], "levels.p_values[1] is not a number from 0 to 1"),
        ("splits", [None, [0, 1]], "levels.splits[1] has length 2, not 3"),
    ],
)
def test_damaged_levels_are_refused(part, value, fault, summary, tmp_path):
    file = tmp_path / "summary.json"
    file.write_text(json.dumps({**summary, "levels": {**LEVELS, part: value}}))
    with pytest.raises(FileFormatError, match=re.escape(fault)):
        read_summary(file)


def test_a_failed_write_leaves_the_old_page(summary, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(ValueError, match="is not a summary of a clustering"):
        write_report({}, path)
    with pytest.raises(ValueError, match="Out of range float"):
        write_report({**summary, "settings": {"scale": float("nan")}}, path)

    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(FileNotFoundError, match="the folder"):
        write_report(summary, tmp_path / "nowhere" / "report.html")


MISSING = object()


def changed(summary, path, value):
    """The summary with another value at a path, or without it."""
    result = copy.deepcopy(summary)
    *outer, last = path
    part = result
    for key in outer:
        part = part[key]
    if value is MISSING:
        del part[last]
    else:
        part[last] = value
    return result


def zeros(size):
    return base64.b64encode(zlib.compress(bytes(size))).decode()


HISTORY = {"maximize": True, "iterations": [1, 2], "values": {}}
DAMAGES = [
    (("n_rows",), MISSING, "n_rows is missing"),
    (("n_rows",), True, "n_rows is not an integer of at least 1"),
    (("n_rows",), 29, "rows.x has length 30, not 29"),
    (("n_clusters",), 3, "clusters has length 2, not 3"),
    (("seconds",), float("nan"), "seconds is not a number"),
    (("column",), "pixel", "column is not 'term', 'feature' or 'column'"),
    (("rows",), [], "rows is not an object"),
    (("rows", "labels"), MISSING, "rows.labels is missing"),
    (("rows", "labels"), [0, 1], "rows.labels has length 2, not 30"),
    (("rows", "labels", 3), 7, "rows.labels[3] is not an integer from -1 to 1"),
    (("rows", "x", 0), 70_000, "rows.x[0] is not an integer from 0 to 65535"),
    (("rows", "ids", 2), 5, "rows.ids[2] is not a string"),
    (("rows", "confidence"), [2] * 30, "rows.confidence[0] is not a number from 0 to 1"),
    (("clusters", 1), "nonsense", "clusters[1] is not an object"),
    (("clusters", 1, "typical", 0), 30, "clusters[1].typical[0] is not an integer from 0 to 29"),
    (("clusters", 0, "terms"), [["ash"]], "clusters[0].terms[0] has length 1, not 2"),
    (("clusters", 0, "terms"), [[1, 2]], "clusters[0].terms[0][0] is not a string"),
    (("clusters", 0, "least_confident"), [{"row": 0}], "clusters[0].least_confident[0].confidence, "),
    (("clusters", 0, "name"), 5, "clusters[0].name is not a string"),
    (("history",), "nonsense", "history is not an object"),
    (("history",), HISTORY | {"values": {"objective": [1, "two"]}}, "history.values.objective[1] is not a number"),
    (("history",), HISTORY | {"values": {"cut": [1]}}, "history.values.cut has length 1, not 2"),
    (("evidence",), {"n_clusters": 2}, "evidence.candidates, "),
    (("spectrum",), {"values": [], "gap": 1}, "spectrum.gap is not an integer from 1 to 0"),
    (("texts", "values"), ["one"], "texts.values has length 1, not 30"),
    (("truth", "codes", 0), 2, "truth.codes[0] is not an integer from 0 to 1"),
    (("agreement", "counts", 0), [1], "agreement.counts[0] has length 1, not 2"),
    (("thumbnails", "pixels"), "no base64", "thumbnails.pixels is not the expected number of pixels"),
    (("thumbnails", "pixels"), zeros(32 * 12 - 1), "thumbnails.pixels is not the expected number of pixels"),
    (("model", "versions"), {}, "model.versions.fiedler is missing"),
]


@pytest.mark.parametrize(("path", "value", "fault"), DAMAGES, ids=[fault for *_, fault in DAMAGES])
def test_a_damaged_summary_file_is_refused(path, value, fault, summary, tmp_path):
    file = tmp_path / "summary.json"
    file.write_text(json.dumps(changed(summary, path, value)))
    message = re.escape(f" is damaged: {fault}") + ".*; create it again with fiedler cluster$"

    with pytest.raises(FileFormatError, match=f"summary.json'{message}") as error:
        read_summary(file)
    assert (error.value.code, error.value.fields["file"]) == ("damaged_summary", str(file))


def test_a_summary_read_from_its_file_gives_the_same_page(summary, tmp_path):
    again = read_summary(write_summary(summary, tmp_path / "summary.json"))

    assert render(again) == render(summary)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a valid summary file"),
        ("[1]", "is not a summary of a clustering"),
        ('{"format": "something else"}', "is not a summary of a clustering"),
        (f'{{"format": "fiedler clustering", "version": {SUMMARY_VERSION + 1}}}', "update fiedler"),
        ('{"format": "fiedler clustering", "version": -1}', "has version -1, but"),
        ('{"format": "fiedler clustering", "version": true}', "has version True, but"),
        ("[" * 100_000, "is not a valid summary file"),
        (
            f'{{"format": "fiedler clustering", "version": {SUMMARY_VERSION}}}',
            "is damaged: n_rows, n_clusters are missing; create it again with fiedler cluster",
        ),
    ],
)
def test_files_that_are_not_summaries_raise_an_error(text, message, tmp_path):
    path = tmp_path / "summary.json"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=message):
        read_summary(path)


def test_missing_and_undecodable_summaries_raise_an_error(tmp_path):
    with pytest.raises(DataNotFoundError, match="there is no summary file") as error:
        read_summary(tmp_path / "summary.json")
    assert error.value.code == "file_not_found"
    with pytest.raises(FileFormatError, match="it is a folder"):
        read_summary(tmp_path)
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileFormatError, match="is not a valid summary file"):
        read_summary(tmp_path / "bytes.json")
