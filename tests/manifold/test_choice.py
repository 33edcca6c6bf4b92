"""Views, their comparison and the choice by consensus."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.datasets import make_blobs

import fiedler
from fiedler import ManifoldClustering, PairwiseConstraints
from fiedler.core.arrays import to_numpy
from fiedler.manifold import choice as comparison
from fiedler.manifold.candidates import Candidate
from fiedler.manifold.choice import (
    Effort,
    select_by_consensus,
    view_weights,
    vote_shares,
    with_consensus,
)
from fiedler.manifold.memberships import WALK
from fiedler.manifold.report_text import disagreement
from fiedler.manifold.views import (
    COMMUNITIES,
    VIEWS,
    View,
    find_communities,
    find_in_views,
    is_low_dimensional,
)
from fiedler.metrics import adjusted_rand_index, clustering_accuracy
from fiedler.metrics.scores import agreement_matrix, match_clusters, weighted_ari

WHITENED = [name for name, kind in VIEWS.items() if kind.is_for == "few components"]


def a_candidate(labels, family="communities", view="rows", agreement=math.nan):
    labels = np.asarray(labels)
    n_clusters = len(np.unique(labels))
    return Candidate(family, labels, 0.0, view=view, n_clusters=n_clusters, cut=1.0, agreement=agreement)


@pytest.fixture
def candidates(rng):
    """Two families in the rows, of which one has two members, and one in another view."""
    labels = np.repeat([0, 1, 2], 20)
    noisy = lambda n: np.where(np.arange(60) < n, rng.randint(3, size=60), labels)  # noqa: E731
    return [
        a_candidate(noisy(0)),
        a_candidate(noisy(30)),
        a_candidate(noisy(10), "linkage"),
        a_candidate(noisy(20), view="whitened by rows"),
    ]


@pytest.fixture
def parallel(fixed_rng):
    """Three long parallel clusters, five times as long as they are far apart."""
    rng = fixed_rng
    y = rng.randint(3, size=400)
    X = np.array([[0, 0, 0], [4, 0, 0], [0, 4, 0]])[y] + 0.5 * rng.normal(size=(400, 3))
    X[:, 2] = 20 * rng.normal(size=400)
    return X @ np.linalg.qr(rng.normal(size=(3, 3)))[0], y


WEIGHTS = {"rows": 1.0, "whitened by rows": 0.6}

# -------------------------------------------------------------------------------------------------------- the formulas


def test_weights_of_views_are_the_printed_formula():
    weights = view_weights({"rows": 0.2, "whitened by rows": 0.8, "whitened by cells": 0.0, "whitened by edges": -0.1})

    assert_allclose(list(weights.values()), [0.25**0.5, 1, 0.1**0.5, 0.1**0.5])
    assert view_weights({"rows": 0.0}) == {"rows": 1}


def test_consensus_is_the_printed_mean_of_the_best_agreement_in_each_other_family(candidates):
    rand = lambda i, j: adjusted_rand_index(candidates[i].labels, candidates[j].labels)  # noqa: E731
    printed = [
        (rand(0, 2) + 0.6 * rand(0, 3)) / (1 + 0.6),
        (rand(1, 2) + 0.6 * rand(1, 3)) / (1 + 0.6),
        (max(rand(2, 0), rand(2, 1)) + 0.6 * rand(2, 3)) / (1 + 0.6),
        (max(rand(3, 0), rand(3, 1)) + rand(3, 2)) / 2,
    ]

    assert_allclose([one.consensus for one in with_consensus(candidates, WEIGHTS)], printed)


def test_spectral_partitions_and_those_with_fewer_clusters_take_no_part(candidates):
    others = [
        a_candidate(candidates[0].labels, "spectral"),
        a_candidate(np.minimum(candidates[0].labels, 1), "k-means"),
    ]

    scored = with_consensus([*candidates, *others], WEIGHTS)

    assert [one.consensus for one in scored[:4]] == [one.consensus for one in with_consensus(candidates, WEIGHTS)]
    assert all(math.isnan(one.consensus) for one in scored[4:])


def test_one_family_agrees_with_no_other(candidates):
    assert [one.consensus for one in with_consensus(candidates[:2], WEIGHTS)] == [0, 0]


@pytest.mark.parametrize(("k", "m"), [(3, 3), (5, 2), (1, 1), (1, 4)])
def test_rand_index_without_checks_is_the_metric(k, m, rng):
    a, b = rng.randint(k, size=50), rng.randint(m, size=50)

    assert weighted_ari(a, b) == pytest.approx(adjusted_rand_index(a, b))
    assert weighted_ari(a, a) == 1


def test_negative_agreement_counts_as_none():
    assert_array_equal(agreement_matrix([np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])]), np.eye(2))


def test_the_highest_consensus_is_chosen_among_those_that_agree_with_known_labels(candidates):
    scored = with_consensus(candidates, WEIGHTS)
    best = max(scored, key=lambda one: one.consensus)
    assert select_by_consensus(scored) is best

    known = [a_candidate(one.labels, one.family, one.view, agreement=0.2) for one in candidates]
    known[3] = a_candidate(candidates[3].labels, candidates[3].family, candidates[3].view, agreement=1.0)
    assert select_by_consensus(with_consensus(known, WEIGHTS), n_known=50).view == "whitened by rows"


@pytest.mark.parametrize(("lead", "view"), [(0.005, "rows"), (0.02, "whitened by rows")])
def test_rows_are_preferred_to_other_views_that_agree_as_well(lead, view, candidates):
    rows = replace(candidates[0], consensus=0.8)

    assert select_by_consensus([rows, replace(candidates[3], consensus=0.8 + lead)]).view == view


def test_votes_are_the_printed_shares(candidates):
    chosen = candidates[2]
    closest = max(candidates[:2], key=lambda one: adjusted_rand_index(one.labels, chosen.labels))
    printed = np.zeros((60, 3))
    for weight, one in ((1, closest), (1, chosen), (0.6, candidates[3])):
        printed[np.arange(60), match_clusters(one.labels, chosen.labels, 3)] += weight / (2 + 0.6)

    assert_allclose(vote_shares(candidates, chosen, 3, WEIGHTS), printed)
    assert_allclose(printed.sum(axis=1), 1)


def test_matched_clusters_agree_on_as_many_rows_as_possible():
    reference = np.array([0, 0, 0, 1, 1, 2])

    assert_array_equal(match_clusters(np.array([2, 2, 1, 1, 1, 0]), reference, 3), [0, 0, 1, 1, 1, 2])


# --------------------------------------------------------------------------------------------------------------- views


def test_all_views_have_partitions_of_two_methods(parallel):
    rows = View.of("rows", parallel[0])

    views, partitions, eigengaps = find_in_views(WHITENED, rows, 3, random_state=0)

    assert set(views) == set(eigengaps) == set(WHITENED)
    assert max(eigengaps, key=eigengaps.get) == "whitened by rows"
    found = pd.DataFrame(partitions)
    assert {(view, family) for view in WHITENED for family in (COMMUNITIES, "linkage")} == set(
        zip(found.view, found.family)
    )


def test_the_nearest_sampled_row_of_a_sampled_row_is_itself():
    rows = np.array([[0.0], [0.4], [0.4], [5.0], [9.0]])

    assert_array_equal(comparison.nearest_sampled(rows, rows[[0, 2, 4]], np.array([0, 2, 4])), [0, 1, 1, 2, 2])


def test_rows_that_cannot_be_whitened_leave_that_view_out():
    X = np.repeat(np.eye(3), 20, axis=0)  # neighbours coincide

    model = ManifoldClustering(3, effort="thorough", random_state=0).fit(X)

    assert clustering_accuracy(np.repeat([0, 1, 2], 20), model.labels_) == 1


@pytest.mark.parametrize(("n_directions", "low"), [(10, True), (60, True), (300, False)])
def test_rows_of_few_directions_are_low_dimensional(n_directions, low, rng):
    X = rng.normal(size=(500, n_directions)) @ rng.normal(size=(n_directions, 400))

    assert is_low_dimensional(X) == low


# ----------------------------------------------------------------------------------------------------------- the model


def test_a_whitened_view_finds_parallel_clusters_and_places_new_rows_in_it(parallel, tmp_path):
    X, y = parallel
    train = np.arange(400) < 320

    model = ManifoldClustering(3, random_state=0).fit(X[train])

    assert model.view_.startswith("whitened")
    assert clustering_accuracy(y[train], model.labels_) > 0.97
    assert clustering_accuracy(y[~train], model.predict(X[~train])) > 0.97
    assert_array_equal(model.predict(X[train]), model.labels_)
    fiedler.save(model, tmp_path / "model.safetensors")
    assert_allclose(fiedler.load(tmp_path / "model.safetensors").predict_proba(X), model.predict_proba(X))


@pytest.fixture
def topics(rng):
    """Documents of three topics of uneven size that share two thirds of their words; the last is empty."""
    words = rng.dirichlet(np.full(600, 0.1), size=3) / 3 + rng.dirichlet(np.full(600, 0.3)) * 2 / 3
    y = np.repeat([0, 1, 2], [240, 120, 61])
    X = rng.poisson(rng.uniform(30, 90, size=421)[:, None] * words[y]).astype(float)
    X[-1] = 0
    return X, y


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_documents_are_compared_in_the_coordinates_of_lpi(form, topics, tmp_path):
    X, y = topics
    train = np.arange(421) % 5 < 4

    model = ManifoldClustering(3, effort="thorough", random_state=0).fit(form(X[train]))

    assert set(model.candidates_["view"]) == {"rows", "LPI"}
    assert model.view_ == "LPI"
    assert clustering_accuracy(y[train], model.labels_) > 0.95
    assert clustering_accuracy(y[~train], model.predict(form(X[~train]))) > 0.9
    assert_allclose(model.predict_proba(form(8 * X)), model.predict_proba(form(X)))  # by their directions
    fiedler.save(model, tmp_path / "model.safetensors")
    assert_allclose(fiedler.load(tmp_path / "model.safetensors").predict_proba(form(X)), model.predict_proba(form(X)))


@pytest.mark.slow
@pytest.mark.parametrize("n_known", [0, 40])
def test_twice_as_many_documents_are_compared(n_known, topics, monkeypatch):
    X, y = topics
    monkeypatch.setitem(comparison.EFFORTS, "default", Effort(max_rows=250, sufficient_consensus=0.95, max_searches=1))
    known = np.where(np.arange(421) % 421 < n_known, y, -1)

    assert ManifoldClustering(3, random_state=0).fit(X, known)._state.n_compared == 421


def test_clusters_in_many_directions_of_noise_are_found(rng):
    """The variance is spread over all columns, but not because the rows are directions."""
    y = rng.randint(3, size=600)
    X = rng.normal(size=(600, 300)) + 0.35 * y[:, None]

    model = ManifoldClustering(3, random_state=0).fit(X)

    assert set(model.candidates_["view"]) == {"rows", "LPI"}
    assert clustering_accuracy(y, model.labels_) > 0.95


def test_rows_of_one_direction_have_no_other_view(rng):
    X = sp.csr_array(rng.uniform(1, 9, size=(60, 1)) * np.eye(60)[0])

    model = ManifoldClustering(2, effort="thorough", random_state=0).fit(X)

    assert set(model.candidates_["view"]) == {"rows"}


@pytest.mark.parametrize("data", ["parallel", "topics"])
def test_views_ignore_the_output_that_is_configured_for_transformers(data, request):
    X, _ = request.getfixturevalue(data)
    expected = ManifoldClustering(3, random_state=0).fit(X)

    with config_context(transform_output="pandas"):
        model = ManifoldClustering(3, random_state=0).fit(X)

        assert model.view_ != "rows"
        assert_array_equal(model.predict(X), expected.predict(X))


def test_memberships_are_the_printed_walk_over_labels_and_votes(parallel):
    X, _ = parallel
    model = ManifoldClustering(3, random_state=0).fit(X)
    chosen = model._state.candidates[model.candidates_["chosen"].index(True)]
    gaps = {name: find_communities(view, 3, 0, ())[1] for name, view in views_of(X).items()}
    V = vote_shares(model._state.candidates, chosen, 3, view_weights(gaps))
    H, s, W = np.eye(3)[chosen.labels], model.consensus_, model.graph_.weights.toarray()
    P = W / W.sum(axis=1, keepdims=True)

    printed = (1 - WALK) * np.linalg.solve(np.eye(400) - WALK * P, s * H + (1 - s) * V)

    assert 0 < s < 0.9
    assert_allclose(model.memberships_, printed, atol=0.02)  # the seed of the cells is another one
    assert_allclose(model.row_agreement_, V[np.arange(400), model.labels_], atol=0.05)


def views_of(X):
    rows = View.of("rows", X)
    return {"rows": rows, **find_in_views(WHITENED, rows, 3, 0)[0]}


def test_without_comparison_there_is_no_agreement(parallel):
    model = ManifoldClustering(3, effort="fast", random_state=0).fit(parallel[0])

    assert model.consensus_ is None
    assert model.row_agreement_ is None
    assert model.view_ == "rows"


def test_views_are_not_compared_if_the_methods_agree():
    X, _ = make_blobs(200, centers=[[0, 0], [20, 0], [0, 20]], random_state=0)
    seen = {
        effort: set(ManifoldClustering(3, effort=effort, random_state=0).fit(X).candidates_["view"])
        for effort in ("fast", "default", "thorough")
    }

    assert seen == {"fast": {"rows"}, "default": {"rows"}, "thorough": {"rows", *WHITENED}}


@pytest.mark.parametrize("wide", [False, True])
def test_many_rows_are_compared_on_a_sample(wide, parallel, monkeypatch):
    X, y = parallel if wide else make_blobs(400, centers=[[0, 0], [9, 0], [0, 9]], random_state=0)
    monkeypatch.setitem(comparison.EFFORTS, "default", Effort(max_rows=250, sufficient_consensus=0.95, max_searches=1))

    model = ManifoldClustering(3, random_state=0).fit(X)

    assert model.labels_.shape == model.row_agreement_.shape == (400,)
    assert clustering_accuracy(y, model.labels_) > 0.94
    assert (model.view_ != "rows") == wide
    assert "sample of 250 rows" in model.report().replace("\n", " ")
    assert clustering_accuracy(y, model.predict(X)) > 0.94


def test_pairs_and_labels_of_many_rows_are_not_compared_on_a_sample(parallel, monkeypatch):
    monkeypatch.setitem(comparison.EFFORTS, "default", Effort(max_rows=250, sufficient_consensus=0.95, max_searches=1))

    model = ManifoldClustering(2, random_state=0).fit(parallel[0], constraints=PairwiseConstraints([(0, 1)], [], 400))

    assert model.consensus_ is None


def test_partial_labels_number_the_clusters_of_any_view(parallel):
    X, y = parallel
    known = np.where(np.arange(400) % 40 == 0, (y + 1) % 3, -1)

    model = ManifoldClustering(3, random_state=0).fit(X, known)

    assert model.view_.startswith("whitened")
    assert np.mean(model.labels_ == (y + 1) % 3) > 0.97
    assert model.row_agreement_.mean() > 0.4  # of the votes for these clusters, not for others


def test_many_clusters_are_not_compared_on_a_small_sample(monkeypatch, rng):
    monkeypatch.setitem(comparison.EFFORTS, "default", Effort(max_rows=60, sufficient_consensus=0.95, max_searches=1))

    model = ManifoldClustering(7, random_state=0).fit(rng.normal(size=(100, 2)))

    assert model.consensus_ is None


def test_rows_outside_a_sample_have_votes_of_their_own(parallel, monkeypatch):
    monkeypatch.setitem(
        comparison.EFFORTS, "default", Effort(max_rows=250, sufficient_consensus=math.inf, max_searches=1)
    )

    model = ManifoldClustering(3, random_state=0).fit(parallel[0])

    assert len(np.unique(model.row_agreement_)) > 3


def test_models_of_earlier_versions_can_be_used(parallel):
    model = ManifoldClustering(3, effort="fast", random_state=0).fit(parallel[0])
    expected = model.predict(parallel[0]), model.report()
    for name in ("view_", "consensus_", "row_agreement_", "outlier_score_"):
        del model.__dict__[name]

    assert_array_equal(model.predict(parallel[0]), expected[0])
    assert model.report() == expected[1]
    assert Candidate("LapGMM", np.zeros(2), 0.0).view == "rows"


@pytest.mark.slow
def test_the_same_choice_on_every_back_end(parallel, backend):
    X, _ = parallel
    reference = ManifoldClustering(3, random_state=0).fit(X)

    model = ManifoldClustering(3, random_state=0).fit(backend(X))

    assert model.view_.startswith("whitened")
    assert adjusted_rand_index(to_numpy(model.labels_), reference.labels_) > 0.98
    assert clustering_accuracy(reference.predict(X[:50]), to_numpy(model.predict(backend(X[:50])))) == 1


def test_unknown_effort_is_refused(parallel):
    with pytest.raises(ValueError, match="effort='much' is not known"):
        ManifoldClustering(2, effort="much").fit(parallel[0])


# ----------------------------------------------------------------------------------------------------- in words


def test_disagreement_is_said_in_words(rng):
    assert disagreement(None) is None
    assert disagreement(0.9) is None
    assert "do not agree" in disagreement(0.3)
    X = rng.normal(size=(200, 5))
    model = ManifoldClustering(3, random_state=0).fit(X)

    assert model.consensus_ < 0.6
    assert model.report().replace("\n", " ").startswith("Methods and views of the rows do not agree")
    assert "do not agree" in fiedler.report.summarize(model, X)["caution"]
