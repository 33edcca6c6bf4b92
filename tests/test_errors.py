"""Mistakes of users raise errors of fiedler, each with a code, the parameter that was set, and what to do about it."""

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import fiedler
from fiedler import (
    LLGC,
    AffinityGraph,
    GaussianMixture,
    KNNGraph,
    LapGMM,
    LaplacianEigenmaps,
    ManifoldClustering,
    RadiusGraph,
    SpectralClustering,
)
from fiedler.core.eigen import smallest_eigenpairs
from fiedler.datasets import blobs, circles, swiss_roll, two_moons
from fiedler.embedding import LPI, NLE
from fiedler.errors import DataNotFoundError, FiedlerError, FiedlerWarning, FileFormatError, InputError
from fiedler.graph import LabelGraph, LandmarkGraph, communities
from fiedler.graph import cuts as repulsion
from fiedler.graph.operators import laplacian
from fiedler.graph.smoothing import heat_flow, resolvent
from fiedler.io import read_documents, read_input
from fiedler.report import read_summary
from fiedler.supervision import ConstrainedKFold, LearnedLaplacian, PairwiseConstraints, suggest_pairs
from fiedler.table import TableEncoder
from fiedler.text import DocumentVectorizer
from fiedler_papers.baselines import GNMF, LMNN, MMC, MPCKMeans, NMFClustering, TransductiveSVM

RNG = np.random.RandomState(0)
X = np.concatenate([RNG.normal(size=(15, 3)), RNG.normal(size=(15, 3)) + 8])
POSITIVE = np.abs(X)
Y = np.repeat([0, 1], 15)
EDGE = AffinityGraph.from_matrix([[0, 1], [1, 0]])
GRAPH = KNNGraph(5, connect="mst").build(X)
RAGGED = [[0, 1], [1]]
PAIRS = PairwiseConstraints([(0, 1)], [(0, 20)], n_samples=30)


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# What is called, the code of the error, and its parameter (None: it has none).
SEEDED = {
    "two_moons": lambda seed: two_moons(20, random_state=seed),
    "circles": lambda seed: circles(20, random_state=seed),
    "swiss_roll": lambda seed: swiss_roll(20, random_state=seed),
    "blobs": lambda seed: blobs(20, random_state=seed),
    "SpectralClustering": lambda seed: SpectralClustering(2, GRAPH, random_state=seed).fit(X),
    "ManifoldClustering": lambda seed: ManifoldClustering(2, random_state=seed).fit(X),
    "GaussianMixture": lambda seed: GaussianMixture(2, random_state=seed).fit(X),
    "LaplacianEigenmaps": lambda seed: LaplacianEigenmaps(1, GRAPH, random_state=seed).fit(X),
    "LPI": lambda seed: LPI(1, GRAPH, random_state=seed).fit(X),
    "NLE": lambda seed: NLE(2, GRAPH, random_state=seed).fit(X),
    "NMFClustering": lambda seed: NMFClustering(2, random_state=seed).fit(POSITIVE),
    "GNMF": lambda seed: GNMF(2, random_state=seed).fit(POSITIVE),
    "MPCKMeans": lambda seed: MPCKMeans(2, random_state=seed).fit(X),
    "LandmarkGraph": lambda seed: LandmarkGraph(5, random_state=seed).build(X),
    "LearnedLaplacian": lambda seed: LearnedLaplacian(random_state=seed).fit(X, constraints=PAIRS),
    "communities": lambda seed: communities(GRAPH, 2, random_state=seed),
    "smallest_eigenpairs": lambda seed: smallest_eigenpairs(GRAPH, 2, random_state=seed),
    "PairwiseConstraints": lambda seed: PairwiseConstraints.from_labels(Y, random_state=seed),
    "ConstrainedKFold": lambda seed: ConstrainedKFold(PAIRS, 2, random_state=seed).split(X),
}


@pytest.mark.parametrize("seed", ["x", -1, 1.5], ids=repr)
@pytest.mark.parametrize("call", SEEDED.values(), ids=SEEDED)
def test_seeds_are_validated(call, seed):
    with pytest.raises(InputError, match="random_state must be an integer from 0 to") as caught:
        call(seed)
    assert (caught.value.code, caught.value.fields) == (
        "invalid_parameter", {"parameter": "random_state", "value": seed},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("k", "n_clusters"), ("n_cluster", "n_clusters"), ("seed", "random_state"), ("sample_weights", "sample_weight")],
)
def test_a_mistyped_keyword_is_answered_by_the_parameter(wrong, meant):
    with pytest.raises(TypeError, match=rf"argument '{wrong}' \(did you mean '{meant}'\?\)") as caught:
        fiedler.cluster(X, **{wrong: 3})
    assert isinstance(caught.value, FiedlerError)
    with pytest.raises(TypeError, match=r"argument 'colour'$"):
        fiedler.cluster(X, colour=3)
    assert "n_clusters" in inspect.signature(fiedler.cluster).parameters


@pytest.mark.parametrize(
    ("rows", "call"),
    [
        (["a text", "another one"], "fiedler.text.DocumentVectorizer().fit_transform(texts)"),
        (pd.Series(["a text", "another one"]), "fiedler.text.DocumentVectorizer().fit_transform(texts)"),
        ([["a", "x"], ["b", "y"]], "a data frame through fiedler.table.TableEncoder"),
        (np.zeros((5, 8, 8)), "X.reshape(len(X), -1)"),
    ],
)
def test_texts_and_images_are_told_what_to_call(rows, call):
    with pytest.raises(InputError) as caught:
        fiedler.cluster(rows)
    assert call in caught.value.hint


def test_warnings_point_to_the_line_of_the_user():
    """Not into scikit-learn, which wraps transform and calls the steps of pipelines."""
    table = pd.DataFrame({"a": [1, 2, 3.5, 4], "b": list("xyxy")})
    encoder = TableEncoder().fit(table)
    pipeline = make_pipeline(encoder, ManifoldClustering(2, random_state=0)).fit(table)
    for call in (encoder.transform, pipeline.predict):
        with pytest.warns(FiedlerWarning, match="no column 'b'") as caught:
            call(table[["a"]])
        assert {warning.filename for warning in caught} == {__file__}


MISTAKES = [
    # values that scikit-learn or NumPy would reject
    (lambda: KNNGraph(3, metric="foo").build(X), "unknown_option", "metric"),
    (lambda: KNNGraph(3, metric=3).build(X), "unknown_option", "metric"),
    (lambda: RadiusGraph(1, metric="euclidian").build(X), "unknown_option", "metric"),
    (lambda: KNNGraph(3, n_jobs="x").build(X), "invalid_parameter", "n_jobs"),
    (lambda: RadiusGraph(1, n_jobs=0).build(X), "invalid_parameter", "n_jobs"),
    (lambda: ManifoldClustering(2, GRAPH, n_jobs="x").fit(X), "invalid_parameter", "n_jobs"),
    (lambda: fiedler.choose_n_clusters(X, n_jobs="x"), "invalid_parameter", "n_jobs"),
    (lambda: GaussianMixture(2).fit(X, sample_weight=np.ones(7)), "invalid_sample_weight", "sample_weight"),
    (lambda: GaussianMixture(2).fit(X, sample_weight=-np.ones(30)), "invalid_sample_weight", "sample_weight"),
    (lambda: GaussianMixture(2).fit(X, sample_weight=RAGGED), "invalid_sample_weight", "sample_weight"),
    (lambda: AffinityGraph.from_matrix(RAGGED), "invalid_affinity", None),
    (lambda: NLE(2, GRAPH, init=RAGGED).fit(X), "invalid_init", "init"),
    (lambda: AffinityGraph(np.eye(3)), "not_a_graph", "weights"),
    (lambda: laplacian(np.eye(3)), "not_a_graph", "graph"),
    (lambda: LLGC(GRAPH).fit(X, np.linspace(0, 1, 30)), "labels_are_not_classes", "y"),
    (lambda: TransductiveSVM().fit(X, np.linspace(0, 1, 30)), "labels_are_not_classes", "y"),
    (lambda: heat_flow(np.eye(2), EDGE.laplacian(), time="x"), "invalid_parameter", "time"),
    (lambda: resolvent(np.eye(2), EDGE, gamma="x"), "invalid_parameter", "gamma"),
    (lambda: DocumentVectorizer(ngram_range=3).fit(["a text"]), "invalid_parameter", "ngram_range"),
    (lambda: DocumentVectorizer(ngram_range=("a", "b")).fit(["a text"]), "invalid_parameter", "ngram_range"),
    (lambda: circles(20, factor=3), "invalid_parameter", "factor"),
    (lambda: circles(20, factor="x"), "invalid_parameter", "factor"),
    (lambda: TransductiveSVM(kernel="x").fit(X, Y), "unknown_option", "kernel"),
    (lambda: TransductiveSVM(kernel="rbf", gamma="x").fit(X, Y), "invalid_parameter", "gamma"),
    (lambda: NMFClustering(2, init="x").fit(POSITIVE), "unknown_option", "init"),
    (lambda: NMFClustering(4, init="nndsvd").fit(POSITIVE), "incompatible_parameters", "init"),
    (lambda: NMFClustering(2, tol="x").fit(POSITIVE), "invalid_parameter", "tol"),
    (lambda: MMC(tol="x").fit(X, Y), "invalid_parameter", "tol"),
    (
        lambda: ConstrainedKFold(PairwiseConstraints([(0, 1)], n_samples=3), 3).split(X[:3]),
        "too_few_groups",
        "n_splits",
    ),
    # parameters are named as the user set them
    (lambda: KNNGraph(3, connect="x").build(X), "unknown_option", "connect"),
    (lambda: EDGE.connect([[0.0], [1.0]], how="x"), "unknown_option", "how"),
    (lambda: SpectralClustering(2, GRAPH, eigen_solver="x").fit(X), "unknown_option", "eigen_solver"),
    (lambda: SpectralClustering(2, GRAPH, eigen_tol=0).fit(X), "invalid_parameter", "eigen_tol"),
    (lambda: SpectralClustering(2, GRAPH, eigen_max_iter=0).fit(X), "invalid_parameter", "eigen_max_iter"),
    (lambda: LaplacianEigenmaps(1, GRAPH, eigen_solver="x").fit(X), "unknown_option", "eigen_solver"),
    (lambda: LaplacianEigenmaps(1, GRAPH, eigen_tol="x").fit(X), "invalid_parameter", "eigen_tol"),
    (lambda: LaplacianEigenmaps(1, GRAPH, eigen_max_iter=0.5).fit(X), "invalid_parameter", "eigen_max_iter"),
    (lambda: smallest_eigenpairs(GRAPH, 2, tol=0), "invalid_parameter", "tol"),
    # one problem, one code
    (lambda: EDGE.save("graph.txt"), "wrong_ending", "path"),
    (lambda: fiedler.save(KNNGraph(), "model.txt"), "wrong_ending", "path"),
    (lambda: LLGC(GRAPH).fit(X, None), "labels_required", "y"),
    (lambda: LabelGraph().build(X, None), "labels_required", "y"),
    (lambda: LMNN().fit(X, None), "labels_required", "y"),
    (lambda: LLGC(GRAPH).fit(X, np.full(30, -1)), "too_few_labels", "y"),
    (lambda: TransductiveSVM().fit(X, np.full(30, -1)), "too_few_labels", "y"),
    (lambda: LaplacianEigenmaps(30, GRAPH).fit(X), "too_many_components", "n_components"),
    (lambda: LPI(4, GRAPH).fit(X), "too_many_components", None),
    (lambda: SpectralClustering(2, graph=3).fit(X), "not_a_graph", "graph"),
    (lambda: LearnedLaplacian(graph=3).fit(X, constraints=PAIRS), "not_a_graph", "graph"),
    (lambda: LapGMM(2, GRAPH, init=np.full(30, 7)).fit(X), "invalid_init", "init"),
    (lambda: NLE(2, GRAPH, init=np.full(30, 7)).fit(X), "invalid_init", "init"),
    (lambda: NLE(2, GRAPH, init=-np.ones((30, 2))).fit(X), "invalid_init", "init"),
    (lambda: communities(GRAPH, 2, starts=[np.full(30, 7)]), "invalid_init", "starts"),
    # one code, one problem
    (lambda: suggest_pairs(LaplacianEigenmaps(2, GRAPH).fit(X), 3), "model_without_labels", None),
    (lambda: fiedler.LPIClustering(2).fit(np.eye(9)[[0, 0, 0, 0]] * [[1], [0], [0], [0]]), "too_few_documents", None),
]


@pytest.mark.parametrize(("call", "code", "parameter"), MISTAKES)
def test_mistakes_have_a_code_and_a_parameter(call, code, parameter):
    with pytest.raises(FiedlerError) as caught:
        call()
    error = caught.value
    assert (error.code, error.fields.get("parameter")) == (code, parameter)
    assert error.hint or " must " in error.problem or "nothing to cluster" in error.problem
    if code in ("unknown_option", "invalid_parameter"):
        assert error.problem.startswith(parameter)


def test_a_model_without_labels_cannot_be_drawn():
    plots = pytest.importorskip("fiedler.plots", reason="drawing needs the extra 'plots'", exc_type=ImportError)
    with pytest.raises(InputError, match="has no labels to draw") as caught:
        plots.ClustersDisplay.from_estimator(LaplacianEigenmaps(2, GRAPH).fit(X), X)
    assert caught.value.code == "model_without_labels"


def test_cannot_links_of_too_many_rows(monkeypatch):
    monkeypatch.setattr(repulsion, "MAX_CANNOT_LINK_ROWS", 1)
    with pytest.raises(InputError, match="use cannot-links of at most 1 rows") as caught:
        SpectralClustering(2, GRAPH).fit(X, constraints=PAIRS)
    assert caught.value.code == "too_many_rows"


def write(name, content):
    with open(name, "wb") as file:
        file.write(content)
    return name


FILES = [
    (lambda: fiedler.load("nothing.safetensors"), DataNotFoundError, "file_not_found"),
    (lambda: AffinityGraph.load("nothing.safetensors"), DataNotFoundError, "file_not_found"),
    (lambda: read_summary("nothing.json"), DataNotFoundError, "file_not_found"),
    (lambda: read_documents("nothing.txt"), DataNotFoundError, "file_not_found"),
    (lambda: fiedler.load("."), FileFormatError, "not_a_model_file"),
    (lambda: AffinityGraph.load("."), FileFormatError, "invalid_graph_file"),
    (lambda: read_summary("."), FileFormatError, "invalid_summary"),
    (lambda: PairwiseConstraints.from_csv("nothing.csv", 5), DataNotFoundError, "pairs_file_unreadable"),
    (lambda: PairwiseConstraints.from_csv(".", 5), FileFormatError, "pairs_file_unreadable"),
    (lambda: read_input(write("a.xyz", b"1")), FileFormatError, "unsupported_file_type"),
    (lambda: read_documents(write("a.xyz", b"1")), InputError, "unsupported_file_type"),
    (lambda: read_input(write("a.csv", b"a\n1\n2\n"), labels="b"), InputError, "no_such_column"),
    (lambda: read_documents(write("a.csv", b"a,b\nx,y\n"), column="c"), InputError, "no_such_column"),
    (lambda: read_input(write("a.csv", b"a,b\n1,\n2,\n"), labels="b"), InputError, "no_labels"),
]


@pytest.mark.parametrize(("call", "error", "code"), FILES)
def test_mistakes_in_files_have_a_class_and_a_code(call, error, code):
    with pytest.raises(error) as caught:
        call()
    assert caught.value.code == code
    assert caught.value.fields["file"]


@pytest.mark.parametrize(
    ("call", "valid"),
    [
        (lambda: ManifoldClustering(2, "knn").fit(X), ["'auto' or 'precomputed'", "a recipe such as KNNGraph()"]),
        (lambda: SpectralClustering(2, "knn").fit(X), ["'precomputed'", "a recipe such as KNNGraph()"]),
        (lambda: ManifoldClustering("many").fit(X), ["an integer of at least 1 or 'auto'"]),
        (lambda: KNNGraph(3, method="x").build(X), ["'auto'", "'exact'", "'faiss'"]),
        (lambda: SpectralClustering(2, GRAPH, eigen_solver="x").fit(X), ["'auto'", "'chebyshev'"]),
        (lambda: GaussianMixture(2, init="x").fit(X), ["'auto'", "'kmeans'", "pass labels or memberships"]),
        (lambda: AffinityGraph(np.eye(3)), ["use AffinityGraph.from_matrix"]),
        (lambda: laplacian(np.eye(3)), ["use AffinityGraph.from_matrix"]),
    ],
)
def test_all_valid_values_are_listed(call, valid):
    with pytest.raises(FiedlerError) as caught:
        call()
    for words in valid:
        assert words in str(caught.value)


def test_an_error_shows_its_code_and_fields():
    error = InputError("n_clusters=12 exceeds the 10 rows", "choose at most 10", code="too_large", value=12)

    assert (
        repr(error) == "InputError('n_clusters=12 exceeds the 10 rows; choose at most 10', code='too_large', value=12)"
    )
