import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs

from fiedler import KNNGraph, ManifoldClustering
from fiedler.core.arrays import to_numpy
from fiedler.graph.neighbors import k_nearest
from fiedler.manifold.memberships import OUTLIER_WALK, outlier_scores, select_outliers


@pytest.fixture
def rows():
    """A dense and a wide cluster, and six rows far from both, the last ones."""
    clusters, _ = make_blobs([100, 100], centers=[[0, 0], [20, 0]], cluster_std=[0.3, 2.0], random_state=0)
    return np.concatenate([clusters, [[0, 8], [0, -8], [9, 9], [9, -9], [20, 15], [20, -15]]])


def test_scores_are_the_printed_formula(rows, backend):
    edges = k_nearest(backend(rows), 5)
    n, r = len(rows), to_numpy(edges.distances).reshape(-1, 5).mean(axis=1)
    P = np.zeros((n, n))
    P[np.repeat(np.arange(n), 5), to_numpy(edges.columns)] = 1 / 5
    printed = np.log(r) - (1 - OUTLIER_WALK) * np.linalg.solve(np.eye(n) - OUTLIER_WALK * P, np.log(r))

    assert_allclose(outlier_scores(edges), printed, atol=5e-3)


def test_outliers_have_the_highest_scores_whatever_the_density_of_the_clusters(rows):
    model = ManifoldClustering(2, random_state=0).fit(rows)

    assert model.outlier_score_[200:].min() > np.sort(model.outlier_score_[:200])[-5]
    assert abs(np.median(model.outlier_score_)) < 0.3
    assert (model.labels_ >= 0).all()


def test_a_share_of_the_rows_is_labelled_on_demand(rows, backend):
    plain = ManifoldClustering(2, random_state=0).fit(backend(rows))

    model = ManifoldClustering(2, outliers=0.03, random_state=0).fit(backend(rows))

    labels = to_numpy(model.labels_)
    assert set(np.flatnonzero(labels == -1)) == set(range(200, 206))
    assert_array_equal(labels[:200], to_numpy(plain.labels_)[:200])
    assert_allclose(to_numpy(model.memberships_), to_numpy(plain.memberships_))
    assert (to_numpy(model.predict(backend(rows))) >= 0).all()
    assert "outliers       6" in model.report()


def test_the_report_of_one_cluster_has_nothing_to_compare(rows):
    assert ManifoldClustering(1, random_state=0).fit(rows).report() == "One cluster of all 206 rows."
    with_outliers = ManifoldClustering(1, outliers=0.03, random_state=0).fit(rows).report()
    assert with_outliers == "One cluster of all 206 rows, but for 6 outliers."


def test_rows_whose_label_is_known_are_no_outliers(rows):
    known = np.full(len(rows), -1)
    known[[0, 150, 205]] = [0, 1, 1]

    labels = ManifoldClustering(2, outliers=0.03, random_state=0).fit(rows, known).labels_

    assert labels[205] == 1
    assert (labels == -1).sum() == 6


def test_the_farthest_rows():
    assert_array_equal(
        select_outliers(np.array([1.0, 3.0, 2.0, 5.0]), 0.5, np.array([False, False, False, True])), [1, 2]
    )


def test_repeated_rows_have_finite_scores():
    X = np.repeat([[0.0], [1.0], [5.0]], [20, 20, 1], axis=0)

    assert np.isfinite(ManifoldClustering(2, random_state=0).fit(X).outlier_score_).all()


def test_outliers_need_rows_and_a_share(rows):
    with pytest.raises(ValueError, match="outliers must be a fraction above 0"):
        ManifoldClustering(2, outliers=5).fit(rows)
    with pytest.raises(ValueError, match="but a graph is given"):
        ManifoldClustering(2, graph=KNNGraph(5, connect="mst"), outliers=0.1).fit(rows)
    assert ManifoldClustering(2, graph=KNNGraph(5, connect="mst"), random_state=0).fit(rows).outlier_score_ is None
