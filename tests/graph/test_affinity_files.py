"""Graph files: what is written is read, and nothing else is; test_persistence.py tests what all files share."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fiedler import AffinityGraph, KNNGraph
from fiedler.errors import FileFormatError, InputError
from file_fuzzing import build, parse


@pytest.mark.parametrize("weight", ["binary", "heat", "local"])
def test_a_graph_survives_a_file_and_pickle(weight, tmp_path, rng):
    graph = KNNGraph(8, weight=weight).build(rng.normal(size=(40, 3)).astype(np.float32))
    graph.save(tmp_path / "graph.safetensors")

    for loaded in (AffinityGraph.load(tmp_path / "graph.safetensors"), pickle.loads(pickle.dumps(graph))):
        assert_array_equal(loaded.weights.toarray(), graph.weights.toarray())
        assert loaded.weights.dtype == np.float32
        assert loaded.constants.bandwidth == graph.constants.bandwidth
        assert loaded.recall == 1
        if weight == "local":
            assert_array_equal(loaded.constants.scales, graph.constants.scales)


def test_the_name_of_a_graph_file_ends_in_safetensors(uneven_graph, tmp_path):
    with pytest.raises(InputError, match=r"a graph file must end in \.safetensors"):
        uneven_graph.save(tmp_path / "graph.txt")
    assert not list(tmp_path.iterdir())


def test_signs_survive_a_file(signed_graph, tmp_path):
    signed_graph.save(tmp_path / "graph.safetensors")
    loaded = AffinityGraph.load(tmp_path / "graph.safetensors")

    assert loaded.signed
    assert loaded.constants is None
    assert_allclose(loaded.degrees, signed_graph.degrees)


def test_unreadable_files_raise(uneven_graph, tmp_path):
    path = tmp_path / "graph.safetensors"
    with pytest.raises(FileNotFoundError, match="there is no graph file"):
        AffinityGraph.load(path)
    uneven_graph.save(path)
    data = path.read_bytes()
    content, arrays = parse(data)
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(FileFormatError, match="is not a graph file, or it is damaged"):
        AffinityGraph.load(path)
    path.write_bytes(build(content | {"version": 99}, arrays))
    with pytest.raises(FileFormatError, match=r"has format 99, .*; update fiedler"):
        AffinityGraph.load(path)
    path.write_bytes(build(content | {"object": 5}, arrays))
    with pytest.raises(FileFormatError, match="it contains no graph") as caught:
        AffinityGraph.load(path)
    assert caught.value.code == "invalid_graph_file"


def test_a_graph_of_a_file_is_square_and_unsigned_unless_it_says_so(signed_graph, tmp_path):
    path = tmp_path / "graph.safetensors"
    signed_graph.save(path)
    content, arrays = parse(path.read_bytes())
    parameters = content["object"]["object"]["parameters"]
    n = parameters["weights"]["sparse"]["shape"][0]
    for change, reason in (({"signed": False}, "negative"), ({"signed": "yes"}, "signed")):
        parameters.update(change)
        path.write_bytes(build(content, arrays))
        with pytest.raises(FileFormatError, match=reason):
            AffinityGraph.load(path)
    parameters.update(signed=True)
    parameters["weights"]["sparse"]["shape"] = [n, n + 1]
    path.write_bytes(build(content, arrays))
    with pytest.raises(FileFormatError, match="not a square sparse matrix"):
        AffinityGraph.load(path)


def test_weights_whose_pattern_is_not_symmetric_are_refused(tmp_path, rng):
    path = tmp_path / "graph.safetensors"
    graph = KNNGraph(4, weight="heat").build(rng.normal(size=(30, 3)))
    graph.save(path)
    content, arrays = parse(path.read_bytes())
    shifted = sp.csr_array(graph.weights.toarray()[:, np.roll(np.arange(30), 1)] * (1 - np.eye(30)))
    names = [part["array"] for part in content["object"]["object"]["parameters"]["weights"]["sparse"]["parts"]]
    path.write_bytes(build(content, arrays | dict(zip(names, (shifted.data, shifted.indices, shifted.indptr)))))
    with pytest.raises(FileFormatError, match="not symmetric"):
        AffinityGraph.load(path)


def test_no_partial_file_is_left(uneven_graph, tmp_path, monkeypatch):
    def full_disk(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="no space left"):
        uneven_graph.save(tmp_path / "graph.safetensors")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist"):
        uneven_graph.save(tmp_path / "nowhere" / "graph.safetensors")
