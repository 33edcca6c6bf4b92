import json
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from fiedler import (
    LCGMM,
    NLE,
    EmbedKMeans,
    GaussianMixture,
    KNNGraph,
    LapGMM,
    LPIClustering,
    ManifoldClustering,
    SpectralClustering,
)
from fiedler._records import FitHistory
from fiedler.core.eigen import smallest_eigenpairs
from fiedler.manifold import NClustersChoice
from fiedler.manifold.explain import describe_columns
from fiedler.report import cards as contents
from fiedler.report import read_summary, summarize, write_summary
from fiedler.report.cards import cluster_sizes, jsonable, shrink_images, snippets
from fiedler.report.page import render
from fiedler.text import DocumentVectorizer
from fiedler_papers.baselines import GNMF, NMFClustering


class Fitted(BaseEstimator):
    """A fitted clusterer."""

    def fit(self, X):
        return self


def fitted(labels=(), **attributes):
    """A clusterer with these labels and other fitted attributes."""
    model = Fitted()
    model.__dict__ |= {"labels_": np.array(labels), **attributes}
    return model


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(90, centers=[[0, 0, 0], [7, 0, 0], [0, 7, 0]], random_state=0)
    return X - X.min(), y


@pytest.fixture(scope="module")
def auto_model(blobs):
    """A model that chose the number of clusters, and its summary."""
    model = ManifoldClustering("auto", max_clusters=4, random_state=0).fit(blobs[0])
    return model, summarize(model, blobs[0], layout=blobs[0][:, :2])


@pytest.fixture
def five():
    """Three rows close together and two far from them; the second row is between the clusters."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.3], [4.0, 4.0], [4.0, 5.0]])
    Q = np.array([[0.9, 0.1], [0.55, 0.45], [0.901, 0.099], [0.2, 0.8], [0.0, 1.0]])
    return X, fitted([0, 0, 0, 1, 1], memberships_=Q)


# ------------------------------------------------------------------------------------------------------------ clusters


def test_the_means_of_features_are_those_before_scaling():
    X = np.array([[10.0, 1], [12, 1], [90, 3], [92, 3]])
    model = KMeans(2, n_init=1, random_state=0).fit(X)

    summary = summarize(model, (X - X.mean(axis=0)) / X.std(axis=0), original=X, feature_names=["a", "b"])

    contrasts = [one for cluster in summary["clusters"] for one in cluster["contrasts"]]
    assert sorted(one["value"] for one in contrasts if one["column"] == "a") == ["11", "91"]


def test_sizes_and_confidence_equal_a_worked_example(five):
    X, model = five

    summary = summarize(model, X)

    assert (summary["n_rows"], summary["n_clusters"], summary["n_features"], summary["n_unassigned"]) == (5, 2, 2, 0)
    assert_allclose(summary["confidence"], np.mean([0.9, 0.55, 0.901, 0.8, 1.0]), atol=1e-4)
    assert summary["uncertain_share"] == 0
    first, second = summary["clusters"]
    assert (first["size"], first["share"], second["size"], second["share"]) == (3, 0.6, 2, 0.4)
    assert_allclose(second["confidence"], 0.9)


def test_sizes_include_empty_clusters_but_not_unassigned_rows():
    clusters = cluster_sizes(np.array([2, 0, 0, -1]), None, 4)

    assert [cluster["size"] for cluster in clusters] == [2, 0, 1, 0]
    assert [cluster["share"] for cluster in clusters] == [0.5, 0, 0.25, 0]
    assert {cluster["confidence"] for cluster in clusters} == {None}
    assert [cluster["label"] for cluster in cluster_sizes(np.array([1, 0]), None, 2)] == [0, 1]


def test_typical_rows_are_the_most_confident_then_the_closest_to_the_mean(five):
    X, model = five
    first, second = summarize(model, X)["clusters"]

    # 0 and 2 are equally confident to two digits; 0 is closer to the mean (1/3, 1/10)
    assert first["typical"] == [0, 2, 1]
    assert second["typical"] == [4, 3]


def test_without_memberships_typical_rows_are_those_closest_to_the_mean(five):
    X, model = five
    del model.memberships_

    summary = summarize(model, X)

    assert summary["confidence"] is None
    assert summary["rows"]["confidence"] is None
    assert summary["clusters"][0]["typical"] == [0, 2, 1]  # |x - m|²: 0.121, 0.151, 0.454
    assert all(cluster["least_confident"] == [] and cluster["confidence"] is None for cluster in summary["clusters"])


def test_least_confident_rows_name_the_second_cluster(five):
    X, model = five
    first, second = summarize(model, X)["clusters"]

    assert first["least_confident"][0] == {"row": 1, "confidence": 0.55, "other": 1, "share": 0.45}
    assert [entry["row"] for entry in second["least_confident"]] == [3]  # row 4 has a confidence of 1


def test_features_are_ranked_by_their_standardised_difference(five):
    X, model = five
    X = np.column_stack([X, np.ones(5)])  # a constant feature is not listed
    contrasts = summarize(model, pd.DataFrame(X, columns=["a", "b", "c"]))["clusters"][0]["contrasts"]

    differences = {name: (X[:3, i].mean() - X[:, i].mean()) / X[:, i].std() for i, name in enumerate("ab")}
    assert [one["column"] for one in contrasts] == sorted(differences, key=lambda name: -abs(differences[name]))
    assert_allclose(
        [one["difference"] for one in contrasts], [differences[one["column"]] for one in contrasts], atol=1e-4
    )


def test_a_difference_that_would_be_displayed_as_zero_is_not_listed():
    """(mean - mean of all) / sd is 1 for the first feature and 0.04 for the second."""
    X = np.array([[1.0, 0.52], [1, 0.52], [-1, 0.48], [-1, 0.48]]) + np.array([[0, 0.5], [0, -0.5]] * 2)
    contrasts = summarize(fitted([0, 0, 1, 1]), X, feature_names=["a", "b"])["clusters"][0]["contrasts"]

    assert [one["column"] for one in contrasts] == ["a"]


def test_clusters_have_the_given_names(five):
    X, model = five

    assert [cluster["name"] for cluster in summarize(model, X, names=["<b>ash</b>  tree", None])["clusters"]] == [
        "<b>ash</b> tree",
        None,
    ]
    assert [cluster["name"] for cluster in summarize(model, X, names=np.array([0, 1]))["clusters"]] == ["0", "1"]
    assert summarize(model, X, names=["a", "b", "c"])["clusters"][2]["size"] == 0  # a class without rows
    with pytest.raises(ValueError, match="names has 1 entries, but 2 are required, one per cluster"):
        summarize(model, X, names=["ash"])


def test_clusters_without_a_name_are_called_after_their_columns_if_these_have_names(five):
    X, model = five
    named = lambda **options: [cluster["name"] for cluster in summarize(model, X, **options)["clusters"]]  # noqa: E731

    assert named() == named(ids=list("abcde")) == [None, None]
    assert named(feature_names=["width", "height"]) == ["low height, low width", "high height, high width"]
    assert named(original=pd.DataFrame({"kind": list("aaabb")})) == ["kind = a", "kind = b"]


def test_columns_are_listed_by_cluster_also_those_that_were_not_compared(five):
    X, model = five
    table = {"size": X[:, 0], "kind": ["old", "old", "new", "new", "new"]}

    profiles = describe_columns(table, model.labels_, 2, used=["size"])
    lines = summarize(model, X, original=profiles)["profiles"]

    assert [(line["column"], line["level"], line["used"]) for line in lines] == [
        ("size", None, True),
        ("kind", "new", False),
        ("kind", "old", False),
    ]
    assert [line["values"] for line in lines] == [["0.3333", "4"], ["33 %", "100 %"], ["67 %", "0 %"]]
    assert lines[1]["overall"] == "60 %"


def test_cells_and_uses_of_the_columns_of_a_table_are_included():
    rng = np.random.RandomState(0)
    kind = np.arange(80) % 2
    table = pd.DataFrame(
        {
            "customer": [f"c{i}" for i in range(80)],
            "weight": [f"{value:.1f} kg" for value in 5 * kind + rng.uniform(10, 12, size=80)],
            "plan": np.where(kind, "pro", "basic"),
            "joined": pd.to_datetime("2020-01-01") + pd.to_timedelta(400 * kind, "D"),
        }
    )
    table.loc[3, "plan"] = None
    model = ManifoldClustering(2, random_state=0).fit(table)

    summary = summarize(model, table, layout=np.zeros((80, 2)))

    assert (summary["n_features"], summary["column"]) == (4, "column")
    assert summary["columns"][:3] == [
        {"name": "customer", "use": "left out", "why": "id: another value in every row"},
        {"name": "weight", "use": "number", "why": "in kg"},
        {"name": "plan", "use": "category", "why": "2 different values, 1 missing"},
    ]
    weight, plan, joined = summary["cells"]
    assert (weight["unit"], weight["values"][5]) == ("kg", float(table["weight"][5].split()[0]))
    assert [plan["levels"][code] for code in plan["values"][:3]] == table["plan"][:3].tolist()
    assert plan["values"][3] is None
    assert joined["values"][:2] == [18262, 18662]
    assert {line["column"]: line["overall"] for line in summary["profiles"]}["weight"].endswith(" kg")
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_cells_fit_into_their_budget(monkeypatch, rng):
    monkeypatch.setattr("fiedler.report.cards.CELL_BUDGET", 100)
    X, y = rng.normal(size=(40, 4)) + np.array([0, 9, 0, 9]) * (np.arange(40) % 2)[:, None], np.arange(40) % 2
    columns = lambda **options: summarize(fitted(y), X, layout=X[:, :2], **options)["cells"]  # noqa: E731

    assert [one["column"] for one in columns(feature_names=list("abcd"))] == ["b", "d"]  # those that differ most
    assert columns() is None


def test_clusters_of_rows_without_names_are_drawn(blobs):
    X = np.random.RandomState(0).normal(size=(60, 200)) + 3 * (np.arange(60) % 2)[:, None]
    summary = summarize(fitted(np.arange(60) % 2), X, layout=X[:, :2])

    shapes = [cluster["shape"] for cluster in summary["clusters"]]
    assert [len(shape) for shape in shapes] == [120, 120]
    assert np.mean(shapes[0]) < -0.5 < 0.5 < np.mean(shapes[1])
    few = summarize(fitted(blobs[1]), blobs[0], layout=blobs[0][:, :2])
    assert [cluster["shape"] for cluster in few["clusters"]] == [None] * 3


def test_contested_rows_are_those_on_which_the_fewest_agree(five):
    X, model = five
    assert summarize(model, X)["contested"] is None

    model.row_agreement_ = np.array([1.0, 0.4, 0.3, 0.5, 0.9])

    expected = {"count": 2, "rows": [{"row": 2, "agreement": 0.3}, {"row": 1, "agreement": 0.4}]}
    assert summarize(model, X)["contested"] == expected


def test_named_sparse_columns_are_called_terms(five):
    words = DocumentVectorizer()
    X = words.fit_transform(["cat mouse", "cat", "stocks bonds", "stocks"])
    model = fitted([0, 0, 1, 1])

    assert summarize(model, X, feature_names=words.get_feature_names_out())["column"] == "term"
    assert summarize(model, np.eye(4), texts=["cat"] * 4)["column"] == "feature"


def test_empty_clusters_and_unassigned_rows(five):
    X, _ = five
    summary = summarize(fitted([0, 0, -1, 2, 2]), X, truth=["a", "a", "a", "b", "b"], images=np.zeros((5, 4, 4)))

    assert [cluster["size"] for cluster in summary["clusters"]] == [2, 0, 2]
    assert summary["clusters"][1]["typical"] == []
    assert summary["n_unassigned"] == 1
    assert summary["agreement"]["clusters"] == [0, 2, -1]
    assert summary["agreement"]["counts"] == [[2, 0, 1], [0, 2, 0]]


def test_all_rows_unassigned(five):
    summary = summarize(fitted([-1] * 5), five[0], truth=[0, 0, 0, 1, 1], images=np.zeros((5, 4, 4)))

    assert (summary["n_clusters"], summary["n_unassigned"], summary["clusters"]) == (0, 5, [])


def test_clusters_of_documents_are_described_by_terms_of_columns_or_texts():
    texts = ["cat mouse cat", "cat mouse", "stocks bonds", "stocks stocks bonds"]
    words = DocumentVectorizer()
    X, model = words.fit_transform(texts), fitted([0, 0, 1, 1])

    by_columns = summarize(model, X, feature_names=words.get_feature_names_out())
    by_texts = summarize(model, np.eye(4), texts=texts)

    for summary in (by_columns, by_texts):
        assert [[term for term, _ in cluster["terms"]] for cluster in summary["clusters"]] == [
            ["cat", "mouse"],
            ["stocks", "bonds"],
        ]
        assert all(cluster["contrasts"] == [] for cluster in summary["clusters"])
    assert summarize(model, np.eye(4), texts=["", "?", "1", "2"])["clusters"][0]["terms"] == []


# ------------------------------------------------------------------------------------------------- every kind of model

MODELS = [
    ManifoldClustering(3, random_state=0),
    SpectralClustering(3, random_state=0),
    LapGMM(3, random_state=0),
    LCGMM(3, random_state=0),
    GaussianMixture(3, random_state=0),
    LPIClustering(3, random_state=0),
    NLE(3, n_init=1, max_iter=50, random_state=0),
    EmbedKMeans(3, random_state=0),
    NMFClustering(3, random_state=0),
    GNMF(3, n_init=1, max_iter=20, random_state=0),
    KMeans(3, n_init=1, random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_the_summary_of_every_model_survives_json(model, blobs, tmp_path):
    X, y = blobs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # too few iterations
        model.fit(X)

    summary = summarize(model, X, truth=y, layout=X[:, :2], seconds=1.5, settings={"scaled": np.bool_(True)})

    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert read_summary(write_summary(summary, tmp_path / "summary.json")) == summary
    assert sum(cluster["size"] for cluster in summary["clusters"]) == 90
    assert (summary["confidence"] is None) is not hasattr(model, "memberships_")
    assert (summary["history"] is None) is not hasattr(model, "history_")
    assert (summary["explanation"] is None) is not hasattr(model, "report")
    assert type(model).__name__ in summary["reproduce"]
    assert summary["settings"] == {"scaled": True}


def test_the_history_contains_likelihood_and_penalty(blobs):
    model = LapGMM(3, random_state=0).fit(blobs[0])
    values = summarize(model, blobs[0], layout=blobs[0][:, :2])["history"]["values"]

    assert_allclose(values["objective"], np.subtract(values["likelihood"], values["penalty"]))
    assert (values["objective"][-1], len(values["objective"])) == (model.objective_, model.n_iter_)


def test_the_history_contains_objective_terms_and_iterations():
    history = FitHistory([3.0, 2.0], maximize=False, terms={"cut": [0.5, np.nan]}, iterations=[0, 10])

    assert summarize(fitted([0, 1], history_=history), np.eye(2))["history"] == {
        "maximize": False,
        "iterations": [0, 10],
        "values": {"objective": [3.0, 2.0], "cut": [0.5, None]},
    }
    one_value = fitted([0, 1], history_=FitHistory([3.0], maximize=False))
    assert summarize(one_value, np.eye(2))["history"] is None


def test_the_spectrum_is_that_of_the_graph(auto_model):
    model, summary = auto_model
    values = smallest_eigenpairs(model.graph_, 9).values

    assert_allclose(summary["spectrum"]["values"], np.maximum(values, 0), atol=1e-5)
    assert summary["spectrum"]["gap"] == np.argmax(np.diff(values)) + 1 == 3


def test_the_evidence_for_the_number_of_clusters_is_included(auto_model):
    model, summary = auto_model

    assert summary["evidence"]["candidates"] == [2, 3, 4]
    assert summary["evidence"]["n_clusters"] == model.n_clusters_ == 3
    for name in ("stability", "modularity", "valley", "score"):
        assert summary["evidence"][name] == getattr(model.evidence_, name)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_one_cluster_has_no_confidence():
    """All memberships are 1, which says nothing; the page says that no clusters were found."""
    evidence = NClustersChoice(1, "one cluster", [2, 3])
    model = fitted([0] * 5, memberships_=np.ones((5, 1)), evidence_=evidence)

    summary = summarize(model, np.arange(10.0).reshape(5, 2))

    assert summary["confidence"] is summary["uncertain_share"] is summary["rows"]["confidence"] is None
    assert summary["clusters"][0]["confidence"] is None
    assert summary["evidence"]["by"] == "one cluster"
    assert f'NOT_FOUND = "{evidence.sentence}"' in render(summary)


def test_levels_are_groups_and_the_cluster_of_each_at_every_level(auto_model):
    model, summary = auto_model

    levels = summary["levels"]

    groups, table = np.array(levels["groups"]), model.levels_
    for k, clusters in enumerate(levels["clusters"], start=1):
        assert_array_equal(np.array(clusters)[groups], model.at(k).labels_)
    assert levels["p_values"] == [None, *table["p_value"]]
    assert levels["splits"] == [None, *([split, *into] for split, into in zip(table["split"], table["into"]))]


def test_levels_too_fine_for_a_map_and_models_without_levels_have_none(auto_model, blobs, monkeypatch, five):
    monkeypatch.setattr("fiedler.report.summary.MAX_LEVEL", 2)
    assert len(summarize(auto_model[0], blobs[0], layout=blobs[0][:, :2])["levels"]["clusters"]) == 2
    assert summarize(five[1], five[0])["levels"] is None


def test_given_evidence_replaces_that_of_the_model(auto_model, five):
    model, _ = auto_model
    evidence = NClustersChoice(2, "score", [2, 3], valley=[0.3, np.nan])

    assert summarize(five[1], five[0], evidence=evidence)["evidence"]["valley"] == [0.3, None]
    replaced = summarize(model, np.zeros((90, 2)), layout=np.zeros((90, 2)), evidence=evidence)["evidence"]
    assert (replaced["n_clusters"], replaced["candidates"]) == (2, [2, 3])
    assert summarize(fitted([0, 1], evidence_={0.1: "about something else"}), np.eye(2))["evidence"] is None


def test_agreement_contains_scores_and_counts_in_matching_order():
    summary = summarize(fitted([1, 1, 0, 0, 0]), np.eye(5)[:, :2], truth=["a", "a", "a", "b", "b"])

    assert summary["truth"] == {"classes": ["a", "b"], "codes": [0, 0, 0, 1, 1]}
    assert summary["agreement"]["scores"]["accuracy"] == 0.8
    assert summary["agreement"]["clusters"] == [1, 0]
    assert summary["agreement"]["counts"] == [[2, 1], [0, 2]]


def test_a_clustering_of_a_graph_can_be_summarised(blobs):
    graph = KNNGraph(5, connect="mst").build(blobs[0])
    summary = summarize(ManifoldClustering(3, random_state=0).fit(graph), graph)

    assert summary["n_features"] is None
    assert len(summary["rows"]["x"]) == 90
    assert len(summary["clusters"][0]["typical"]) == 4


def test_a_long_parameter_is_shown_by_its_shape(blobs):
    X, y = blobs
    model = GaussianMixture(3, init=y, random_state=0).fit(X)

    assert summarize(model, X, layout=X[:, :2])["model"]["parameters"]["init"] == "array of shape (90,)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"texts": ["a"]}, "texts has 1 entries, but 5 are required, one per row"),
        ({"ids": ["a"]}, "ids has 1 entries, but 5 are required, one per row"),
        ({"truth": [0]}, "truth has 1 entries, but 5 are required"),
        ({"layout": np.zeros((5, 3))}, r"layout must be an array of numbers of shape \(5, 2\), .*; got shape \(5, 3\)"),
        ({"images": np.zeros((5, 4))}, r"images must have shape \(5, height, width\)"),
        ({"images": np.zeros((5, 4, 4, 2))}, r"images must have shape \(5, height, width\)"),
    ],
)
def test_input_that_does_not_match_the_rows_raises_an_error(options, message, five):
    with pytest.raises(ValueError, match=message):
        summarize(five[1], five[0], **options)


def test_jsonable_converts_arrays_texts_and_keys():
    assert jsonable(np.array([1.0, np.inf])) == [1.0, None]
    assert jsonable("half a pair \ud800") == "half a pair ?"
    assert len(jsonable({1: "x" * 1000})["1"]) == 240


# ------------------------------------------------------------------------------------------------------------- budgets


def test_many_texts_are_shortened_and_too_many_are_included_for_cards_only(monkeypatch):
    monkeypatch.setattr(contents, "TEXT_BUDGET", 5000)
    texts = ["word " * 100] * 200

    few, many, too_many = (snippets(texts[:size], [3]) for size in (10, 100, 200))

    assert (len(few["values"]), few["length"], len(few["values"][0])) == (10, 240, 240)
    assert (many["rows"], many["length"], len(many["values"][0]), len(many["values"][3])) == (None, 50, 50, 240)
    assert (too_many["rows"], len(too_many["values"])) == ([3], 1)


def test_thumbnails_are_block_means_in_bytes():
    image = np.arange(80 * 80, dtype=float).reshape(1, 80, 80)

    pixels = shrink_images(image, 1)

    assert pixels.shape == (1, 40, 40, 1)
    blocks = image.reshape(40, 2, 40, 2).mean(axis=(1, 3))
    assert_allclose(pixels[0, :, :, 0], 255 * (blocks - blocks.min()) / np.ptp(blocks), atol=0.51)
    bytes_ = np.full((2, 3, 5, 3), 7, dtype=np.uint8)
    assert_array_equal(shrink_images(bytes_, 2), bytes_)  # bytes are not rescaled


def test_thumbnails_on_cards_are_always_included(monkeypatch, rng):
    monkeypatch.setattr(contents, "MAX_THUMBNAILS", 10)
    X = rng.normal(size=(60, 2))
    summary = summarize(fitted([0, 1] * 30), X, images=rng.normal(size=(60, 3, 3)))

    on_cards = {row for cluster in summary["clusters"] for row in cluster["typical"]}
    assert len(on_cards) == 20
    assert on_cards == set(summary["thumbnails"]["rows"])  # no room for others


# ---------------------------------------------------------------------------------------------------------- the layout


def test_two_features_are_the_layout(five):
    X, model = five
    rows = summarize(model, X)["rows"]

    assert_allclose(np.array(rows["x"]) / 65535, X[:, 0] / 5, atol=1e-5)  # both axes have the scale of the longer one
    assert_allclose(np.array(rows["y"]) / 65535, X[:, 1] / 5, atol=1e-5)


@pytest.mark.parametrize("layout", ["pca", "spectral"])
def test_layouts_can_be_chosen_by_name(layout, auto_model, blobs):
    summary = summarize(auto_model[0], blobs[0], layout=layout)

    assert summary["layout"] == {"pca": "principal components", "spectral": "spectral coordinates"}[layout]


def test_more_than_two_features_are_laid_out_by_tsne(auto_model, blobs):
    assert summarize(auto_model[0], blobs[0])["layout"] == "t-SNE of the graph"
    assert summarize(KMeans(3, n_init=1).fit(blobs[0]), blobs[0])["layout"] == "t-SNE of 12 nearest neighbours"


def test_classes_can_be_given_as_codes_and_names(blobs):
    X, y = blobs[:2]
    names = ["ash", "beech", "cedar"]
    model = SpectralClustering(3, random_state=0).fit(X)

    by_name, by_code = (
        summarize(model, X, truth=np.asarray(names)[y]),
        summarize(model, X, truth=y, class_names=names),
    )

    assert by_name["truth"] == by_code["truth"]
    assert by_name["agreement"] == by_code["agreement"]
