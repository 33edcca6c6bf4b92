"""Graph files: what is written is read, and nothing else is."""

import contextlib
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fiedler import AffinityGraph, KNNGraph
from fiedler.errors import FileFormatError, InputError


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


def test_the_name_of_a_graph_file_ends_in_npz(uneven_graph, tmp_path):
    with pytest.raises(InputError, match=r"a graph file must end in \.npz"):
        uneven_graph.save(tmp_path / "graph.txt")
    assert not list(tmp_path.iterdir())


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
        ({"degree": np.array(0)}, "its degree is not positive"),
        ({"degree": np.array(-5), "has_constants": np.array(False), "bandwidth": None}, "its degree is not positive"),
        ({"neighbors": np.array(0)}, "its number of neighbours is not positive"),
        ({"bandwidth": np.array(1.0, dtype=np.float16)}, "its array 'bandwidth' has the type float16"),
        ({"has_constants": None}, "it lacks has_constants"),
        ({"has_constants": np.array(False)}, "has constants of a kernel, but says that it has none"),
        ({"bandwidth": np.array(0.0)}, "bandwidth is not positive"),
        ({"bandwidth": np.array(np.nan)}, "bandwidth is not positive"),
        ({"scales": np.ones(3)}, "scales are not one finite non-negative number per node"),
        ({"scales": np.full(30, -1.0)}, "scales are not one finite non-negative number per node"),
        ({"scales": np.full(30, np.inf)}, "scales are not one finite non-negative number per node"),
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
    for other, reason in (
        (directed, "not symmetric"),
        (looped, "to itself"),
        (shifted, "not symmetric"),
        (1e305 * W, "not finite, or their sums could overflow"),
    ):
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
