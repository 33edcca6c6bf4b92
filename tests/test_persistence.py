"""Model files: what is loaded equals what was saved, and nothing in a file is executed."""

import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.cluster import DBSCAN
from sklearn.decomposition import NMF
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import fiedler
from fiedler import (
    NLE,
    AffinityGraph,
    EmbedKMeans,
    FullGraph,
    GenieLinkage,
    KNNGraph,
    LapGMM,
    PairwiseConstraints,
    SpectralClustering,
)
from fiedler._registry import check_instances
from fiedler.baselines import TransductiveSVM
from fiedler.core.backend import to_numpy
from fiedler.errors import FileFormatError
from fiedler.graph import LandmarkGraph, RadiusGraph
from fiedler.persistence import FORMAT_VERSION, JSON_MEMBER, MODEL_FORMAT, SizeLimit, read_notes
from fiedler.text import DocumentVectorizer

ALL_ESTIMATORS = [one for one in check_instances() if not isinstance(one, TransductiveSVM)]  # contains SVC
PREDICTORS = ("predict", "predict_proba", "transform")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.RandomState(0)
    X = np.abs(np.concatenate([rng.normal(size=(40, 4)) + 4 * i for i in range(3)]))
    return X, np.repeat([0, 1, 2], 40), np.abs(rng.normal(size=(10, 4)) + 4)


@pytest.fixture
def saved(tmp_path, rows):
    """A file with a small model."""
    path = tmp_path / "model.npz"
    fiedler.save(SpectralClustering(3, random_state=0).fit(rows[0]), path)
    return path


def predictions(model, X):
    return {name: to_numpy(getattr(model, name)(X)) for name in PREDICTORS if hasattr(model, name)}


def save_and_load(model, tmp_path):
    fiedler.save(model, tmp_path / "again.npz")
    return fiedler.load(tmp_path / "again.npz")


def text_of(arrays):
    return json.loads(arrays[JSON_MEMBER].tobytes())


def json_array(content):
    return np.frombuffer(json.dumps(content).encode(), np.uint8)


def rewrite(path, **changes):
    """The file with some arrays changed by functions; that of the JSON text gets the parsed text."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    for name, change in changes.items():
        if name == JSON_MEMBER:
            arrays[JSON_MEMBER] = json_array(change(text_of(arrays)))
        else:
            arrays[name] = change(arrays[name])
    np.savez(path, **arrays)
    return path


# -------------------------------------------------------------------------------------------------- saving and loading


@pytest.mark.parametrize("estimator", ALL_ESTIMATORS, ids=str)
def test_a_loaded_model_predicts_like_the_saved_one(estimator, rows, tmp_path):
    X, y, new = rows
    model = clone(estimator).set_params(**({"random_state": 0} if "random_state" in estimator.get_params() else {}))
    model.fit(X, y)

    loaded = save_and_load(model, tmp_path)

    assert type(loaded) is type(model)
    assert str(loaded.get_params()) == str(model.get_params())
    assert set(vars(loaded)) == set(vars(model))
    for name, expected in predictions(model, new).items():
        assert_array_equal(predictions(loaded, new)[name], expected)
    if hasattr(model, "labels_"):
        assert_array_equal(loaded.labels_, model.labels_)


@pytest.mark.parametrize("recipe", [KNNGraph(5, weight="local"), RadiusGraph(3.0), FullGraph()], ids=str)
def test_loaded_graphs_are_equal_and_read_only(recipe, rows, tmp_path):
    X, _, new = rows
    model = SpectralClustering(3, graph=recipe, random_state=0).fit(X)

    loaded = save_and_load(model, tmp_path)

    assert (loaded.graph_.weights != model.graph_.weights).nnz == 0
    assert_array_equal(loaded.predict(new), model.predict(new))
    with pytest.raises(ValueError, match="read-only"):
        loaded.graph_.weights.data[0] = 5.0


def test_low_rank_graphs_pairs_and_random_states(rows, tmp_path):
    X = rows[0]
    pairs = PairwiseConstraints(must_link=[(0, 1)], cannot_link=[(0, 50)], n_samples=len(X))
    low_rank = NLE(3, graph=LandmarkGraph(20), n_init=2, random_state=np.random.RandomState(3)).fit(X)
    learned = fiedler.LearnedLaplacian(max_iter=5).fit(X, constraints=pairs)

    assert_array_equal(save_and_load(low_rank, tmp_path).memberships_, low_rank.memberships_)
    assert save_and_load(low_rank, tmp_path).random_state.randint(1000) == low_rank.random_state.randint(1000)
    assert save_and_load(learned, tmp_path).constraints_.must_link.tolist() == learned.constraints_.must_link.tolist()


def test_the_evidence_for_the_number_of_clusters_is_kept(rows, tmp_path):
    model = fiedler.ManifoldClustering("auto", max_clusters=4, random_state=0).fit(rows[0])

    assert save_and_load(model, tmp_path).report() == model.report()


def test_a_loaded_pipeline_predicts_texts(tmp_path):
    texts = ["stars and planets", "a planet and its star", "bread and butter", "butter on fresh bread"] * 5
    model = make_pipeline(DocumentVectorizer(weight="tfidf"), EmbedKMeans(2, random_state=0)).fit(texts)

    loaded = save_and_load(model, tmp_path)

    assert_array_equal(loaded.predict(["fresh butter", "planets"]), model.predict(["fresh butter", "planets"]))
    assert loaded[0].get_feature_names_out().tolist() == model[0].get_feature_names_out().tolist()


def test_feature_names_are_kept(rows, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows[0], columns=["a", "b", "c", "d"])
    loaded = save_and_load(make_pipeline(StandardScaler(), LapGMM(3, random_state=0)).fit(frame), tmp_path)

    assert loaded.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame[["b", "a", "c", "d"]])


def test_an_array_shared_by_two_attributes_is_written_once(rows, tmp_path):
    fiedler.save(LapGMM(3, random_state=0).fit(rows[0]), tmp_path / "one.npz")

    with np.load(tmp_path / "one.npz") as file:
        same_as_the_rows = [name for name in file.files if file[name].shape == rows[0].shape]
    assert len(same_as_the_rows) == 1


def test_a_model_of_tensors_is_loaded_as_a_numpy_model(rows, tmp_path):
    torch = pytest.importorskip("torch")
    model = LapGMM(3, random_state=0).fit(torch.asarray(rows[0]))

    loaded = save_and_load(model, tmp_path)

    assert isinstance(loaded.memberships_, np.ndarray)
    assert_array_equal(loaded.memberships_, to_numpy(model.memberships_))
    assert loaded.predict(rows[2]).shape == (10,)


def test_notes_are_read_without_the_model(rows, tmp_path):
    fiedler.save(KNNGraph(5), tmp_path / "noted.npz", notes={"columns": ["a", "b"], "input": "table"})

    notes = read_notes(tmp_path / "noted.npz")
    assert notes["columns"] == ["a", "b"]
    assert f"fiedler {fiedler.__version__}" in notes["written_by"]


# --------------------------------------------------------------------------------------------- unreadable and foreign


def test_errors_name_the_attribute_that_cannot_be_saved(rows, tmp_path):
    model = EmbedKMeans(3, embedding=DBSCAN())

    with pytest.raises(TypeError, match=r"EmbedKMeans.embedding is a DBSCAN, which a model file cannot contain"):
        fiedler.save(model, tmp_path / "no.npz")
    with pytest.raises(TypeError, match="random_state is a function"):
        fiedler.save(EmbedKMeans(3, random_state=lambda: 0), tmp_path / "no.npz")
    with pytest.raises(ValueError, match=r"a model file must end in \.npz"):
        fiedler.save(EmbedKMeans(3), tmp_path / "no.pkl")
    with pytest.raises(TypeError, match="contains an estimator; got dict"):
        fiedler.save({}, tmp_path / "no.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not a model file, or it is damaged"),
        (b"PK\x03\x04 cut off", "damaged"),
        (b"a,b\n1,2\n", "not a model file"),
    ],
)
def test_damaged_and_foreign_files(content, message, tmp_path):
    path = tmp_path / "bad.npz"
    path.write_bytes(content)

    with pytest.raises(ValueError, match=message):
        fiedler.load(path)


def test_a_truncated_file_and_one_of_other_arrays(saved, tmp_path):
    half = tmp_path / "half.npz"
    half.write_bytes(saved.read_bytes()[: saved.stat().st_size // 2])
    np.savez(tmp_path / "other.npz", a=np.ones(3))

    with pytest.raises(ValueError, match="damaged"):
        fiedler.load(half)
    with pytest.raises(ValueError, match=r"was not written by fiedler\.save"):
        fiedler.load(tmp_path / "other.npz")
    with pytest.raises(ValueError, match=r"damaged|not a model file"):
        fiedler.load(rewrite(saved, **{JSON_MEMBER: lambda text: [text]}))
    with pytest.raises(FileFormatError, match="is a folder, not a model file"):
        fiedler.load(tmp_path)


def test_a_newer_format_is_an_error(saved):
    future = {"version": FORMAT_VERSION + 1, "written_by": "fiedler 99.0"}

    with pytest.raises(ValueError, match=rf"format {FORMAT_VERSION + 1}, written by fiedler 99.0, .*; update fiedler"):
        fiedler.load(rewrite(saved, **{JSON_MEMBER: lambda text: text | future}))


def test_errors_of_files_have_codes(saved, tmp_path):
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    newer = {"version": FORMAT_VERSION + 1}
    files = {
        "not_a_model_file": tmp_path / "other.npz",
        "newer_format": rewrite(saved, **{JSON_MEMBER: lambda content: content | newer}),
    }
    for code, path in files.items():
        with pytest.raises(FileFormatError) as caught:
            fiedler.load(path)
        assert (caught.value.code, caught.value.fields["file"]) == (code, str(path))


def test_a_graph_file_is_not_a_model_file(rows, tmp_path):
    KNNGraph(5).build(rows[0]).save(tmp_path / "graph.npz")

    with pytest.raises(ValueError, match=r"was not written by fiedler\.save"):
        fiedler.load(tmp_path / "graph.npz")


# ------------------------------------------------------------------------------------------------- nothing is executed


class Bomb:
    """Create a file when unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def an_object(name, **state):
    return with_model({"kind": "object", "class": name, "state": state})


def with_model(node):
    return lambda text: text | {"model": node}


def with_state(**state):
    """The model of the file with more attributes."""
    return lambda text: text | {"model": text["model"] | {"state": text["model"]["state"] | state}}


@pytest.mark.parametrize(
    "name", ["os.system", "system", "Popen", "eval", "__import__", "fiedler.cli.main", "Plan", "Writer"]
)
def test_a_class_that_is_not_registered_is_never_imported(name, saved, monkeypatch):
    def no_import(name):
        raise AssertionError(f"{name} was imported")

    monkeypatch.setattr("fiedler.persistence.import_module", no_import)

    with pytest.raises(ValueError, match=r"names a class .* that is not allowed in model files"):
        fiedler.load(rewrite(saved, **{JSON_MEMBER: an_object(name, command="true")}))


@pytest.mark.parametrize("mentioned", [False, True])
def test_pickled_arrays_are_never_read(mentioned, saved, tmp_path):
    marker, bomb = tmp_path / "ran", np.array([Bomb(tmp_path / "ran")], dtype=object)
    with np.load(saved) as file:
        arrays = {name: file[name] for name in file.files}
    name = f"a{len(arrays) - 1}"
    np.savez(saved, **arrays, **{name: bomb})
    if mentioned:
        node = {"kind": "array", "array": name}
        np.savez(saved, **{JSON_MEMBER: json_array(with_model(node)(text_of(arrays)))}, **{name: bomb})

    with pytest.raises(FileFormatError, match="is not a valid model file"):
        fiedler.load(saved)
    assert not marker.exists()


def test_a_file_that_is_a_pickle_is_refused(tmp_path):
    marker, path = tmp_path / "ran", tmp_path / "model.npz"
    path.write_bytes(pickle.dumps(Bomb(marker)))

    with pytest.raises(ValueError, match="is not a model file"):
        fiedler.load(path)
    assert not marker.exists()


def test_the_cache_of_a_pipeline_is_not_restored(saved):
    step = {"kind": "object", "class": "KNNGraph", "state": vars(KNNGraph())}
    crafted = {"kind": "pipeline", "steps": [["one", step]], "memory": "x"}
    other = {"kind": "object", "class": "Pipeline", "state": {"steps": [], "memory": "x"}}

    with pytest.raises(FileFormatError, match="a value of kind 'pipeline' with other parts than steps"):
        fiedler.load(rewrite(saved, **{JSON_MEMBER: with_model(crafted)}))
    with pytest.raises(ValueError, match="not allowed in model files"):
        fiedler.load(rewrite(saved, **{JSON_MEMBER: lambda text: text | {"model": other}}))


def counter(**state):
    default = vars(CountVectorizer()) | {"dtype": {"kind": "dtype", "name": "int64"}}
    return {"kind": "object", "class": "CountVectorizer", "state": default | state}


@pytest.mark.parametrize(
    "node",
    [
        counter(vocabulary_={"kind": "dict", "items": [["star", 10**8]]}),
        counter(vocabulary_={"kind": "dict", "items": [["star", -(2**31)]]}),
        counter(input="filename"),
        {"kind": "random_state", "state": ["MT19937", list(range(624)), 10**9, 0, 0.0]},
        {
            "kind": "object",
            "class": "NMF",
            "state": vars(NMF()) | {"components_": {"kind": "array", "array": "a0"}, "_n_components": 9},
        },
        {"kind": "object", "class": "KMeans", "state": {}},
        5,
        None,
    ],
    ids=str,
)
def test_state_that_compiled_code_would_trust_is_checked(node, saved):
    with pytest.raises(ValueError, match="is not a valid model file"):
        fiedler.load(rewrite(saved, **{JSON_MEMBER: lambda text: text | {"model": node}}))


@pytest.mark.parametrize("version", [float("inf"), "two", None, 10**400, 0, -1, True])
def test_invalid_format_versions(version, saved):
    with pytest.raises(ValueError, match=r"not a model file|reads formats up to"):
        fiedler.load(rewrite(saved, **{JSON_MEMBER: lambda text: text | {"version": version}}))


def test_an_index_out_of_bounds_never_reaches_compiled_code(saved):
    with np.load(saved) as file:
        indices = [name for name in file.files if file[name].dtype == np.int32 and file[name].ndim == 1]

    for name in indices:
        path = rewrite(
            saved, **{name: lambda array: np.where(np.arange(len(array)) == 5, 2**30, array).astype(np.int32)}
        )
    with pytest.raises(ValueError, match="is not a valid model file"):
        fiedler.load(path)


@pytest.mark.parametrize(
    "node",
    [
        {"kind": "surprise"},
        {"kind": "array", "array": "a12345"},
        {"kind": "object", "class": "Step", "state": {"no_such_field": 1}},
        {"kind": "dtype", "name": "no dtype"},
        {"kind": "object", "class": "KNNGraph"},
        {},
    ],
    ids=str,
)
def test_crafted_nodes_raise_an_error_with_a_reason(node, saved):
    with pytest.raises(ValueError, match="is not a valid model file"):
        fiedler.load(rewrite(saved, **{JSON_MEMBER: lambda text: text | {"model": node}}))


def test_parameters_added_later_take_their_defaults(saved):
    def without(text):
        del text["model"]["state"]["graph"], text["model"]["state"]["cut"]
        return text

    assert fiedler.load(rewrite(saved, **{JSON_MEMBER: without})).cut == SpectralClustering().cut


def test_underscored_parameters_of_a_graph_are_required(saved):
    def without(text):
        del text["model"]["state"]["graph_"]["state"]["_weights"]
        return text

    with pytest.raises(ValueError, match="its AffinityGraph lacks _weights"):
        fiedler.load(rewrite(saved, **{JSON_MEMBER: without}))


@pytest.mark.parametrize("name", ["predict", "fit", "get_params", "__class__", "__sklearn_tags__", "_repr_html_"])
def test_state_never_replaces_methods_or_properties(name, saved):
    with pytest.raises(ValueError, match=f"its SpectralClustering would replace methods or properties: {name}"):
        fiedler.load(rewrite(saved, **{JSON_MEMBER: with_state(**{name: 5})}))


def test_state_of_graphs_never_replaces_methods_or_properties(saved):
    def with_degrees(text):
        text["model"]["state"]["graph_"]["state"]["degrees"] = [1.0]
        return text

    with pytest.raises(ValueError, match="its AffinityGraph would replace methods or properties: degrees"):
        fiedler.load(rewrite(saved, **{JSON_MEMBER: with_degrees}))
    recipe = {"kind": "object", "class": "KNNGraph", "state": vars(KNNGraph()) | {"build": None}}
    with pytest.raises(ValueError, match="its KNNGraph would replace methods or properties: build"):
        fiedler.load(rewrite(saved, **{JSON_MEMBER: with_model(recipe)}))


@pytest.mark.parametrize("notes", [[], "text", None, {"columns": {"a": 1}}, {"columns": [["a", {}]]}], ids=str)
def test_notes_that_are_not_plain_values_cannot_be_read(notes, saved):
    with pytest.raises(ValueError, match="is damaged: its notes are not a dictionary of plain values"):
        read_notes(rewrite(saved, **{JSON_MEMBER: lambda text: text | {"notes": notes}}))


@pytest.mark.parametrize("notes", [{"columns": np.arange(2)}, {3: "a"}, {"columns": {"a": 1}}], ids=str)
def test_notes_that_are_not_plain_values_cannot_be_saved(notes, tmp_path):
    with pytest.raises(TypeError, match="notes must be a dictionary of plain values"):
        fiedler.save(KNNGraph(5), tmp_path / "noted.npz", notes=notes)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "size"), [("a999", 101_000_000), (JSON_MEMBER, 11_000_000)])
def test_a_decompression_bomb_is_refused_before_it_is_read(name, size, saved, monkeypatch):
    with np.load(saved) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez_compressed(saved, **arrays | {name: np.zeros(size, np.uint8)})
    monkeypatch.setattr("fiedler._archive._Member", lambda *_: pytest.fail("it was read"))

    for read in (fiedler.load, read_notes):
        with pytest.raises(ValueError, match="decompressed size exceeds the limit"):
            read(saved)


def test_models_that_compress_too_well_are_saved_uncompressed(tmp_path, monkeypatch):
    """A valid model may be mostly zeros; it must not be refused as a decompression bomb."""
    X = np.zeros((100, 10_000))
    X[:, :2] = np.arange(200).reshape(100, 2)
    monkeypatch.setattr("fiedler._archive.TOTAL_LIMIT", SizeLimit(1000, 100))

    assert_array_equal(save_and_load(GenieLinkage(3).fit(X), tmp_path)._fit_X, X)
    assert (tmp_path / "again.npz").stat().st_size > 8_000_000


def test_deeply_nested_json_is_an_error(saved):
    deep = b'{"format": "' + MODEL_FORMAT.encode() + b'", "version": 1, "written_by": "", "notes": {}, "model": '
    deep += b"[" * 200_000 + b"]" * 200_000 + b"}"

    with pytest.raises(ValueError, match=r"not a model file|not a valid model file"):
        fiedler.load(_with_text(saved, deep))


def _with_text(path, text):
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    np.savez(path, **{**arrays, JSON_MEMBER: np.frombuffer(text, np.uint8)})
    return path


def test_models_of_sparse_rows(tmp_path, rng):
    X = sp.random_array((60, 20), density=0.3, rng=0, format="csr")
    model = SpectralClustering(2, graph=AffinityGraph.from_matrix(X @ X.T), random_state=0).fit(X)

    assert_array_equal(save_and_load(model, tmp_path).labels_, model.labels_)
