"""Tasks that compare readings of a paper: smoothing steps of LapGMM, starts and curves of NLE."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fiedler import KNNGraph, LapGMM
from fiedler.embedding.nle import Update
from fiedler.graph.cuts import cut_problem
from fiedler.metrics import clustering_accuracy, modularity
from fiedler.mixture.base import RESOLUTION
from fiedler_papers import load_protocol
from fiedler_papers.illustrations import Curves
from fiedler_papers.rows import Rows, load_rows
from fiedler_papers.starts import first_embedding, first_labels, graph_cut
from fiedler_papers.tasks import TASKS


@pytest.fixture(scope="module")
def smoke():
    return load_protocol("smoke")


def cell_of(smoke, method, **options):
    cell = smoke.cells(only=[method])[0]
    return replace(cell, spec={**cell.spec, "options": {**cell.spec["options"], **options}})


@pytest.mark.filterwarnings("ignore:only . of the 3 clusters")
def test_chosen_steps_have_the_highest_modularity_of_separate_fits(smoke):
    """[lapgmm, Table 1, line 6]: each trial is a fit with that many steps."""
    cell = cell_of(smoke, "lapgmm_steps", steps=[300, 1, 8])
    y = np.repeat([0, 1, 2], 40)
    rows = Rows(3 * np.eye(3)[y] + np.random.RandomState(0).normal(size=(120, 3)), y, 3, None, ())
    result = TASKS["steps"](cell, rows)
    graph = KNNGraph(8).build(rows.X)
    settings = {"solver": "printed", "lam": 10.0, "init": "kmeans", "pca": 0.9, "ridge": 0.1, "max_iter": 20}
    fits = {
        n: LapGMM(rows.k, KNNGraph(8), n_smooth=n, random_state=cell.draw, **settings).fit(rows.X) for n in (1, 8, 300)
    }
    quality = {n: modularity(graph, fit.labels_, resolution=RESOLUTION) for n, fit in fits.items()}
    best = max(quality, key=quality.get)

    assert len(set(quality.values())) == 3
    assert result.details["best_at"] == best
    assert result.scores["AC"] == pytest.approx(clustering_accuracy(rows.y, fits[best].labels_))
    for n, fit in fits.items():
        trial = result.details["trials"][str(n)]
        assert trial["modularity"] == pytest.approx(quality[n])
        assert trial["objective"] == pytest.approx(trial["likelihood"] - trial["penalty"])
        assert trial["objective"] == pytest.approx(fit.objective_)


def test_starts_are_the_readings_of_the_text(smoke):
    cell = cell_of(smoke, "nle")
    rows = load_rows(cell)
    cut, _ = graph_cut(cell, rows)
    W = KNNGraph(8, connect="mst").build(rows.X).weights.toarray()
    values, vectors = np.linalg.eigh(np.diag(W.sum(axis=1)) - W)
    projections = vectors[:, : rows.k + 1] @ vectors[:, : rows.k + 1].T

    assert values[1] > 1e-3
    assert np.ptp(cut.vectors[:, 0]) < 1e-6
    assert_allclose(cut.vectors @ cut.vectors.T, projections, atol=1e-5)
    starts = {
        name: first_labels(cut, cell_of(smoke, "nle", start=name)) for name in ("spectral", "nonconstant", "kmeans")
    }
    assert_array_equal(starts["spectral"], first_labels(cut, cell))
    assert not np.array_equal(starts["nonconstant"], starts["spectral"])
    centers = np.array([rows.X[starts["kmeans"] == c].mean(axis=0) for c in range(rows.k)])
    nearest = ((rows.X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    assert np.mean(nearest == starts["kmeans"]) > 0.99


def test_the_first_embedding_is_indicators_plus_two_tenths():
    """[nle, section X]."""
    labels = np.array([0, 1, 1])
    assert_allclose(first_embedding(labels, 2, "printed"), [[1.2, 0.2], [0.2, 1.2], [0.2, 1.2]])
    assert_allclose((first_embedding(labels, 2) ** 2).sum(axis=0), 1)


def test_curves_are_the_printed_formulas():
    """[nle, Eqs 9, 12, 14 and 15] with dense matrices."""
    rng = np.random.RandomState(0)
    graph = KNNGraph(5, weight="heat").build(rng.normal(size=(30, 2)))
    update = Update(cut_problem(graph, "ratio"), rng)
    W, eye = graph.weights.toarray(), np.eye(3)
    A = W + update.sigma * np.eye(30) - np.diag(W.sum(axis=1))
    Q = rng.uniform(size=(30, 3))
    curves = Curves(update)
    after = curves.step(Q)
    multipliers = Q.T @ A @ Q

    def lagrangian(Q):
        return np.trace(Q.T @ A @ Q - multipliers @ (Q.T @ Q - eye))

    measured = {name: values[0] for name, values in curves.values.items()}
    assert_array_equal(after, update.step(Q)[0])
    assert measured["objective"] == pytest.approx(np.trace(multipliers))
    assert measured["lagrangian"] == pytest.approx((lagrangian(after) - lagrangian(Q)) / update.sigma)
    stationarity = np.abs((A @ after - after @ (after.T @ A @ after)) * after).max() / update.sigma
    assert measured["stationarity"] == pytest.approx(stationarity)
    assert measured["orthogonality"] == pytest.approx(np.abs(after.T @ after - eye).max())
