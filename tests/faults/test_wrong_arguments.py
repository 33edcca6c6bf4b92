"""Objects of the wrong kind in place of rows, labels, weights and parameters: an error of the library, or a result."""

import functools
import inspect
import os
import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

import fiedler
from fiedler import _registry
from fiedler._validation import check_n_jobs
from fiedler.errors import FiedlerError, FiedlerWarning, InputError, InputTypeError, shown

HUGE = 10**400  # larger than any float
LONGEST_MESSAGE = 500  # characters


class WithoutRepr:
    def __repr__(self):
        raise RuntimeError


ROWS = np.r_[np.random.RandomState(0).uniform(size=(20, 2)), 3 + np.random.RandomState(1).uniform(size=(20, 2))]
SOME_LABELS = np.r_[0, 0, np.full(18, -1), 1, 1, np.full(18, -1)]


def sparse_cube():
    """A sparse array of three dimensions, or a dense one where SciPy has no such."""
    cube = np.ones((2, 2, 2))
    try:
        return sp.coo_array(cube)
    except ValueError:
        return cube


NOT_ROWS = {
    "NaN": lambda: np.where(np.arange(80).reshape(40, 2) == 7, np.nan, ROWS),
    "infinity in a sparse matrix": lambda: sp.csr_array(np.where(np.arange(80).reshape(40, 2) == 7, np.inf, ROWS)),
    "no rows": lambda: ROWS[:0],
    "no columns": lambda: ROWS[:, :0],
    "one dimension": lambda: ROWS[0],
    "three dimensions": lambda: np.ones((2, 2, 2)),
    "words": lambda: np.array([["a", "b"]] * 5),
    "objects": lambda: np.array([[1, "b"]] * 5, dtype=object),
    "complex": lambda: ROWS * 1j,
    "complex, sparse": lambda: sp.csr_array(ROWS * 1j),
    "complex in a list": lambda: [[1j, 2], [3, 4]],
    "fields": lambda: np.zeros(4, dtype=[("a", float)]),
    "extended precision": lambda: np.full((3, 2), np.longdouble("1e300") ** 2),
    "ragged": lambda: [[1, 2], [3]],
    "huge integers": lambda: [[HUGE, 1], [1, 2]],
    "None": lambda: None,
    "None in a list": lambda: [[None, 1], [2, 3]],
    "text": lambda: "abc",
    "bytes": lambda: b"abc",
    "number": lambda: 3,
    "dictionary": lambda: {"a": 1},
    "dictionaries": lambda: [{"a": 1}],
    "object": object,
    "class": lambda: int,
    "generator": lambda: (i for i in range(3)),
    "masked": lambda: np.ma.masked_array(ROWS, mask=ROWS > 0.5),
    "three dimensions, sparse": sparse_cube,
}
NOT_PARAMETERS = {
    "complex": 1j,
    "huge": HUGE,
    "too long to be written": 10**5000,
    "NaN": float("nan"),
    "text": "abc",
    "bytes": b"x",
    "array": np.ones(3),
    "matrix": np.ones((40, 2)),
    "dictionary": {"a": 1},
    "without repr": WithoutRepr(),
}
METHODS = ("predict", "predict_proba", "transform", "score_samples", "decision_function", "update")
ESTIMATORS = {
    **{
        name: getattr(fiedler, name)
        for name in _registry.public_names()
        if hasattr(getattr(fiedler, name), "get_params")
    },
    **{name: getattr(fiedler.baselines, name) for name in fiedler.baselines.__all__ if name[0].isupper()},
}


def make(name, **parameters):
    known = inspect.signature(ESTIMATORS[name]).parameters
    defaults = {key: value for key, value in {"n_clusters": 2, "random_state": 0}.items() if key in known}
    return ESTIMATORS[name](**{**defaults, **parameters})


def fit(model, X):
    if not hasattr(model, "fit"):
        return model.build(X)
    takes_labels = "y" in inspect.signature(model.fit).parameters
    return model.fit(X, SOME_LABELS) if takes_labels else model.fit(X)


def check(call, *, may_succeed=True):
    """Call a function: it ends with one sentence of the library, or perhaps with a result, and without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FiedlerWarning)
        sentence = None
        try:
            call()
        except FiedlerError as error:
            sentence = str(error)
    assert sentence or (may_succeed and sentence is None)
    assert "\n" not in (sentence or "")
    assert len(sentence or "") <= LONGEST_MESSAGE


@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_wrong_rows(name):
    for wrong in NOT_ROWS.values():
        check(lambda wrong=wrong: fit(make(name), wrong()), may_succeed=False)


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if hasattr(ESTIMATORS[name], "fit")])
def test_wrong_labels(name):
    for wrong in ([0, 0, 1, 1, -1], np.r_[SOME_LABELS, 0], np.full(40, -1), np.full(40, 0.5), ["a"] * 39 + [-1]):
        check(lambda wrong=wrong: make(name).fit(ROWS, wrong))


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if hasattr(ESTIMATORS[name], "fit")])
def test_wrong_new_rows(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = fit(make(name), ROWS)
    for call in [getattr(model, method) for method in METHODS if hasattr(model, method)]:
        for wrong in NOT_ROWS.values():
            check(lambda wrong=wrong, call=call: call(wrong()), may_succeed=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ESTIMATORS))
def test_wrong_parameters(name):
    for parameter in make(name).get_params(deep=False):
        if parameter != "verbose":  # any value that is true or false
            for wrong in NOT_PARAMETERS.values():
                check(lambda p=parameter, wrong=wrong: fit(make(name, **{p: wrong}), ROWS))


@functools.cache
def fitted_model():
    return fiedler.ManifoldClustering(2, effort="fast", random_state=0).fit(ROWS)


FUNCTIONS = {
    "cluster": lambda wrong: fiedler.cluster(wrong, 2, random_state=0),
    "cluster, y": lambda wrong: fiedler.cluster(ROWS, 2, y=wrong, effort="fast", random_state=0),
    "cluster, sample_weight": lambda wrong: fiedler.cluster(ROWS, 2, sample_weight=wrong, random_state=0),
    "cluster, constraints": lambda wrong: fiedler.cluster(ROWS, 2, constraints=wrong, effort="fast", random_state=0),
    "LLGC, y": lambda wrong: fiedler.LLGC().fit(ROWS, wrong),
    "choose_n_clusters": lambda wrong: fiedler.choose_n_clusters(wrong),
    "AffinityGraph.from_matrix": fiedler.AffinityGraph.from_matrix,
    "graph='precomputed'": lambda wrong: fiedler.SpectralClustering(2, graph="precomputed").fit(wrong),
    "init": lambda wrong: fiedler.LapGMM(2, init=wrong).fit(ROWS),
    "smallest_eigenpairs": lambda wrong: fiedler.core.eigen.smallest_eigenpairs(wrong, 1),
    "PairwiseConstraints": lambda wrong: fiedler.PairwiseConstraints(wrong, [], 40),
    "PairwiseConstraints.from_labels": fiedler.PairwiseConstraints.from_labels,
    "clustering_accuracy": lambda wrong: fiedler.metrics.clustering_accuracy(wrong, wrong),
    "normalized_mutual_information": lambda wrong: fiedler.metrics.normalized_mutual_information(wrong, wrong),
    "explain": lambda wrong: fitted_model().explain(wrong),
    "KNNGraph.link": lambda wrong: fiedler.KNNGraph(3).link(ROWS, ROWS, wrong),
    "TableEncoder": lambda wrong: fiedler.table.TableEncoder().fit(wrong),
    "TableEncoder, drop": lambda wrong: fiedler.table.TableEncoder(drop=wrong).fit({"a": [1, 2], "b": [3, 4]}),
    "TableEncoder, weight": lambda wrong: fiedler.table.TableEncoder(weight=wrong).fit({"a": [1, 2], "b": [3, 4]}),
    "calibration_error": lambda wrong: fiedler.metrics.calibration_error([0, 1], wrong),
    "datasets.load": fiedler.datasets.load,
    "PairwiseConstraints.from_csv": lambda wrong: fiedler.PairwiseConstraints.from_csv(wrong, 40),
    "load": fiedler.load,
    "save": lambda wrong: fiedler.save(fiedler.KNNGraph(), wrong),
}


@pytest.mark.parametrize("function", list(FUNCTIONS))
def test_wrong_arguments_of_functions(function):
    for wrong in NOT_ROWS.values():
        check(lambda wrong=wrong: FUNCTIONS[function](wrong()))


@pytest.mark.parametrize(
    ("X", "kind", "code", "sentence"),
    [
        ([[0, 1], [np.nan, 2]], InputError, "not_finite", "X contains NaN in row 1, column 0; remove or fill"),
        ([[0, 1], [2, -np.inf]], InputError, "not_finite", "X contains infinity in row 1, column 1"),
        (sp.coo_array([[0, 1], [np.inf, 2]]), InputError, "not_finite", "X contains infinity in row 1, column 0"),
        ([[0, 1j], [2, 3]], InputError, "wrong_dtype", "Complex data not supported: X has dtype complex128; use real"),
        ([0, 1], InputError, "wrong_shape", "got shape (2,). Reshape your data: X.reshape(-1, 1) for a single"),
        ([[[0]]], InputError, "wrong_shape", "X must have two dimensions (samples, features); got shape (1, 1, 1)"),
        ([[0, HUGE]], InputError, "wrong_dtype", "X cannot be converted to an array of numbers (int too large"),
        ([[0, "b"]], InputError, "wrong_dtype", "X cannot be converted to an array of numbers (could not convert"),
        ([[0, {}]], InputTypeError, "wrong_dtype", "X cannot be converted to an array of numbers (float() argument"),
        (np.ma.masked_array([[0, 1], [2, 3]], [[0, 0], [0, 1]]), InputError, "masked_entries", "has masked entries"),
        (sparse_cube(), InputError, "wrong_shape", "got shape (2, 2, 2)"),
        ("x" * 5000, InputError, "wrong_dtype", "xxx...)"),
        ([[0, 1]], InputError, "too_few_rows", "a minimum of 2 is required; pass at least 2 rows and one column"),
    ],
)
def test_rows_that_cannot_be_used(X, kind, code, sentence):
    with pytest.raises(kind) as caught:
        fiedler.LapGMM(2).fit(X)

    assert caught.value.code == code
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (np.r_[np.full(39, -1.0), np.inf], "y contains NaN or infinity; remove those samples or give them a label"),
        (
            np.r_[np.full(39, -1.0), 1e300],
            "y must contain 40 labels, from 0 to 1, or -1 for unknown; got 1e+300",
        ),
        (np.zeros((40, 2)), "y must have one label per row; got shape (40, 2)"),
        ([[0], [0, 1]], "y must have one label per row; got [[0], [0, 1]]"),
    ],
)
def test_labels_that_cannot_be_used(y, sentence):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InputError) as caught:
            fiedler.LapGMM(2).fit(ROWS, y)

    assert sentence in str(caught.value)


def test_missing_values_of_pandas_own_types_have_a_place():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": pd.array([1, 2, None], dtype="Int64"), "b": [1.0, 2.0, 3.0]})

    with pytest.raises(InputError, match="X contains NaN in row 2, column 0; remove or fill"):
        fiedler.LapGMM(2).fit(frame)


@pytest.mark.parametrize("center", [False, np.False_])
def test_truth_values_of_numpy_are_truth_values(center):
    model = fiedler.Directions(center=center)

    assert model.__sklearn_tags__().input_tags.sparse
    assert sp.issparse(model.fit_transform(sp.csr_array(ROWS)))


def test_numbers_of_numpy_and_fractions_are_numbers():
    assert fiedler.LearnedLaplacian(penalty=np.float32("inf")).fit(ROWS, SOME_LABELS).graph_.n_nodes == 40
    numbers = {"lam": Fraction(1, 2), "tol": np.float32(1e-3), "random_state": np.uint32(3)}
    for share in (0.5, np.float32(0.5), Fraction(1, 2)):
        assert fiedler.LapGMM(np.int8(2), pca=share, **numbers).fit(ROWS).memberships_.shape == (40, 2)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"max_iter": 10**20}, "max_iter must be an integer from 1 to 2**63 - 1; got 100000000000000000000"),
        ({"n_clusters": 10**20}, "n_clusters must be an integer from 1 to 2**63 - 1; got"),
        ({"n_clusters": -(10**20)}, "n_clusters must be an integer of at least 1; got -1000"),
    ],
)
def test_integers_that_are_too_large(parameters, sentence):
    with pytest.raises(InputError) as caught:
        make("LapGMM", **parameters).fit(ROWS)

    assert sentence in str(caught.value)


@pytest.mark.parametrize("n_jobs", [10**6, -(10**6), 10**400])
def test_more_threads_than_processors_are_left_out(n_jobs):
    assert check_n_jobs(2) == 2
    assert abs(check_n_jobs(n_jobs)) == max(64, os.cpu_count())
    labels = fiedler.ManifoldClustering(2, effort="fast", n_jobs=n_jobs, random_state=0).fit(ROWS).labels_
    assert (labels == fitted_model().labels_).all()


def test_messages_show_values_on_one_line():
    assert shown(np.zeros((2, 2))) == "array([[0., 0.], [0., 0.]])"
    assert (len(shown("a" * 100)), shown("a" * 100)[-4:]) == (80, "a...")
    assert shown(WithoutRepr()) == "a value of type WithoutRepr"
    assert shown(10**5000) == "a value of type int"


def test_labels_of_any_kind_are_compared():
    """scikit-learn refuses bytes and warns of large floats."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fiedler.metrics.adjusted_rand_index([b"a", b"a", b"b"], [1e300, 1e300, 2.0]) == 1
        assert fiedler.metrics.normalized_mutual_information([b"a", b"b"], [0, 1]) == 1
