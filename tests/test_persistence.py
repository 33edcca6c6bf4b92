"""Model files: what is loaded equals what was saved, and nothing in a file is executed."""

import json
import pickle
from pathlib import Path

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
from fiedler._model_schema import ATTRIBUTES, format_attributes
from fiedler._registry import storable_classes
from fiedler.core.arrays import to_numpy
from fiedler.errors import FileFormatError
from fiedler.graph import LandmarkGraph, RadiusGraph
from fiedler.persistence import FORMAT_VERSION, JSON_MEMBER, MODEL_FORMAT, SizeLimit, read_notes
from fiedler.text import DocumentVectorizer
from fiedler_papers.baselines import TransductiveSVM
from registry_instances import check_instances

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
    with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist"):
        fiedler.save(EmbedKMeans(3), tmp_path / "nowhere" / "no.npz")
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
    X = sp.random_array((60, 20), density=0.3, random_state=0, format="csr")
    model = SpectralClustering(2, graph=AffinityGraph.from_matrix(X @ X.T), random_state=0).fit(X)

    assert_array_equal(save_and_load(model, tmp_path).labels_, model.labels_)


def test_the_documentation_lists_all_attributes():
    """Print `format_attributes()` to the end of docs/file_formats.md after a change of the table."""
    page = Path(__file__).parents[1] / "docs" / "file_formats.md"

    assert page.read_text(encoding="utf-8").endswith(format_attributes())


def test_every_storable_class_has_a_table_of_attributes():
    recipes = {"FullGraph", "KNNGraph", "LabelGraph", "LandmarkGraph", "RadiusGraph"}  # which have parameters only

    assert set(storable_classes()) - recipes == set(ATTRIBUTES)


# ------------------------------------------------------------------------------------- the state of a model is checked


def arrays_of(path):
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def node_at(content, attribute):
    """The container and the key of an attribute, such as ``graph_._signed``."""
    *parents, key = attribute.split(".")
    state = content["model"]["state"]
    for parent in parents:
        state = state[parent]["state"]
    return state, key


def with_array(path, attribute, change):
    """The file with the array of an attribute changed by a function."""
    arrays = arrays_of(path)
    state, key = node_at(text_of(arrays), attribute)
    return rewrite(path, **{state[key]["array"]: change})


def with_value(path, attribute, value):
    """The file with another node of an attribute, or without that attribute."""

    def change(content):
        state, key = node_at(content, attribute)
        del state[key]
        return content if value is ... else (state.update({key: value}), content)[1]

    return rewrite(path, **{JSON_MEMBER: change})


@pytest.mark.parametrize(
    ("attribute", "change"),
    [
        ("labels_", lambda labels: labels + 1),  # the last number is 3, but there are 3 clusters
        ("labels_", lambda labels: labels - 1),
        ("labels_", lambda labels: labels[:-1]),
        ("labels_", lambda labels: labels.astype(float)),
        ("labels_", lambda labels: labels[:, None]),
        ("cluster_centers_", lambda centers: centers[:, :-1]),
        ("cluster_centers_", lambda centers: np.where(centers == centers.max(), np.nan, centers)),
        ("cluster_centers_", lambda centers: np.where(centers == centers.max(), np.inf, centers)),
        ("cluster_centers_", lambda centers: centers.astype(np.float16)),
        ("eigenvalues_", lambda values: np.append(values, 1.0)),
        ("_fit_X", lambda X: X[:-1]),
        ("_fit_X", lambda X: X[:, :-1]),
        ("_fit_X", lambda X: X.astype(int)),
        ("_fit_X", lambda X: np.where(X.max() == X, np.nan, X)),
    ],
)
def test_arrays_that_contradict_each_other_are_refused(attribute, change, saved):
    with pytest.raises(FileFormatError, match="is not as it must be"):
        fiedler.load(with_array(saved, attribute, change))


@pytest.mark.parametrize(
    ("attribute", "value", "reason"),
    [
        ("n_clusters", "three", r"SpectralClustering\.n_clusters has the wrong type"),
        ("n_clusters", 2.5, "n_clusters has the wrong type"),
        ("n_clusters", True, "n_clusters has the wrong type"),
        ("cut", "other", r"cut has the wrong type or an unknown value"),
        ("graph", 5, "graph has the wrong type"),
        ("random_state", 0.5, "random_state has the wrong type"),
        ("eigen_tol", None, "eigen_tol has the wrong type"),
        ("_fit_cut", "other", "_fit_cut is not as it must be"),
        ("_fit_recipe", {"kind": "object", "class": "NLE", "state": {}}, "_fit_recipe is not as it must be"),
        ("converged_", 1, "converged_ is not as it must be"),
        ("n_features_in_", -4, "n_features_in_ is not as it must be"),
        ("n_features_in_", 2**70, "n_features_in_ is not as it must be"),
        ("graph_._signed", None, "_signed is not as it must be"),
        ("graph_._recall", "all", "_recall is not as it must be"),
        ("graph_._constants", 5, "_constants is not as it must be"),
        ("cluster_centers_", ..., "lacks cluster_centers_"),
        ("no_such_attribute_", ..., "no_such_attribute_"),
    ],
)
def test_values_that_a_model_cannot_have_are_refused(attribute, value, reason, saved):
    if attribute.startswith("no_such"):
        path = rewrite(saved, **{JSON_MEMBER: with_state(**{attribute: 1})})
    else:
        path = with_value(saved, attribute, value)

    with pytest.raises(FileFormatError, match=reason):
        fiedler.load(path)


def change_graph(change):
    def changed(content):
        change(content["model"]["state"]["graph_"]["state"])
        return content

    return changed


def test_the_graph_of_a_model_is_a_graph(saved):
    arrays = arrays_of(saved)
    weights = text_of(arrays)["model"]["state"]["graph_"]["state"]["_weights"]
    data, indices = weights["data"]["array"], weights["indices"]["array"]
    for changes, reason in [
        ({data: lambda values: values * np.linspace(1, 2, len(values))}, "not symmetric"),
        ({data: lambda values: -values}, "negative"),
        ({data: lambda values: values * np.nan}, "not finite"),
        ({data: lambda values: values.astype(int)}, "sparse matrix of floats"),
        ({data: lambda values: values[:-1]}, "wrong type or length"),
        ({data: lambda values: values[:, None]}, "one axis"),
        ({indices: lambda values: values[::-1]}, "not sorted"),
        ({indices: lambda values: values.astype(np.int64)}, "wrong type or length"),
    ]:
        np.savez(saved, **arrays)
        with pytest.raises(FileFormatError, match=reason):
            fiedler.load(rewrite(saved, **changes))


def test_arrays_that_no_attribute_uses_are_refused(saved):
    arrays = arrays_of(saved)
    extra = f"a{len(arrays) - 1}"
    for changed in ({**arrays, extra: np.ones(1)}, dict(reversed(arrays.items()))):
        np.savez(saved, **changed)
        with pytest.raises(FileFormatError, match="arrays that are not part of the model, or in another order"):
            fiedler.load(saved)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: text.replace(b'"notes"', b'"model": 1, "notes"'), "not written by"),  # one name twice
        (lambda text: text.replace(b'"notes"', b'"other": 1, "notes"'), "missing or unknown parts"),
        (lambda text: text.replace(b'"notes": {}, ', b""), "not written by"),
        (lambda text: text.decode().encode("utf-16"), "not written by"),
        (lambda text: text.replace(b'"written_by": "', b'"written_by": "\xc3\xa9'), "not written by"),
        (lambda text: text.replace(b'"notes": {}', b'"notes": {"a": "\\ud800"}'), "notes are not"),
        (lambda text: text.replace(b'"cut": "ncut"', b'"cut": "\\ud800"'), "not valid Unicode"),
    ],
)
def test_the_json_text_is_strict(change, reason, saved):
    text = arrays_of(saved)[JSON_MEMBER].tobytes()
    assert change(text) != text

    with pytest.raises(FileFormatError, match=reason):
        fiedler.load(_with_text(saved, change(text)))


def test_the_json_text_is_an_array_of_bytes(saved):
    arrays = arrays_of(saved)
    np.savez(saved, **arrays | {JSON_MEMBER: arrays[JSON_MEMBER].astype(np.int64)})

    with pytest.raises(FileFormatError, match="not written by"):
        fiedler.load(saved)


def test_a_file_without_an_estimator_is_refused(tmp_path):
    fiedler.save(KNNGraph(5), tmp_path / "recipe.npz")

    with pytest.raises(FileFormatError, match="it contains no estimator"):
        fiedler.load(rewrite(tmp_path / "recipe.npz", **{JSON_MEMBER: with_model(5)}))


def test_sets_are_loaded(tmp_path):
    counter = CountVectorizer(vocabulary={"star", "planet"})

    assert save_and_load(counter, tmp_path).vocabulary == {"star", "planet"}


def test_a_file_that_may_not_be_read_raises_the_error_of_the_system(saved, monkeypatch):
    def denied(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", denied)

    with pytest.raises(PermissionError):
        fiedler.load(saved)


A0 = {"kind": "array", "array": "a0"}
GRAPH_STEP = {"kind": "object", "class": "KNNGraph", "state": vars(KNNGraph())}
SCALER = {"kind": "object", "class": "StandardScaler", "state": {}}


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        ({"kind": "strings", "items": ["a"], "shape": [2]}, "1 strings has the shape"),
        ({"kind": "strings", "items": [1], "shape": [1]}, "1 strings has the shape"),
        ({"kind": "strings", "items": "a", "shape": [1]}, "must be a list, not str"),
        ({"kind": "strings", "items": [], "shape": [-1, 0]}, "not integers from 0"),
        ({**A0, "read_only": False}, "has no such part"),
        ({**A0, "more": 1}, "with other parts than array"),
        ({"kind": "array", "array": 0}, "must be a str, not int"),
        ({"kind": "scalar", "array": "a0"}, "a scalar has the shape"),
        ({"kind": "sparse", "shape": [2, 2], **dict.fromkeys(("data", "indices", "indptr"), A0)}, "sparse matrix"),
        ({"kind": "pipeline", "steps": []}, "are not estimators with a name each"),
        ({"kind": "pipeline", "steps": [["a", SCALER], ["a", SCALER]]}, "are not estimators with a name each"),
        ({"kind": "pipeline", "steps": [["a", 5]]}, "are not estimators with a name each"),
        ({"kind": "pipeline", "steps": [["a", GRAPH_STEP], ["b", SCALER]]}, "is not a transformer"),
        ({"kind": "dict", "items": [["a", 1], ["a", 2]]}, "a key of a dict occurs twice"),
        ({"kind": "dict", "items": [["a", 1, 2]]}, "too many values"),
        ({"kind": "set", "items": ["a", "a"]}, "an item of a set occurs twice"),
        ({"kind": "random_state", "state": {"kind": "tuple", "items": ["MT19937"]}}, "does not have five parts"),
        ({"kind": ["array"]}, "unknown kind"),
        ({"kind": "dtype", "name": "object"}, "unknown dtype"),
        ({"kind": "object", "class": ["KNNGraph"], "state": {}}, "the name of a class must be a str"),
        ({"kind": "object", "class": "KNNGraph", "state": []}, "the state of an object must be a dict"),
    ],
)
def test_nodes_have_exactly_the_parts_of_their_kind(node, reason, saved):
    with pytest.raises(FileFormatError, match=reason):
        fiedler.load(rewrite(saved, **{JSON_MEMBER: with_model(node)}))


def test_random_states_of_other_generators_are_refused(tmp_path):
    fiedler.save(EmbedKMeans(2, random_state=np.random.RandomState(0)), tmp_path / "seeded.npz")
    arrays = arrays_of(tmp_path / "seeded.npz")
    for changed in (arrays["a0"][:-1], arrays["a0"].astype(np.int64)):
        np.savez(tmp_path / "seeded.npz", **arrays | {"a0": changed})
        with pytest.raises(FileFormatError, match="or of another generator"):
            fiedler.load(tmp_path / "seeded.npz")


def test_steps_of_a_pipeline_fit_together(rows, tmp_path):
    path = tmp_path / "pipeline.npz"
    fiedler.save(make_pipeline(StandardScaler(), EmbedKMeans(3, random_state=0)).fit(rows[0]), path)

    def narrower(content):
        state = content["model"]["steps"][0][1]["state"]
        content["model"]["steps"][0][1]["state"] = {
            name: value for name, value in state.items() if name in StandardScaler().get_params()
        } | {"n_features_in_": 3, **dict.fromkeys(("mean_", "var_", "scale_"), None)}
        return content

    changed = narrower(text_of(arrays_of(path)))
    assert changed["model"]["steps"][0][1]["state"]["n_features_in_"] == 3
    with pytest.raises(FileFormatError, match="a step of a pipeline returns 3 columns, but the next one takes 4"):
        fiedler.load(rewrite(path, **{JSON_MEMBER: narrower}))


def test_a_model_that_could_not_be_loaded_is_not_saved(rows, tmp_path):
    model = SpectralClustering(3, random_state=0).fit(rows[0])
    model.labels_ = model.labels_ + 1

    with pytest.raises(TypeError, match=r"the model cannot be saved: its SpectralClustering\.labels_ is not"):
        fiedler.save(model, tmp_path / "no.npz")
    with pytest.raises(TypeError, match=r"random_state is a ndarray, which a model file cannot contain"):
        fiedler.save(EmbedKMeans(2, random_state=np.array(["2020-01-01"], dtype="M8[D]")), tmp_path / "no.npz")
    with pytest.raises(TypeError, match=r"metric is a str, which a model file cannot contain"):
        fiedler.save(EmbedKMeans(2, metric="\ud800"), tmp_path / "no.npz")
    assert list(tmp_path.iterdir()) == []
