import contextlib
import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fiedler import AffinityGraph, KNNGraph
from fiedler.core.backend import to_numpy
from fiedler.core.sparse import to_scipy
from fiedler.errors import FileFormatError
from toys import uneven_weights


def test_attributes_of_a_graph(uneven_graph):
    W = uneven_weights()

    assert_array_equal(uneven_graph.weights.toarray(), W)
    assert_allclose(uneven_graph.degrees, W.sum(axis=1))
    assert (uneven_graph.n_nodes, uneven_graph.n_edges) == (10, 11)
    assert uneven_graph.weights.indices.dtype == np.int32


def test_components_are_numbered_by_decreasing_size(uneven_graph):
    count, labels = uneven_graph.components()

    assert count == 3
    assert_array_equal(labels, [0] * 6 + [1] * 3 + [2])


def test_signed_degrees_are_sums_of_absolute_weights(signed_graph):
    assert_allclose(signed_graph.degrees, abs(signed_graph.weights).sum(axis=1))
    assert signed_graph.degrees[4] == 2


@pytest.mark.parametrize("array", ["data", "indices", "indptr"])
def test_a_graph_is_immutable(array, uneven_graph):
    with pytest.raises(ValueError, match="read-only"):
        getattr(uneven_graph.weights, array)[0] = 5
    with pytest.raises(AttributeError):
        uneven_graph.weights = None


def test_from_matrix_accepts_every_container(backend):
    W = uneven_weights()
    for matrix in (W, W.tolist(), sp.csr_array(W), sp.coo_matrix(W), backend(W)):
        assert_array_equal(to_scipy(AffinityGraph.from_matrix(matrix).weights).toarray(), W)


def test_from_matrix_keeps_torch_tensors():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    graph = AffinityGraph.from_matrix(torch.asarray(uneven_weights()).to_sparse_csr())

    assert graph.weights.layout == torch.sparse_csr
    assert_allclose(to_numpy(graph.degrees), uneven_weights().sum(axis=1))


def test_the_diagonal_is_ignored():
    assert AffinityGraph.from_matrix(np.eye(4) + 1).weights.diagonal().sum() == 0


def test_signs_and_symmetry_are_checked_off_the_diagonal_only():
    assert AffinityGraph.from_matrix([[-1.0, 2.0], [2.0, -1.0]]).n_edges == 1
    split = sp.coo_array(([2.0, -1.0, 1.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert_array_equal(AffinityGraph.from_matrix(sp.csr_array(split)).weights.toarray(), [[0, 1], [1, 0]])


def test_the_callers_matrix_stays_writable_and_clones_share_the_graph():
    W = sp.csr_array(uneven_weights())
    graph = AffinityGraph(W)
    W.data[0] = W.data[0]

    assert copy.deepcopy(graph) is graph
    with pytest.raises(ValueError, match="read-only"):
        pickle.loads(pickle.dumps(graph)).weights.data[0] = 5


def test_asymmetry_by_rounding_is_averaged():
    W = uneven_weights()
    W[0, 1] += 1e-12

    weights = AffinityGraph.from_matrix(W).weights

    assert abs(weights - weights.T).max() == 0


@pytest.mark.parametrize(
    ("W", "message"),
    [
        (np.ones((2, 3)), r"an affinity matrix must be square, with one row per node; got shape \(2, 3\)"),
        (np.ones(3), r"an affinity matrix must be square and numeric; got shape \(3,\)"),
        (np.array([["a", "b"], ["c", "d"]]), "square and numeric"),
        (np.zeros((0, 0)), "square, with one row per node"),
        (np.array([[0, np.nan], [np.nan, 0]]), "contains NaN or infinity"),
        (np.array([[0, np.inf], [np.inf, 0]]), "contains NaN or infinity"),
        (
            np.array([[0.0, 1.0], [0.5, 0.0]]),
            r"is not symmetric \(w_ij and w_ji differ by up to 0.5\); symmetrise it first",
        ),
        (np.array([[1e7, 3.0], [0.0, 0.0]]), r"is not symmetric \(w_ij and w_ji differ by up to 3\)"),
        (sp.csr_array(np.array([[0, 1j], [1j, 0]])), "square and numeric"),
        (np.array([[0.0, -2.0], [-2.0, 0.0]]), r"has negative weights \(smallest -2\); pass signed=True"),
    ],
)
def test_invalid_affinity_raises(W, message):
    with pytest.raises(ValueError, match=message):
        AffinityGraph.from_matrix(W)


def test_a_graph_may_have_no_edges():
    graph = AffinityGraph.from_matrix(np.zeros((3, 3)))

    assert graph.n_edges == 0
    assert graph.components()[0] == 3
    assert_array_equal(graph.laplacian("symmetric").toarray(), np.zeros((3, 3)))


# ------------------------------------------------------------------------------------------------------ files, pickles


@pytest.mark.parametrize("weight", ["binary", "heat", "local"])
def test_a_graph_survives_a_file_and_pickle(weight, tmp_path, rng):
    graph = KNNGraph(8, weight=weight).build(rng.normal(size=(40, 3)).astype(np.float32))
    graph.save(tmp_path / "graph.npz")

    for loaded in (AffinityGraph.load(tmp_path / "graph.npz"), pickle.loads(pickle.dumps(graph))):
        assert_array_equal(loaded.weights.toarray(), graph.weights.toarray())
        assert loaded.weights.dtype == np.float32
        assert loaded.constants.bandwidth == graph.constants.bandwidth
        assert loaded.recall == 1
        if weight == "local":
            assert_array_equal(loaded.constants.scales, graph.constants.scales)


def test_signs_survive_a_file(signed_graph, tmp_path):
    signed_graph.save(tmp_path / "graph.npz")
    loaded = AffinityGraph.load(tmp_path / "graph.npz")

    assert loaded.signed
    assert loaded.constants is None
    assert_allclose(loaded.degrees, signed_graph.degrees)


def test_unreadable_files_raise(uneven_graph, tmp_path):
    path = tmp_path / "graph.npz"
    with pytest.raises(FileNotFoundError, match="there is no graph file"):
        AffinityGraph.load(path)
    path.write_bytes(b"not an archive")
    with pytest.raises(ValueError, match="is not a graph file, or it is damaged"):
        AffinityGraph.load(path)
    np.savez(path, data=np.ones(3))
    with pytest.raises(ValueError, match=r"is not a valid graph file: it was not written by AffinityGraph\.save"):
        AffinityGraph.load(path)
    np.savez(path, fiedler_graph=99)
    with pytest.raises(ValueError, match="its format 99 is newer than this version reads; update fiedler"):
        AffinityGraph.load(path)
    uneven_graph.save(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match="damaged"):
        AffinityGraph.load(path)


def test_inconsistent_arrays_are_refused(uneven_graph, tmp_path):
    path = tmp_path / "graph.npz"
    uneven_graph.save(path)
    with np.load(path) as file:
        arrays = dict(file)
    broken = [{"indices": arrays["indices"] + 100}, {"data": -arrays["data"]}, {"data": arrays["data"] * np.nan}]
    broken += [{"data": np.arange(22.0)}, {"fiedler_graph": "one"}, {"shape": np.array([10])}]
    for change in broken:
        np.savez(path, **(arrays | change))
        with pytest.raises(ValueError, match="is not a valid graph file"):
            AffinityGraph.load(path)


def saved_arrays(graph, path):
    graph.save(path)
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"fiedler_graph": np.array(0)}, "not a positive integer"),
        ({"fiedler_graph": np.array(-1)}, "not a positive integer"),
        ({"fiedler_graph": np.array(1.0)}, "not a positive integer"),
        ({"fiedler_graph": np.array([1])}, "not a positive integer"),
        ({"more": np.array(0)}, "an unknown array 'more'"),
        ({"signed": np.array(0)}, "its array 'signed' has the type int64 and 0 axes"),
        ({"degree": np.array([2])}, "its array 'degree' has the type int64 and 1 axes"),
        ({"degree": np.array(0)}, "its degree or its number of neighbours is not positive"),
        ({"neighbors": np.array(0)}, "its degree or its number of neighbours is not positive"),
        ({"has_constants": None}, "it lacks has_constants"),
        ({"has_constants": np.array(False)}, "has constants of a kernel, but says that it has none"),
        ({"bandwidth": np.array(0.0)}, "bandwidth is not positive"),
        ({"bandwidth": np.array(np.nan)}, "bandwidth is not positive"),
        ({"scales": np.ones(3)}, "scales are not one non-negative number per node"),
        ({"scales": np.full(30, -1.0)}, "scales are not one non-negative number per node"),
        ({"metric": np.full((2, 2), np.inf)}, "metric is not finite"),
        ({"recall": np.array(1.5)}, "recall is not a share"),
        ({"loops": np.full(30, -1.0)}, "self-loops are not one non-negative number per node"),
        ({"shape": np.array([30, 31])}, "not a square sparse matrix"),
        ({"shape": np.array([30, -30])}, "has the shape"),
    ],
)
def test_arrays_of_a_file_that_contradict_the_format_are_refused(changes, reason, tmp_path, rng):
    path = tmp_path / "graph.npz"
    arrays = saved_arrays(KNNGraph(4, weight="heat").build(rng.normal(size=(30, 3))), path)
    np.savez(path, **{name: value for name, value in (arrays | changes).items() if value is not None})

    with pytest.raises(FileFormatError, match=reason):
        AffinityGraph.load(path)


def test_weights_of_a_file_are_those_of_a_graph(tmp_path, rng):
    path = tmp_path / "graph.npz"
    arrays = saved_arrays(KNNGraph(4, weight="heat").build(rng.normal(size=(30, 3))), path)
    W = sp.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]))
    directed, looped = sp.triu(W, format="csr"), (W + 0.5 * sp.eye_array(30)).tocsr()
    shifted = sp.csr_array(W.toarray()[:, np.roll(np.arange(30), 1)] * (1 - np.eye(30)))
    for other, reason in ((directed, "not symmetric"), (looped, "to itself"), (shifted, "not symmetric")):
        parts = {name: getattr(other, name) for name in ("data", "indices", "indptr")}
        np.savez(path, **arrays | parts)
        with pytest.raises(FileFormatError, match=reason):
            AffinityGraph.load(path)


def test_a_flipped_byte_raises_value_error_at_most(uneven_graph, tmp_path):
    path = tmp_path / "graph.npz"
    uneven_graph.save(path)
    content = path.read_bytes()
    for position in range(0, len(content), 7):
        path.write_bytes(content[:position] + bytes([content[position] ^ 0xFF]) + content[position + 1 :])
        with contextlib.suppress(ValueError):  # a byte without meaning may also go unnoticed
            AffinityGraph.load(path)


def test_pickled_objects_in_a_file_are_not_run(tmp_path):
    path = tmp_path / "graph.npz"
    np.savez(path, fiedler_graph=np.array([object()], dtype=object))
    with pytest.raises(ValueError, match="its header is not that of an array of numbers or strings"):
        AffinityGraph.load(path)


def test_no_partial_file_is_left(uneven_graph, tmp_path, monkeypatch):
    def full_disk(path, **arrays):
        path.write_bytes(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez_compressed", full_disk)
    with pytest.raises(OSError, match="no space left"):
        uneven_graph.save(tmp_path / "graph.npz")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist"):
        uneven_graph.save(tmp_path / "nowhere" / "graph.npz")


# --------------------------------------------------------------------------------------------------------- connecting


def clouds(rng):
    """Four clouds at 0, 10, 17 and 100 on a line, of 20, 15, 10 and 5 points."""
    sizes, places = [20, 15, 10, 5], [0.0, 10.0, 17.0, 100.0]
    offset = np.repeat(places, sizes)[:, None] * [1.0, 0.0]
    return rng.uniform(-1, 1, size=(50, 2)) + offset, np.repeat(np.arange(4), sizes)


def added_edges(before, after):
    extra = sp.triu(after.weights - before.weights).tocoo()
    return list(zip(extra.row.tolist(), extra.col.tolist()))


def test_mst_adds_the_shortest_edges_that_connect(rng):
    X, y = clouds(rng)
    graph = KNNGraph(4).build(X)
    assert graph.components()[0] == 4

    joined = graph.connect(X, "mst")

    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    shortest = {}
    for a, b in [(0, 1), (1, 2), (2, 3)]:  # the minimum spanning tree over clouds on a line joins neighbours
        block = np.where(np.outer(y == a, y == b), distances, np.inf)
        shortest[a, b] = np.unravel_index(block.argmin(), block.shape)
    assert joined.components()[0] == 1
    assert sorted(added_edges(graph, joined)) == sorted(tuple(map(int, e)) for e in shortest.values())


def test_nearest_joins_every_component_to_the_largest(rng):
    X, y = clouds(rng)
    graph = KNNGraph(4).build(X)

    joined = graph.connect(X, "nearest")

    assert joined.components()[0] == 1
    assert sorted((y[i], y[j]) for i, j in added_edges(graph, joined)) == [(0, 1), (0, 2), (0, 3)]


@pytest.mark.parametrize("how", ["mst", "nearest"])
def test_bridges_have_the_smallest_weight_of_the_graph(how, rng, backend):
    X, _ = clouds(rng)
    graph = KNNGraph(4, weight="heat").build(backend(X))
    joined = graph.connect(backend(X), how)

    before, after = to_scipy(graph.weights), to_scipy(joined.weights)
    assert_allclose(after[before.toarray() == 0].max(), before.data.min())
    assert_array_equal(after.toarray(), after.toarray().T)


def test_isolated_nodes_are_connected_too(uneven_graph, rng):
    X = rng.normal(size=(10, 2))

    assert uneven_graph.connect(X).components()[0] == 1
    assert AffinityGraph.from_matrix(np.zeros((4, 4))).connect(X[:4]).n_edges == 3


def test_a_recipe_can_connect_its_graph(rng):
    X, _ = clouds(rng)

    assert KNNGraph(4, connect="mst").build(X).components()[0] == 1


def test_connect_returns_a_connected_graph_itself(connected_graph, rng):
    assert connected_graph.connect(rng.normal(size=(6, 2))) is connected_graph
    with pytest.raises(ValueError, match="X has 5 rows, but the graph has 6 nodes"):
        connected_graph.connect(np.zeros((5, 2)))
