import json
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
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
from fiedler.baselines import GNMF, NMFClustering
from fiedler.clustering import NClustersChoice
from fiedler.core.eigen import smallest_eigenpairs
from fiedler.report import contents, read_summary, summarize, write_summary
from fiedler.report import plane as planes
from fiedler.report.cards import cluster_sizes
from fiedler.report.contents import snippets, thumbnails
from fiedler.report.jsonable import jsonable
from fiedler.report.tsne import affinities, attraction, layout_rows, repulsion
from fiedler.text import DocumentVectorizer


class Fitted(BaseEstimator):
    """A clusterer after its fit."""

    def fit(self, X):
        return self


def fitted(labels=(), **found):
    """One with these labels and whatever else it found."""
    model = Fitted()
    model.__dict__ |= {"labels_": np.array(labels), **found}
    return model


@pytest.fixture(scope="module")
def blobs():
    X, y = make_blobs(90, centers=[[0, 0, 0], [7, 0, 0], [0, 7, 0]], random_state=0)
    return X - X.min(), y


@pytest.fixture(scope="module")
def counted(blobs):
    """The flagship, having counted the clusters, and its summary."""
    model = ManifoldClustering("auto", max_clusters=4, random_state=0).fit(blobs[0])
    return model, summarize(model, blobs[0], plane=blobs[0][:, :2])


@pytest.fixture
def five():
    """Three rows in a corner, two far off; the second row is torn between them."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.3], [4.0, 4.0], [4.0, 5.0]])
    Q = np.array([[0.9, 0.1], [0.55, 0.45], [0.901, 0.099], [0.2, 0.8], [0.0, 1.0]])
    return X, fitted([0, 0, 0, 1, 1], memberships_=Q)


# ------------------------------------------------------------------------------------------------------------ clusters


def test_the_means_of_features_are_shown_as_they_were_before_scaling():
    X = np.array([[10.0, 1], [12, 1], [90, 3], [92, 3]])
    model = KMeans(2, n_init=1, random_state=0).fit(X)

    shown = summarize(model, (X - X.mean(axis=0)) / X.std(axis=0), original=X, feature_names=["a", "b"])

    assert sorted(mean for one in shown["clusters"] for name, _, mean in one["features"] if name == "a") == [11, 91]


def test_figures_of_a_clustering_are_those_computed_by_hand(five):
    X, model = five

    summary = summarize(model, X)

    assert (summary["n_rows"], summary["n_clusters"], summary["n_features"], summary["n_unassigned"]) == (5, 2, 2, 0)
    assert_allclose(summary["confidence"], np.mean([0.9, 0.55, 0.901, 0.8, 1.0]), atol=1e-4)
    assert summary["in_doubt"] == 0
    one, other = summary["clusters"]
    assert (one["size"], one["share"], other["size"], other["share"]) == (3, 0.6, 2, 0.4)
    assert_allclose(other["confidence"], 0.9)


def test_sizes_count_empty_clusters_but_not_rows_without_one():
    found = cluster_sizes([2, 0, 0, -1], n_clusters=4)

    assert [one["size"] for one in found] == [2, 0, 1, 0]
    assert [one["share"] for one in found] == [0.5, 0, 0.25, 0]
    assert {one["confidence"] for one in found} == {None}
    assert [one["label"] for one in cluster_sizes([1, 0])] == [0, 1]


def test_typical_rows_are_the_most_confident_then_the_closest_to_the_mean(five):
    X, model = five
    one, other = summarize(model, X)["clusters"]

    assert one["typical"] == [0, 2, 1]  # 0 and 2 are as sure, to two digits; 0 is closer to the mean (1/3, 1/10)
    assert other["typical"] == [4, 3]


def test_without_memberships_only_the_distance_counts_and_nobody_is_doubtful(five):
    X, model = five
    del model.memberships_

    summary = summarize(model, X)

    assert summary["confidence"] is None
    assert summary["rows"]["confidence"] is None
    assert summary["clusters"][0]["typical"] == [0, 2, 1]  # |x - m|²: 0.121, 0.151, 0.454
    assert all(one["doubtful"] == [] and one["confidence"] is None for one in summary["clusters"])


def test_doubtful_rows_name_the_cluster_they_might_belong_to(five):
    X, model = five
    one, other = summarize(model, X)["clusters"]

    assert one["doubtful"][0] == {"row": 1, "confidence": 0.55, "other": 1, "share": 0.45}
    assert [each["row"] for each in other["doubtful"]] == [3]  # row 4 is sure


def test_features_are_ranked_by_their_standardised_difference(five):
    X, model = five
    X = np.column_stack([X, np.ones(5)])  # a constant tells nothing
    of_one = summarize(model, pd.DataFrame(X, columns=["a", "b", "c"]))["clusters"][0]["features"]

    apart = {name: (X[:3, i].mean() - X[:, i].mean()) / X[:, i].std() for i, name in enumerate("ab")}
    assert [name for name, _, _ in of_one] == sorted(apart, key=lambda name: -abs(apart[name]))
    assert_allclose([value for _, value, _ in of_one], [apart[name] for name, _, _ in of_one], atol=1e-4)


def test_a_difference_that_would_be_shown_as_none_is_not_listed():
    """(mean - mean of all) / sd is 1 for the first feature and 0.04 for the second."""
    X = np.array([[1.0, 0.52], [1, 0.52], [-1, 0.48], [-1, 0.48]]) + np.array([[0, 0.5], [0, -0.5]] * 2)
    features = summarize(fitted([0, 0, 1, 1]), X, feature_names=["a", "b"])["clusters"][0]["features"]

    assert [name for name, _, _ in features] == ["a"]


def test_clusters_have_the_names_they_are_given(five):
    X, model = five

    assert [one["name"] for one in summarize(model, X)["clusters"]] == [None, None]
    assert [one["name"] for one in summarize(model, X, names=["<b>ash</b>  tree", None])["clusters"]] == [
        "<b>ash</b> tree",
        None,
    ]
    assert [one["name"] for one in summarize(model, X, names=np.array([0, 1]))["clusters"]] == ["0", "1"]
    assert summarize(model, X, names=["a", "b", "c"])["clusters"][2]["size"] == 0  # a class without a row
    with pytest.raises(ValueError, match="names hold 1 entries, but 2 are needed, one a cluster"):
        summarize(model, X, names=["ash"])


def test_columns_are_terms_where_they_are_weights_of_terms(five):
    words = DocumentVectorizer()
    X = words.fit_transform(["cat mouse", "cat", "stocks bonds", "stocks"])
    model = fitted([0, 0, 1, 1])

    assert summarize(model, X, feature_names=words.get_feature_names_out())["column"] == "term"
    assert summarize(model, np.eye(4), texts=["cat"] * 4)["column"] == "feature"


def test_a_cluster_may_be_empty_and_rows_may_have_none(five):
    X, _ = five
    summary = summarize(fitted([0, 0, -1, 2, 2]), X, truth=["a", "a", "a", "b", "b"], images=np.zeros((5, 4, 4)))

    assert [one["size"] for one in summary["clusters"]] == [2, 0, 2]
    assert summary["clusters"][1]["typical"] == []
    assert summary["n_unassigned"] == 1
    assert summary["agreement"]["clusters"] == [0, 2, -1]
    assert summary["agreement"]["counts"] == [[2, 0, 1], [0, 2, 0]]


def test_no_row_need_have_a_cluster(five):
    summary = summarize(fitted([-1] * 5), five[0], truth=[0, 0, 0, 1, 1], images=np.zeros((5, 4, 4)))

    assert (summary["n_clusters"], summary["n_unassigned"], summary["clusters"]) == (0, 5, [])


def test_documents_are_described_by_their_terms_from_columns_or_from_texts():
    texts = ["cat mouse cat", "cat mouse", "stocks bonds", "stocks stocks bonds"]
    words = DocumentVectorizer()
    X, model = words.fit_transform(texts), fitted([0, 0, 1, 1])

    by_columns = summarize(model, X, feature_names=words.get_feature_names_out())
    by_texts = summarize(model, np.eye(4), texts=texts)

    for summary in (by_columns, by_texts):
        assert [[term for term, _ in one["terms"]] for one in summary["clusters"]] == [
            ["cat", "mouse"],
            ["stocks", "bonds"],
        ]
        assert all(one["features"] == [] for one in summary["clusters"])
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
def test_every_model_has_a_summary_that_json_gives_back(model, blobs, tmp_path):
    X, y = blobs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few iterations
        model.fit(X)

    summary = summarize(model, X, truth=y, plane=X[:, :2], seconds=1.5, settings={"scaled": np.bool_(True)})

    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert read_summary(write_summary(summary, tmp_path / "summary.json")) == summary
    assert sum(one["size"] for one in summary["clusters"]) == 90
    assert (summary["confidence"] is None) is not hasattr(model, "memberships_")
    assert (summary["history"] is None) is not hasattr(model, "history_")
    assert (summary["story"] is None) is not hasattr(model, "report")
    assert type(model).__name__ in summary["reproduce"]
    assert summary["settings"] == {"scaled": True}


def test_the_history_is_split_into_likelihood_and_penalty(blobs):
    model = LapGMM(3, random_state=0).fit(blobs[0])
    found = summarize(model, blobs[0], plane=blobs[0][:, :2])["history"]

    assert_allclose(found["objective"], np.subtract(found["likelihood"], found["penalty"]))
    assert (found["objective"][-1], len(found["objective"])) == (model.objective_, model.n_iter_)


def test_a_history_by_columns_is_kept_as_it_is():
    found = summarize(fitted([0, 1], history_={"objective": [3.0, 2.0], "cut": [0.5, np.nan]}), np.eye(2))["history"]

    assert found == {"objective": [3.0, 2.0], "cut": [0.5, None]}


def test_the_spectrum_is_that_of_the_graph_with_its_widest_gap(counted):
    model, summary = counted
    values = smallest_eigenpairs(model.graph_, 9).values

    assert_allclose(summary["spectrum"]["values"], np.maximum(values, 0), atol=1e-5)
    assert summary["spectrum"]["gap"] == np.argmax(np.diff(values)) + 1 == 3


def test_the_evidence_for_the_number_of_clusters_comes_along(counted):
    model, summary = counted

    assert summary["evidence"]["candidates"] == [2, 3, 4]
    assert summary["evidence"]["n_clusters"] == model.n_clusters_ == 3
    assert summary["evidence"]["stability"] == model.evidence_.stability
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_evidence_that_is_given_takes_the_place_of_the_models(counted, five):
    model, _ = counted
    given = NClustersChoice(2, "eigengap", [2, 3], gaps=[0.3, np.nan])

    assert summarize(five[1], five[0], evidence=given)["evidence"]["gaps"] == [0.3, None]
    beside = summarize(model, np.zeros((90, 2)), plane=np.zeros((90, 2)), evidence=given)["evidence"]
    assert (beside["n_clusters"], beside["candidates"]) == (2, [2, 3])
    assert summarize(fitted([0, 1], evidence_={0.1: "of something else"}), np.eye(2))["evidence"] is None


def test_agreement_is_scored_and_counted_with_clusters_in_matching_order():
    found = summarize(fitted([1, 1, 0, 0, 0]), np.eye(5)[:, :2], truth=["a", "a", "a", "b", "b"])

    assert found["truth"] == {"classes": ["a", "b"], "codes": [0, 0, 0, 1, 1]}
    assert found["agreement"]["scores"]["accuracy"] == 0.8
    assert found["agreement"]["clusters"] == [1, 0]
    assert found["agreement"]["counts"] == [[2, 1], [0, 2]]


def test_a_graph_alone_can_be_summarised(blobs):
    graph = KNNGraph(5, connect="mst").build(blobs[0])
    summary = summarize(ManifoldClustering(3, random_state=0).fit(graph), graph)

    assert summary["n_features"] is None
    assert len(summary["rows"]["x"]) == 90
    assert len(summary["clusters"][0]["typical"]) == 4


def test_a_long_parameter_is_shown_by_its_shape(blobs):
    X, y = blobs
    model = GaussianMixture(3, init=y, random_state=0).fit(X)

    assert summarize(model, X, plane=X[:, :2])["model"]["parameters"]["init"] == "array of shape (90,)"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"texts": ["a"]}, "texts hold 1 entries, but 5 are needed, one a row"),
        ({"ids": ["a"]}, "ids hold 1 entries, but 5 are needed, one a row"),
        ({"truth": [0]}, "truth hold 1 entries, but 5 are needed"),
        ({"plane": np.zeros((5, 3))}, r"plane must be numbers of shape \(5, 2\), two a row; got shape \(5, 3\)"),
        ({"images": np.zeros((5, 4))}, r"images must have shape \(5, height, width\)"),
        ({"images": np.zeros((5, 4, 4, 2))}, r"images must have shape \(5, height, width\)"),
    ],
)
def test_what_does_not_fit_the_rows_is_refused(given, message, five):
    with pytest.raises(ValueError, match=message):
        summarize(five[1], five[0], **given)


def test_plain_data_is_all_that_is_kept():
    assert jsonable(np.array([1.0, np.inf])) == [1.0, None]
    assert jsonable("half a pair \ud800") == "half a pair ?"
    assert len(jsonable({1: "x" * 1000})["1"]) == 240


# ------------------------------------------------------------------------------------------------------------- budgets


def test_more_texts_are_shorter_and_too_many_are_kept_for_cards_alone(monkeypatch):
    monkeypatch.setattr(contents, "TEXT_BYTES", 5000)
    texts = ["word " * 100] * 200

    few, many, most = (snippets(texts[:size], [3]) for size in (10, 100, 200))

    assert (len(few["values"]), few["length"], len(few["values"][0])) == (10, 240, 240)
    assert (many["rows"], many["length"], len(many["values"][0]), len(many["values"][3])) == (None, 50, 50, 240)
    assert (most["rows"], len(most["values"])) == ([3], 1)


def test_thumbnails_are_block_means_and_bytes():
    image = np.arange(80 * 80, dtype=float).reshape(1, 80, 80)

    found = thumbnails(image, 1)

    assert found.shape == (1, 40, 40, 1)
    blocks = image.reshape(40, 2, 40, 2).mean(axis=(1, 3))
    assert_allclose(found[0, :, :, 0], 255 * (blocks - blocks.min()) / np.ptp(blocks), atol=0.51)
    bytes_ = np.full((2, 3, 5, 3), 7, dtype=np.uint8)
    assert_array_equal(thumbnails(bytes_, 2), bytes_)  # bytes stay as they are


def test_thumbnails_of_cards_are_always_kept(monkeypatch, rng):
    monkeypatch.setattr(contents, "MOST_THUMBNAILS", 10)
    X = rng.normal(size=(60, 2))
    summary = summarize(fitted([0, 1] * 30), X, images=rng.normal(size=(60, 3, 3)))

    on_cards = {row for one in summary["clusters"] for row in one["typical"]}
    assert len(on_cards) == 20
    assert on_cards == set(summary["thumbnails"]["rows"])  # no room for others


# ----------------------------------------------------------------------------------------------------------- the plane


def test_attraction_is_the_printed_sum(rng):
    W, Y = KNNGraph(4).build(rng.normal(size=(20, 3))).weights, rng.normal(size=(20, 2))
    P = affinities(sp.csr_array(W))

    apart = Y[:, None] - Y[None]
    pull = P.toarray() / (1 + (apart**2).sum(axis=2))

    assert_allclose(P.sum(), 1)
    assert_allclose(attraction(P, P.tocoo().row, Y), (pull[:, :, None] * apart).sum(axis=1), atol=1e-12)


@pytest.mark.parametrize(("spread", "allowed"), [(0.001, 0.01), (1.0, 0.03), (8.0, 0.2)])
def test_repulsion_through_the_grid_is_the_printed_sum_nearly(spread, allowed, rng):
    Y = spread * rng.normal(size=(300, 2))

    apart = Y[:, None] - Y[None]
    q = 1 / (1 + (apart**2).sum(axis=2))
    printed = (q[:, :, None] ** 2 * apart).sum(axis=1) / (q.sum() - 300)

    assert np.linalg.norm(repulsion(Y) - printed) < allowed * np.linalg.norm(printed)


def test_two_features_are_drawn_as_they_are(five):
    X, model = five
    rows = summarize(model, X)["rows"]

    assert_allclose(np.array(rows["x"]) / 65535, X[:, 0] / 5, atol=1e-5)  # both axes in the unit of the longer one
    assert_allclose(np.array(rows["y"]) / 65535, X[:, 1] / 5, atol=1e-5)


def near_its_own(xy, y):
    """The share of rows whose nearest row is of their cluster."""
    distances = np.linalg.norm(xy[:, None] - xy[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    return (y[distances.argmin(axis=1)] == y).mean()


def test_clusters_lie_apart_in_the_plane_and_a_seed_fixes_it(blobs):
    X, y = blobs
    one, again = (layout_rows(fitted(), X, random_state=3).points for _ in range(2))

    assert_array_equal(one, again)
    assert near_its_own(one, y) > 0.95


def test_sparse_rows_have_a_plane_too(blobs):
    assert near_its_own(layout_rows(fitted(), sp.csr_array(blobs[0])).points, blobs[1]) > 0.95


def test_rows_beyond_the_sample_are_placed_with_their_like(blobs, monkeypatch):
    monkeypatch.setattr(planes, "LAID_OUT", 45)
    drawn = layout_rows(fitted(), blobs[0])

    assert "45 rows" in drawn.how
    assert near_its_own(drawn.points, blobs[1]) > 0.95


@pytest.mark.parametrize("n", [1, 2, 3, 12])
def test_few_rows_and_equal_ones_have_a_place(n, rng):
    assert np.isfinite(layout_rows(fitted(), rng.normal(size=(n, 4))).points).all()
    assert np.isfinite(layout_rows(fitted(), np.repeat(np.eye(4), n, axis=0)).points).all()
