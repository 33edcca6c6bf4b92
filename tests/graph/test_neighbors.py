"""Neighbours by every search, ties between them, and rows that occur many times."""

import importlib.util
import logging

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import pairwise_distances as metric_distances
from sklearn.neighbors import KNeighborsTransformer

from fiedler import KNNGraph
from fiedler.core.arrays import to_numpy
from fiedler.errors import InputError
from fiedler.graph import exact_search, neighbors
from fiedler.graph import voronoi as approximate_search
from fiedler.graph.exact_search import first_of_ties
from fiedler.graph.kernels import pair_distances, pair_products, pairwise_distances
from fiedler.graph.neighbors import k_nearest, within_radius
from fiedler.graph.voronoi import TARGET_RECALL, Copies
from toys import BACKENDS


@pytest.fixture
def points(rng):
    return rng.normal(size=(80, 6))


def brute(X, Q=None):
    distances = np.linalg.norm((X if Q is None else Q)[:, None] - X[None], axis=2)
    if Q is None:
        np.fill_diagonal(distances, np.inf)
    return distances


def as_matrix(edges):
    return to_numpy(edges.columns).reshape(edges.shape[0], -1), to_numpy(edges.distances).reshape(edges.shape[0], -1)


NEEDS_FAISS = pytest.mark.skipif(importlib.util.find_spec("faiss") is None, reason="faiss is not installed")
FAISS = pytest.param("faiss", marks=NEEDS_FAISS)


@pytest.mark.parametrize("method", ["auto", "exact", "cells"])
@pytest.mark.parametrize("with_queries", [False, True])
def test_neighbours_are_those_of_brute_force(method, with_queries, points, rng):
    Q = rng.normal(size=(13, 6)) if with_queries else None
    columns, distances = as_matrix(k_nearest(points, 5, queries=Q, method=method))

    expected = brute(points, Q)
    assert_array_equal(np.sort(columns), np.sort(np.argsort(expected, axis=1)[:, :5]))
    assert_allclose(np.sort(distances), np.sort(expected, axis=1)[:, :5])


@NEEDS_FAISS
@pytest.mark.parametrize("with_queries", [False, True])
def test_an_approximate_search_finds_most_neighbours(with_queries, points, rng):
    Q = rng.normal(size=(13, 6)) if with_queries else None
    columns, distances = as_matrix(k_nearest(points, 5, queries=Q, method="faiss"))

    expected = brute(points, Q)
    nearest = np.argsort(expected, axis=1)[:, :5]
    assert np.mean([len(set(ours) & set(theirs)) / 5 for ours, theirs in zip(columns, nearest)]) > 0.9
    assert_allclose(distances, np.take_along_axis(expected, columns, axis=1))


@pytest.mark.parametrize("with_queries", [False, True])
def test_device_and_sparse_searches_agree_with_numpy(with_queries, points, rng, foreign):
    Q = rng.normal(size=(13, 6)) if with_queries else None
    expected, lengths = as_matrix(k_nearest(points, 7, queries=Q))
    device = as_matrix(k_nearest(foreign(points), 7, queries=None if Q is None else foreign(Q)))
    sparse = as_matrix(k_nearest(sp.csr_array(points), 7, queries=None if Q is None else sp.csr_array(Q), n_jobs=2))

    for columns, distances in (device, sparse):
        assert_array_equal(columns, expected)
        assert_allclose(distances, lengths, rtol=1e-7)


def test_block_size_does_not_change_results(points, foreign, monkeypatch):
    single = as_matrix(k_nearest(foreign(points), 4))
    single_sparse = as_matrix(k_nearest(sp.csr_array(points), 4))
    monkeypatch.setattr("fiedler.core.arrays.BLOCK_BYTES", 20_000)

    assert_array_equal(as_matrix(k_nearest(foreign(points), 4))[0], single[0])
    assert_array_equal(as_matrix(k_nearest(sp.csr_array(points), 4))[0], single_sparse[0])
    every = [foreign(index) for index in np.mgrid[:80, :80].reshape(2, -1)]
    assert_allclose(
        to_numpy(pair_products(foreign(points), foreign(points), *every)), (points @ points.T).ravel(), atol=1e-12
    )


def recall(approximate, exact):
    """Return the fraction of the true neighbours that were found."""
    return np.mean([len(set(a) & set(e)) / len(e) for a, e in zip(approximate.tolist(), exact.tolist())])


@pytest.mark.parametrize("container", ["sparse", *BACKENDS])
@pytest.mark.parametrize("offset", [1.0, 100.0, 3000.0])
def test_single_precision_finds_neighbours_far_from_the_origin(container, offset, rng):
    """|x|² + |y|² - 2x'y has lost every digit of these distances in float32; the differences have kept them."""
    X = (0.1 * rng.normal(size=(300, 20)) + offset * np.repeat(rng.normal(size=(3, 20)), 100, axis=0)).astype(
        np.float32
    )

    edges = k_nearest(sp.csr_array(X) if container == "sparse" else BACKENDS[container](X), 8)

    columns, distances = as_matrix(edges)
    expected = brute(X.astype(np.float64))
    assert recall(columns, np.argsort(expected, axis=1)[:, :8]) == 1
    assert_allclose(np.sort(distances), np.sort(expected, axis=1)[:, :8], rtol=1e-5)
    assert distances.dtype == np.float32


@pytest.mark.parametrize("container", list(BACKENDS))
def test_radius_and_full_distances_survive_single_precision(container, rng):
    X = (0.1 * rng.normal(size=(60, 2)) + np.repeat([0.0, 300.0], 30)[:, None]).astype(np.float32)
    rows, expected = BACKENDS[container](X), brute(X.astype(np.float64))

    edges = within_radius(rows, 0.02)

    assert edges.rows.shape[0] == pytest.approx(np.sum(expected <= 0.02), abs=2)
    np.fill_diagonal(expected, 0)
    assert_allclose(to_numpy(pairwise_distances(rows, rows)), expected, atol=1e-3)


@pytest.mark.parametrize("method", ["exact", "cells", FAISS, "sparse", *BACKENDS])
def test_self_is_removed_by_index_so_that_copies_remain(method):
    """Twelve copies of one point: each has its eleven copies at distance 0, and never itself."""
    X = np.concatenate([np.ones((12, 3)), np.random.RandomState(0).normal(size=(30, 3)) + 9])
    rows = {"sparse": sp.csr_array}.get(method, BACKENDS.get(method, np.asarray))(X)
    columns, distances = as_matrix(k_nearest(rows, 5, method=method if method in ("cells", "faiss") else "exact"))

    assert (columns != np.arange(42)[:, None]).all()
    assert_allclose(distances[:12], 0, atol=1e-7)
    assert (columns[:12] < 12).all()


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_cosine_neighbours(container, points):
    U = points / np.linalg.norm(points, axis=1, keepdims=True)
    expected = 1 - U @ U.T
    np.fill_diagonal(expected, np.inf)

    columns, distances = as_matrix(k_nearest(container(points), 6, metric="cosine"))

    assert_array_equal(columns, np.argsort(expected, axis=1)[:, :6])
    assert_allclose(distances, np.sort(expected, axis=1)[:, :6], atol=1e-12)


def test_any_metric_of_scikit_learn_on_dense_rows(points):
    expected = np.abs(points[:, None] - points[None]).sum(axis=2)
    np.fill_diagonal(expected, np.inf)

    assert_array_equal(as_matrix(k_nearest(points, 4, metric="manhattan"))[0], np.argsort(expected, axis=1)[:, :4])


def test_radius_neighbours_equal_brute_force(points, backend):
    edges = within_radius(backend(points), 2.0)

    adjacency = np.zeros((80, 80), dtype=bool)
    adjacency[to_numpy(edges.rows), to_numpy(edges.columns)] = True
    assert_array_equal(adjacency, brute(points) <= 2.0)
    assert_allclose(to_numpy(edges.distances), brute(points)[to_numpy(edges.rows), to_numpy(edges.columns)])


def test_a_scikit_learn_transformer_can_search(points):
    edges, transformed = k_nearest(points, 5), k_nearest(points, 5, method=KNeighborsTransformer(n_neighbors=5))

    assert set(zip(edges.rows.tolist(), edges.columns.tolist())) == set(
        zip(transformed.rows.tolist(), transformed.columns.tolist())
    )


def test_pair_functions_equal_the_full_matrices(points, backend):
    rows, columns = np.array([0, 3, 79]), np.array([5, 3, 1])
    A = backend(points)

    assert_allclose(
        to_numpy(pairwise_distances(A, A)), np.linalg.norm(points[:, None] - points[None], axis=2), atol=1e-6
    )
    assert_allclose(
        to_numpy(pair_distances(A, A, backend(rows), backend(columns))),
        np.linalg.norm(points[rows] - points[columns], axis=1),
    )
    assert_allclose(
        to_numpy(pair_products(A, A, backend(rows), backend(columns))), np.sum(points[rows] * points[columns], axis=1)
    )


# ---------------------------------------------------------------------------------------------- approximate neighbours


@NEEDS_FAISS
def test_probes_are_raised_until_the_recall_is_reached(rng):
    """Noise in 24 dimensions, for which an inverted file needs many probes."""
    X = rng.normal(size=(6000, 24)).astype(np.float32)

    graph = KNNGraph(10, method="faiss").build(X)

    exact, _ = as_matrix(k_nearest(X, 10, method="exact"))
    approximate, _ = as_matrix(k_nearest(X, 10, method="faiss"))
    assert graph.recall >= TARGET_RECALL
    assert recall(approximate, exact) > 0.99
    assert graph.weights.dtype == np.float32


@NEEDS_FAISS
@pytest.mark.parametrize("scale", [1e-100, 1e19, 1e100])
def test_faiss_accepts_values_beyond_single_precision(scale, rng):
    X = rng.normal(size=(500, 20))

    assert_array_equal(
        as_matrix(k_nearest(scale * X, 5, method="faiss"))[0], as_matrix(k_nearest(X, 5, method="faiss"))[0]
    )


@NEEDS_FAISS
def test_faiss_counts_copies_and_falls_back_to_exact_search(rng, caplog):
    copies = np.repeat(rng.normal(size=(40, 20)), 50, axis=0)
    assert k_nearest(copies, 8, method="faiss").recall == 1
    assert k_nearest(copies[:8], 3, method="faiss").recall == 1
    far = rng.normal(size=(400, 20)) + 1e9 * np.repeat([0.0, 1.0], 200)[:, None]
    nearest = k_nearest(far, 8, method="faiss")
    assert "searching exactly" in caplog.text
    assert_array_equal(as_matrix(nearest)[0], as_matrix(k_nearest(far, 8, method="exact"))[0])


@pytest.mark.parametrize(("container", "n_rows"), [("numpy", 100), ("strict", 150)])
def test_auto_searches_in_cells_if_there_are_many_rows_and_features(container, n_rows, monkeypatch, rng):
    monkeypatch.setattr(neighbors, "APPROXIMATE_ABOVE", 100)
    monkeypatch.setattr(neighbors, "DEVICE_APPROXIMATE_ABOVE", 150)
    called = []
    exact = neighbors.SEARCHES["exact"]
    monkeypatch.setitem(neighbors.SEARCHES, "cells", lambda *a: called.append("cells") or exact(*a))

    rows = BACKENDS[container](rng.normal(size=(n_rows + 1, 5)))
    k_nearest(rows[:n_rows, :], 3)
    k_nearest(rows, 3, queries=rows[:5, :])
    k_nearest(sp.csr_array(rng.normal(size=(200, 16))), 3)
    k_nearest(rng.normal(size=(200, 4)), 3)
    assert called == []
    k_nearest(rows, 3)
    assert called == ["cells"]


@pytest.fixture
def crowd(rng):
    """Five thousand rows on curved surfaces of five dimensions, in 20 dimensions."""
    latent = rng.normal(size=(5000, 5)) + 4 * rng.normal(size=(8, 5))[rng.randint(8, size=5000)]
    return np.tanh(0.3 * latent @ rng.normal(size=(5, 20))).astype(np.float32)


def test_cells_reach_the_recall_on_every_back_end(crowd, backend, caplog):
    caplog.set_level(logging.INFO, logger="fiedler")
    exact, _ = as_matrix(k_nearest(crowd, 10, method="exact"))

    edges = k_nearest(backend(crowd), 10, method="cells")

    columns, distances = as_matrix(edges)
    assert "cells searched" in caplog.text  # not the exact search
    assert edges.recall >= TARGET_RECALL
    assert recall(columns, exact) > 0.99
    assert_allclose(distances, np.linalg.norm(crowd[:, None] - crowd[columns], axis=2), rtol=1e-5)
    assert (columns != np.arange(5000)[:, None]).all()
    assert distances.dtype == np.float32


@pytest.mark.parametrize("n_rows", [4, 60])
def test_cells_of_few_rows_on_a_device(n_rows, monkeypatch, rng):
    monkeypatch.setattr(approximate_search, "is_on_host", lambda X: False)
    X = rng.normal(size=(n_rows, 2))

    columns, _ = as_matrix(k_nearest(X, 2, method="cells"))

    assert_array_equal(columns, as_matrix(k_nearest(X, 2, method="exact"))[0])


def test_cells_find_the_neighbours_of_new_rows(crowd, backend):
    new = crowd[:300] + np.float32(0.01)
    exact, _ = as_matrix(k_nearest(crowd, 6, queries=new, method="exact"))

    columns, _ = as_matrix(k_nearest(backend(crowd), 6, queries=backend(new), method="cells"))

    assert recall(columns, exact) > 0.98


def test_a_search_in_cells_does_not_depend_on_blocks_threads_or_calls(crowd, monkeypatch):
    first = as_matrix(k_nearest(crowd, 5, method="cells"))
    monkeypatch.setattr("fiedler.core.arrays.BLOCK_BYTES", 100_000)

    for n_jobs in (1, 2):
        again = as_matrix(k_nearest(crowd, 5, method="cells", n_jobs=n_jobs))
        assert_array_equal(again[0], first[0])


def test_cells_keep_the_digits_of_rows_far_from_the_origin(rng):
    X = (0.1 * rng.normal(size=(3000, 3)) + 3000 * np.repeat(rng.normal(size=(3, 3)), 1000, axis=0)).astype(np.float32)

    edges = k_nearest(X, 5, method="cells")

    assert edges.recall >= TARGET_RECALL
    assert recall(as_matrix(edges)[0], as_matrix(k_nearest(X, 5, method="exact"))[0]) > 0.99


def test_rows_without_near_cells_are_searched_exactly(rng, caplog):
    """Noise in 60 dimensions, where the neighbours of a row lie in any cell."""
    X = rng.normal(size=(1500, 60))
    caplog.set_level(logging.INFO, logger="fiedler")

    edges = k_nearest(X, 5, method="cells")

    assert "cells would have to be searched; searching exactly" in caplog.text
    assert_array_equal(as_matrix(edges)[0], as_matrix(k_nearest(X, 5, method="exact"))[0])


def test_copies_count_as_found_by_cells(rng):
    copies = np.repeat(rng.normal(size=(60, 20)), 50, axis=0)

    edges = k_nearest(copies, 8, method="cells")

    assert edges.recall == 1
    assert_allclose(as_matrix(edges)[1], 0, atol=1e-7)


@pytest.mark.parametrize("method", ["exact", FAISS])
@pytest.mark.parametrize("with_queries", [False, True])
def test_pieces_do_not_change_results(method, with_queries, monkeypatch, rng):
    """The pieces of a search are sized by time, so they differ from run to run."""
    X = rng.normal(size=(700, 6))
    Q = rng.normal(size=(600, 6)) if with_queries else None
    whole = as_matrix(k_nearest(X, 5, queries=Q, method=method))
    monkeypatch.setattr(exact_search, "MIN_ROWS_FOR_PIECES", 100)
    for seconds in (1e-9, 1e-3):
        monkeypatch.setattr("fiedler.core.parallel.FIRST_PIECE", 37)
        monkeypatch.setattr("fiedler.core.parallel.PIECE_SECONDS", seconds)
        columns, distances = as_matrix(k_nearest(X, 5, queries=Q, method=method))
        assert_array_equal(columns, whole[0])
        assert_allclose(distances, whole[1])


def test_without_faiss_the_error_names_the_extra(monkeypatch, points):
    real = importlib.import_module

    def no_faiss(name, *args):
        if name == "faiss":
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(importlib, "import_module", no_faiss)
    with pytest.raises(ImportError, match=r'approximate neighbours need .faiss.; .* pip install "fiedler\[ann\]"'):
        k_nearest(points, 3, method="faiss")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda X: k_nearest(X, 80),
            r"n_neighbors=80 needs more rows than there are \(n_samples=80\); choose at most 79",
        ),
        (
            lambda X: k_nearest(X, 3, method="magic"),
            r"method='magic' is not known; choose one of \['auto', 'exact', 'cells', 'faiss'\]",
        ),
        (lambda X: k_nearest(np.zeros((9, 2)), 3, metric="cosine"), r"9 row\(s\) of X are all zero and have no cosine"),
        (
            lambda X: k_nearest(sp.csr_array(X), 3, metric="manhattan"),
            "metric='manhattan' is not supported for sparse arrays",
        ),
        (lambda X: k_nearest(sp.csr_array(X), 3, method="faiss"), "method='faiss' needs dense NumPy rows"),
        (lambda X: k_nearest(sp.csr_array(X), 3, method="cells"), "method='cells' needs dense rows"),
    ],
)
def test_invalid_searches_raise(call, message, points):
    with pytest.raises(ValueError, match=message):
        call(points)


def test_too_few_rows_are_described_by_code_and_fields(points):
    with pytest.raises(InputError) as caught:
        k_nearest(points, 80)
    assert caught.value.code == "too_few_rows_for_neighbors"
    assert (caught.value.fields["n_neighbors"], caught.value.fields["n_samples"]) == (80, 80)


def test_ties_are_broken_in_the_same_way_by_any_number_of_threads(rng):
    X = rng.randint(3, size=(11_000, 16)).astype(np.float64)

    first, second = (k_nearest(X, 5, method="exact", n_jobs=n_jobs) for n_jobs in (1, 2))

    assert_array_equal(first.columns, second.columns)


@pytest.fixture
def grid(rng):
    """Rows of few values, so that most distances are equal to many others."""
    return rng.randint(3, size=(120, 4)).astype(float)


def brute_force(X, k, metric="euclidean"):
    """Sort all rows by distance, then by index."""
    distances = metric_distances(X, metric=metric).round(9)
    np.fill_diagonal(distances, np.inf)
    return np.argsort(distances, axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, np.float32], ids=["dense", "sparse", "single"])
def test_neighbors_are_sorted_by_distance_and_then_by_index(convert, grid):
    indices = k_nearest(convert(grid), 7).columns.reshape(-1, 7)
    assert_array_equal(indices, brute_force(grid, 7))


def test_other_array_libraries_choose_the_same_neighbors(grid, foreign):
    found = k_nearest(foreign(grid), 7)
    assert_array_equal(to_numpy(found.columns).reshape(-1, 7), brute_force(grid, 7))


@pytest.mark.parametrize("metric", ["manhattan", "chebyshev"])
def test_ties_of_other_metrics_are_broken_by_index(metric, grid):
    assert_array_equal(k_nearest(grid, 7, metric=metric).columns.reshape(-1, 7), brute_force(grid, 7, metric))


def test_queries_that_are_not_rows_are_not_left_out(grid):
    indices = k_nearest(grid, 3, queries=grid[:5]).columns.reshape(-1, 3)
    expected = np.argsort(metric_distances(grid[:5], grid).round(9), axis=1, kind="stable")[:, :3]
    assert_array_equal(indices, expected)


def test_a_query_is_settled_only_if_a_proposed_row_is_farther():
    X = np.array([[0.0], [1.0], [-1.0], [2.0]])
    proposed = np.array([[2, 1, 3]])
    assert first_of_ties(X, X[:1], proposed, 2)[2].all()
    assert not first_of_ties(X, X[:1], proposed[:, :2], 1)[2].any()


@pytest.mark.parametrize("far", [0.0, 1e6, 1e12])
def test_one_row_far_away_does_not_blur_the_others(far, rng):
    X = np.concatenate([rng.randint(3, size=(150, 8)), np.full((1, 8), far)]).astype(float)
    found, expected = k_nearest(X, 10), brute_force(X, 10)
    lengths = np.linalg.norm(X[:-1, None] - X[expected[:-1]], axis=2)
    assert_allclose(found.distances.reshape(-1, 10)[:-1], lengths)
    if far < 1e12:  # where products of the other rows keep no digit, ties are not broken by index
        assert_array_equal(found.columns.reshape(-1, 10)[:-1], expected[:-1])


def test_distances_are_those_of_differences_far_from_the_origin(rng):
    X = 1e8 + rng.randint(4, size=(50, 2)).astype(float)
    found = k_nearest(X, 5)
    expected = np.linalg.norm(X[found.rows] - X[found.columns], axis=1)
    assert_allclose(found.distances, expected, rtol=1e-12)
    assert_array_equal(found.columns.reshape(-1, 5), brute_force(X - 1e8, 5))


K = 4


@pytest.fixture
def rows(rng):
    """300 rows: 40 times the first, 5 times the second and 4 times the third, in any order."""
    distinct = rng.normal(size=(254, 6)).astype(np.float32)
    numbers = np.concatenate([np.arange(254), np.zeros(39), np.full(4, 1), np.full(3, 2)]).astype(int)
    order = rng.permutation(300)
    return distinct[numbers[order]], numbers[order]


def test_groups_of_more_than_k_equal_rows_are_found(rows):
    X, numbers = rows

    copies = Copies.of(X, K)

    groups = [set(copies.members[a:b].tolist()) for a, b in zip(copies.starts[:-1], copies.starts[1:])]
    assert sorted(groups, key=len) == [set(np.flatnonzero(numbers == number).tolist()) for number in (1, 0)]
    assert Copies.of(np.unique(X, axis=0), K).n_groups == 0


def test_all_but_a_few_of_each_group_are_searched(rows):
    X, numbers = rows

    searched = Copies.of(X, K).searched(len(X))

    assert_array_equal(np.bincount(numbers[searched])[:4], [K + 1, 5, 4, 1])
    assert len(searched) == 300 - 35


def test_zero_and_minus_zero_are_equal_and_huge_values_are_no_problem():
    X = np.zeros((12, 3), dtype=np.float32)
    X[::2, 1] = -0.0
    X[6:, 0] = 3e38

    assert sorted(np.diff(Copies.of(X, K).starts).tolist()) == [6, 6]


@pytest.mark.parametrize("size", [100, 10_000])
def test_no_half_of_equal_rows_is_cut_off_at_few_edges(size):
    neighbors = Copies.of(np.zeros((size, 2)), 9).neighbors()

    is_left = np.arange(size) < size // 2
    crossing = np.mean(is_left[np.arange(size)][:, None] != is_left[neighbors])
    assert crossing > 0.15  # whatever the size; at most 1/2, that of random neighbours


def test_the_neighbors_of_copies_are_copies_and_all_are_neighbors_of_equally_many(rows):
    X, numbers = rows
    copies = Copies.of(X, K)

    neighbors = copies.neighbors()

    assert_array_equal(numbers[neighbors], np.repeat(numbers[copies.members][:, None], K, axis=1))
    assert all(len({row, *near}) == K + 1 for row, near in zip(copies.members, neighbors))
    in_degrees = np.bincount(neighbors.ravel(), minlength=300)[copies.members]
    assert_array_equal(in_degrees, K)  # no row is the neighbour of all others


def test_a_search_in_cells_finds_the_distances_of_the_exact_one(rng):
    X = rng.normal(size=(3000, 6)).astype(np.float32)
    X[rng.permutation(3000)[:1000]] = X[0]

    found = k_nearest(X, K, method="cells")

    exact = k_nearest(X, K, method="exact")
    lengths, expected = (edges.distances.reshape(-1, K) for edges in (found, exact))
    assert np.mean(lengths <= expected * (1 + 1e-5) + 1e-7) > 0.98  # the search in cells is approximate
    assert (found.rows != found.columns).all()
    assert_allclose(np.linalg.norm(X[found.rows] - X[found.columns], axis=1), found.distances, atol=1e-5)
