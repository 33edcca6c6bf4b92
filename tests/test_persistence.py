"""Model and graph files: what is loaded equals what was saved, damage is refused, and nothing in a file is executed."""

import json
import pickle
import tracemalloc

import numpy as np
import pytest
import safetensors.numpy
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.cluster import DBSCAN
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import fiedler
from fiedler import (
    LLGC,
    NLE,
    AffinityGraph,
    EmbedKMeans,
    FullGraph,
    KNNGraph,
    LapGMM,
    PairwiseConstraints,
    SpectralClustering,
)
from fiedler.core.arrays import to_numpy
from fiedler.errors import FileFormatError, InputError, InputTypeError
from fiedler.graph import LandmarkGraph, RadiusGraph
from fiedler.persistence import FORMAT_VERSION, read_notes
from fiedler.text import DocumentVectorizer
from file_fuzzing import build, parse
from registry_instances import check_instances

ALL_ESTIMATORS = [one for one in check_instances() if type(one).__name__ != "TransductiveSVM"]  # contains SVC
PREDICTORS = ("predict", "predict_proba", "transform")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.RandomState(0)
    X = np.abs(np.concatenate([rng.normal(size=(40, 4)) + 4 * i for i in range(3)]))
    return X, np.repeat([0, 1, 2], 40), np.abs(rng.normal(size=(10, 4)) + 4)


@pytest.fixture
def saved(tmp_path, rows):
    """A file with a small model."""
    path = tmp_path / "model.safetensors"
    fiedler.save(SpectralClustering(3, random_state=0).fit(rows[0]), path)
    return path


def predictions(model, X):
    return {name: to_numpy(getattr(model, name)(X)) for name in PREDICTORS if hasattr(model, name)}


def save_and_load(model, tmp_path):
    fiedler.save(model, tmp_path / "again.safetensors")
    return fiedler.load(tmp_path / "again.safetensors")


def with_attribute(value):
    """A model with an attribute of any kind."""
    model = EmbedKMeans(2)
    model.some_ = value
    return model


def rewrite(path, change=lambda content: None, change_header=lambda header: None, **arrays):
    """The file with its JSON text, its header and some arrays changed, and a checksum that agrees with them."""
    content, known = parse(path.read_bytes())
    content = change(content) or content
    path.write_bytes(build(content, known | arrays, change_header))
    return path


def with_object(node):
    return lambda content: content | {"object": node}


def an_object(name, parameters=(), attributes=()):
    return {"object": {"class": name, "parameters": dict(parameters), "attributes": dict(attributes)}}


def part_of(content, *names):
    """The parameters or attributes of the object in a file, or of one inside it, such as ``"attributes", "graph_"``."""
    node = content["object"]["object"]
    for group, name in zip(names[:-1:2], names[1::2]):
        node = node[group][name]["object"]
    return node[names[-1]]


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


@pytest.mark.parametrize(
    "classes",
    [
        np.array([["a", "éß"], ["𝛼", ""]]),
        np.array(["a", "bc"], ">U5"),
        np.array([b"a", b"bc"]),
        np.array([["a"], ["é"]], object),
        np.arange(3, dtype=">i4"),
        np.arange(3, dtype="u2"),
        np.array([True, False]),
        np.arange(3, dtype="f2"),
    ],
    ids=str,
)
def test_classes_of_any_type_are_kept(classes, rows, tmp_path):
    model = LLGC().fit(rows[0], rows[1])
    model.classes_ = classes

    loaded = save_and_load(model, tmp_path).classes_

    assert_array_equal(loaded, classes)
    assert loaded.dtype == classes.dtype.newbyteorder("=")


@pytest.mark.parametrize(
    "value",
    [1.5, -0.0, True, np.inf, 2**70, (1, (2,)), {1: "a", (2, 3): [None]}, {"a", "b"}, np.float32(0.1), np.int8, "é"],
)
def test_plain_values_are_kept(value, tmp_path):
    loaded = save_and_load(with_attribute(value), tmp_path).some_

    assert (loaded, type(loaded)) == (value, type(value))
    assert np.signbit(loaded) == np.signbit(value) if value == 0 else True


def test_the_memory_layout_of_arrays_is_kept(rows, tmp_path):
    model = LLGC().fit(rows[0], rows[1])
    arrays = [np.asfortranarray(rows[0]), rows[0][::2, ::-1], rows[0][:0], np.array(3.5), np.zeros((0, 2), "U3")]
    model.arrays_ = arrays

    for loaded, array in zip(save_and_load(model, tmp_path).arrays_, arrays):
        assert_array_equal(loaded, array)
        assert loaded.dtype == array.dtype
        assert loaded.flags.f_contiguous == (array.flags.f_contiguous or not array.size)
        assert loaded.flags.writeable


def test_an_array_shared_by_two_attributes_is_written_once(rows, tmp_path):
    fiedler.save(LapGMM(3, random_state=0).fit(rows[0]), tmp_path / "one.safetensors")

    tensors = safetensors.numpy.load_file(tmp_path / "one.safetensors")
    assert [array.shape for array in tensors.values()].count(rows[0].shape) == 1


def test_the_same_model_gives_the_same_bytes(rows, tmp_path, saved):
    before = saved.read_bytes()

    fiedler.save(SpectralClustering(3, random_state=0).fit(rows[0]), saved)

    assert saved.read_bytes() == before


def test_a_model_of_tensors_is_loaded_as_a_numpy_model(rows, tmp_path):
    torch = pytest.importorskip("torch")
    model = LapGMM(3, random_state=0).fit(torch.asarray(rows[0]))

    loaded = save_and_load(model, tmp_path)

    assert isinstance(loaded.memberships_, np.ndarray)
    assert_array_equal(loaded.memberships_, to_numpy(model.memberships_))
    assert loaded.predict(rows[2]).shape == (10,)
    model.memberships_ = torch.ones(3, dtype=torch.complex64)
    with pytest.raises(InputTypeError, match="it contains an array of type complex64"):
        save_and_load(model, tmp_path)


def test_models_of_sparse_rows(tmp_path):
    X = sp.random_array((60, 20), density=0.3, random_state=0, format="csr")
    model = SpectralClustering(2, graph=AffinityGraph.from_matrix(X @ X.T), random_state=0).fit(X)

    assert_array_equal(save_and_load(model, tmp_path).labels_, model.labels_)


def test_notes_are_read_without_the_model(tmp_path):
    notes = {"columns": ["a", "b"], "input": "table", "scale": np.inf}
    fiedler.save(KNNGraph(5), tmp_path / "noted.safetensors", notes=notes)

    read = read_notes(tmp_path / "noted.safetensors")
    assert notes.items() <= read.items()
    assert f"fiedler {fiedler.__version__}" in read["written_by"]


# ---------------------------------------------------------------------------------------------- what cannot be saved


def test_errors_name_the_attribute_that_cannot_be_saved(tmp_path):
    path = tmp_path / "no.safetensors"
    with pytest.raises(TypeError, match=r"EmbedKMeans.embedding is a DBSCAN, which a model file cannot contain"):
        fiedler.save(EmbedKMeans(3, embedding=DBSCAN()), path)
    with pytest.raises(TypeError, match="random_state is a function"):
        fiedler.save(EmbedKMeans(3, random_state=lambda: 0), path)
    with pytest.raises(TypeError, match=r"random_state is a ndarray, which a model file cannot contain"):
        fiedler.save(EmbedKMeans(2, random_state=np.array(["2020-01-01"], dtype="M8[D]")), path)
    with pytest.raises(TypeError, match=r"metric is a str, which a model file cannot contain"):
        fiedler.save(EmbedKMeans(2, metric="\ud800"), path)
    with pytest.raises(ValueError, match=r"a model file must end in \.safetensors"):
        fiedler.save(EmbedKMeans(3), tmp_path / "no.pkl")
    with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist"):
        fiedler.save(EmbedKMeans(3), tmp_path / "nowhere" / "no.safetensors")
    with pytest.raises(TypeError, match="contains an estimator; got dict"):
        fiedler.save({}, path)
    assert list(tmp_path.iterdir()) == []


def test_a_model_that_could_not_be_loaded_is_not_saved(tmp_path, monkeypatch):
    path = tmp_path / "no.safetensors"
    with pytest.raises(InputTypeError, match="the model cannot be saved: The 'with_mean' parameter"):
        fiedler.save(make_pipeline(StandardScaler(with_mean="yes"), EmbedKMeans(2)), path)
    with pytest.raises(InputTypeError, match="the model cannot be saved: random_state must be"):
        fiedler.save(EmbedKMeans(2, random_state=-1), path)
    with pytest.raises(InputTypeError, match="the steps of a pipeline are not estimators with a name each"):
        fiedler.save(Pipeline([("a", "passthrough"), ("b", EmbedKMeans(2))]), path)
    monkeypatch.setattr("fiedler.persistence.MAX_HEADER", 200)
    with pytest.raises(InputError, match="all but its arrays takes more than 200 bytes"):
        fiedler.save(EmbedKMeans(2), path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("notes", [{"columns": np.arange(2)}, {3: "a"}, {"columns": {"a": 1}}], ids=str)
def test_notes_that_are_not_plain_values_cannot_be_saved(notes, tmp_path):
    with pytest.raises(TypeError, match="notes must be a dictionary of plain values"):
        fiedler.save(KNNGraph(5), tmp_path / "noted.safetensors", notes=notes)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------- damaged and foreign


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"a,b\n1,2\n", b"\x02" + bytes(7) + b"{}"])
def test_damaged_and_foreign_files(content, tmp_path):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)

    for read in (fiedler.load, read_notes, AffinityGraph.load):
        with pytest.raises(FileFormatError, match=r"is not a (model|graph) file, or it is damaged: it"):
            read(path)


def test_every_damaged_byte_is_found(tmp_path):
    path = tmp_path / "model.safetensors"
    fiedler.save(with_attribute(np.arange(3)), path)
    content = path.read_bytes()
    for position in range(len(content)):
        path.write_bytes(content[:position] + bytes([content[position] ^ 0x2A]) + content[position + 1 :])
        with pytest.raises(FileFormatError, match="is not a model file, or it is damaged") as caught:
            fiedler.load(path)
        assert (caught.value.code, caught.value.fields["file"]) == ("not_a_model_file", str(path))
    for size in (*range(0, len(content), 7), len(content) - 1):
        path.write_bytes(content[:size])
        with pytest.raises(FileFormatError, match="damaged"):
            fiedler.load(path)
    path.write_bytes(content + b"\0")
    with pytest.raises(FileFormatError, match="its checksum is wrong"):
        fiedler.load(path)


def test_files_of_others(saved, tmp_path):
    other = tmp_path / "other.safetensors"
    safetensors.numpy.save_file({"a": np.ones(3)}, other, metadata={"fiedler": "{}"})

    with pytest.raises(FileFormatError, match=r"it was not written by fiedler\.save"):
        fiedler.load(other)
    with pytest.raises(FileFormatError, match="is a folder, not a model file"):
        fiedler.load(tmp_path)


def test_graph_files_and_model_files_are_told_apart(rows, tmp_path, saved):
    path = tmp_path / "graph.safetensors"
    KNNGraph(5).build(rows[0]).save(path)

    with pytest.raises(FileFormatError, match=r"is not a model file: it was not written by fiedler\.save"):
        fiedler.load(path)
    with pytest.raises(FileFormatError, match=r"is not a graph file: it was not written by AffinityGraph\.save"):
        AffinityGraph.load(saved)


def test_a_newer_format_is_an_error(saved):
    future = {"version": FORMAT_VERSION + 1, "written_by": "fiedler 99.0"}

    with pytest.raises(FileFormatError, match=r"format 2, written by fiedler 99.0, .*; update fiedler") as caught:
        fiedler.load(rewrite(saved, lambda content: content | future))
    assert caught.value.code == "newer_format"


@pytest.mark.parametrize(
    "change",
    [
        *({"version": version} for version in (np.inf, "two", None, 10**400, 0, -1, True)),
        {"format": "another"},
        {"written_by": "\ud800"},
        {"written_by": 3},
    ],
    ids=str,
)
def test_invalid_headers_of_the_text(change, saved):
    with pytest.raises(FileFormatError, match=r"not a model file|reads formats up to"):
        fiedler.load(rewrite(saved, lambda content: content | change))


@pytest.mark.parametrize("notes", [[], "text", None, {"columns": {"a": 1}}, {"columns": [["a", {}]]}], ids=str)
def test_notes_that_are_not_plain_values_cannot_be_read(notes, saved):
    with pytest.raises(FileFormatError, match="is damaged: its notes are not a dictionary of plain values"):
        read_notes(rewrite(saved, lambda content: content | {"notes": notes}))


def test_a_file_that_may_not_be_read_raises_the_error_of_the_system(saved, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", denied)

    with pytest.raises(PermissionError):
        fiedler.load(saved)


# ------------------------------------------------------------------------------------------------------- crafted files


class Bomb:
    """Create a file when unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def test_a_file_that_is_a_pickle_is_refused(tmp_path):
    marker, path = tmp_path / "ran", tmp_path / "model.safetensors"
    path.write_bytes(pickle.dumps(Bomb(marker)))

    with pytest.raises(FileFormatError, match="is not a model file"):
        fiedler.load(path)
    assert not marker.exists()


@pytest.mark.parametrize("name", ["os.system", "Popen", "eval", "__import__", "Pipeline", "KMeans", "FileKind", ["a"]])
def test_a_class_that_is_not_registered_is_never_imported(name, saved, monkeypatch):
    monkeypatch.setattr("fiedler.persistence.import_module", lambda name: pytest.fail(f"{name} was imported"))

    with pytest.raises(FileFormatError, match=r"names a class .* not allowed in files|unhashable") as caught:
        fiedler.load(rewrite(saved, with_object(an_object(name, {"command": "true"}))))
    assert caught.value.code == "invalid_model"


@pytest.mark.parametrize(
    "change",
    [
        {"shape": [2**40]},
        {"shape": [2**62, 2**62]},
        {"shape": [-1]},
        {"data_offsets": [0, 2**60]},
        {"data_offsets": [8, 16]},
        {"dtype": "F4096"},
        {"dtype": "U8"},
    ],
    ids=str,
)
def test_headers_that_contradict_the_file_allocate_nothing(change, saved):
    path = rewrite(saved, change_header=lambda header: header["a0"].update(change))
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match="is not a model file, or it is damaged"):
            fiedler.load(path)
        assert tracemalloc.get_traced_memory()[1] < 10 * path.stat().st_size + 10**6
    finally:
        tracemalloc.stop()


def test_loading_allocates_about_the_size_of_the_file(tmp_path):
    path = tmp_path / "large.safetensors"
    fiedler.save(with_attribute(np.ones(10**6)), path)
    tracemalloc.start()
    try:
        fiedler.load(path)
        assert tracemalloc.get_traced_memory()[1] < 1.5 * path.stat().st_size
    finally:
        tracemalloc.stop()


def test_pairs_of_any_number_of_rows_allocate_nothing(tmp_path, rows):
    path = tmp_path / "pairs.safetensors"
    pairs = PairwiseConstraints([(0, 1)], [(0, 50)], n_samples=len(rows[0]))
    fiedler.save(with_attribute(pairs), path)
    rewrite(path, lambda content: part_of(content, "attributes", "some_", "parameters").update(n_samples=10**12))
    tracemalloc.start()
    try:
        assert fiedler.load(path).some_.n_samples == 10**12
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("depth", [900, 200_000])
def test_deeply_nested_json_is_an_error(depth, saved):
    text = json.dumps(parse(saved.read_bytes())[0] | {"sha256": "0" * 64, "object": None})
    nested = text.replace('"object": null', '"object": ' + "[" * depth + "]" * depth)
    saved.write_bytes(build(nested, {}))

    with pytest.raises(FileFormatError, match=r"not a model file|not a valid model file"):
        fiedler.load(saved)


A0 = {"array": "a0"}
STEP, SCALER = an_object("KNNGraph"), an_object("StandardScaler")
COUNTER = {"vocabulary_": {"dict": [["star", 10**8]]}}
STATE = ["MT19937", {"array": "keys"}, 0, 0, 0.0]


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (5, "contains no estimator"),
        (None, "contains no estimator"),
        ({}, "unknown kind"),
        ({"surprise": 1}, "unknown kind 'surprise'"),
        ({**A0, "dtype": "int8"}, "unknown kind 'array, dtype'"),
        ({"array": "a12345"}, "a12345"),
        ({"array": 0}, "int"),
        ({"array": ["a0"]}, "unhashable"),
        ({"array": "empty"}, r"is empty, but has the shape \(0, 2097152\)"),
        ({"array": "not_bool"}, "neither true nor false"),
        ({"array": "complex"}, "unknown type complex64"),
        ({"unicode": "a0"}, "lacks or does not know"),
        ({"unicode": "keys"}, "does not consist of strings"),
        ({"strings": {"items": ["a"], "shape": [2]}}, "cannot reshape"),
        ({"strings": {"items": [1], "shape": [1]}}, "contains other values"),
        ({"strings": {"items": [], "shape": [-1, 0]}}, "not integers from 0"),
        ({"strings": {"items": []}}, "lacks or does not know 'shape'"),
        ({"sparse": {"shape": [2, 2], "parts": [A0, A0, A0]}}, "sparse matrix"),
        ({"sparse": {"shape": [2, 2], "parts": []}}, "not enough values"),
        ({"pipeline": []}, "one before the last is not a transformer"),
        ({"pipeline": [["a", SCALER], ["a", SCALER]]}, "two steps of a pipeline have one name"),
        ({"pipeline": [["a", 5]]}, "are not estimators with a name each"),
        ({"pipeline": [["a", STEP], ["b", SCALER]]}, "is not a transformer"),
        ({"dict": [["a", 1, 2]]}, "length 3; 2 is required"),
        ({"set": [[]]}, "unhashable"),
        ({"random_state": {"tuple": ["MT19937"]}}, "not enough values"),
        ({"random_state": {"tuple": [*STATE[:2], 625, *STATE[3:]]}}, "position is out of bounds"),
        ({"random_state": {"tuple": ["PCG64", *STATE[1:]]}}, "or of another generator"),
        ({"random_state": {"tuple": ["MT19937", A0, *STATE[2:]]}}, "or of another generator"),
        ({"dtype": "object"}, "lacks or does not know 'object'"),
        ({"object": {"class": "KNNGraph"}}, "lacks or does not know 'parameters'"),
        (an_object("KNNGraph", {"no_such_parameter": 1}), "unexpected keyword argument 'no_such_parameter'"),
        (an_object("StandardScaler", {"with_mean": "yes"}), "The 'with_mean' parameter"),
        (an_object("SpectralClustering", {"n_clusters": "three"}), "n_clusters"),
        (an_object("SpectralClustering", {"n_clusters": 3, "cut": "other"}), "cut='other'"),
        (an_object("CountVectorizer", {"input": "filename"}), "does not take texts"),
        (an_object("CountVectorizer", attributes=COUNTER), "terms are not numbered"),
        (an_object("KNNGraph", attributes={"build": None}), "would replace a method or property 'build'"),
        (an_object("KNNGraph", attributes={"a b": None}), "would replace a method or property 'a b'"),
        (an_object("Projection", {"mean": 1}), "missing 1 required positional argument"),
        ("\ud800", "not valid Unicode"),
    ],
)
def test_crafted_values_raise_an_error_with_a_reason(node, reason, saved):
    arrays = {
        "empty": np.zeros((0, 2**21)),
        "keys": np.full(624, 2**31, np.uint32),
        "not_bool": np.full(3, 2, np.uint8),
        "complex": np.zeros(3),
    }

    def with_types(header):
        header["not_bool"]["dtype"], header["complex"]["dtype"] = "BOOL", "C64"

    with pytest.raises(FileFormatError, match=f"is not a valid model file: .*{reason}") as caught:
        fiedler.load(rewrite(saved, with_object(node), with_types, **arrays))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["predict", "fit", "get_params", "__class__", "__dict__", "_repr_html_", "__new_"])
def test_attributes_never_replace_methods_or_properties(name, saved):
    with pytest.raises(FileFormatError, match=f"SpectralClustering would replace a method or property '{name}'"):
        fiedler.load(rewrite(saved, lambda content: part_of(content, "attributes").update({name: 5})))


def test_attributes_of_graphs_never_replace_methods_or_properties(saved):
    with pytest.raises(FileFormatError, match="AffinityGraph would replace a method or property 'degrees'"):
        fiedler.load(
            rewrite(saved, lambda content: part_of(content, "attributes", "graph_", "attributes").update(degrees=[1.0]))
        )


def test_parameters_added_later_take_their_defaults_and_others_are_required(saved):
    def without(content):
        del part_of(content, "parameters")["cut"]

    def without_weights(content):
        del part_of(content, "attributes", "graph_", "parameters")["weights"]

    assert fiedler.load(rewrite(saved, without)).cut == SpectralClustering().cut
    with pytest.raises(FileFormatError, match="missing 1 required positional argument: 'weights'"):
        fiedler.load(rewrite(saved, without_weights))


def test_the_graph_of_a_model_is_a_graph(saved):
    content, arrays = parse(saved.read_bytes())
    weights = part_of(content, "attributes", "graph_", "parameters")["weights"]["sparse"]["parts"]
    (data, indices, _) = names = [part["array"] for part in weights]
    values, columns = arrays[data], arrays[indices]
    W = sp.csr_array(tuple(arrays[name] for name in names))
    directed, looped = sp.triu(W, format="csr"), (W + 0.5 * sp.eye_array(W.shape[0])).tocsr()
    changes = [
        ({data: values * np.linspace(1, 2, len(values))}, "not symmetric"),
        ({data: -values}, "negative"),
        ({data: values * np.nan}, "not finite"),
        ({data: values * 1e305}, "not finite, or their sums could overflow"),
        ({data: values.astype(int)}, "sparse matrix of floats"),
        ({data: values[:-1]}, "wrong type or length"),
        ({data: values[:, None]}, "one axis"),
        ({indices: columns[::-1].copy()}, "not sorted"),
        ({indices: columns.astype(np.int64)}, "wrong type or length"),
        ({indices: columns + 10**6}, "out of bounds"),
        (dict(zip(names, (directed.data, directed.indices, directed.indptr))), "not symmetric"),
        (dict(zip(names, (looped.data, looped.indices, looped.indptr))), "to itself"),
    ]
    for change, reason in changes:
        saved.write_bytes(build(content, arrays | change))
        with pytest.raises(FileFormatError, match=reason):
            fiedler.load(saved)


def test_sets_of_words_are_loaded(tmp_path):
    counter = CountVectorizer(vocabulary={"star", "planet"})

    assert save_and_load(counter, tmp_path).vocabulary == {"star", "planet"}
