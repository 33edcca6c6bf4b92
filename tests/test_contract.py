"""The contract of every estimator in the registry: scikit-learn's checks and ours."""

import os
import pickle
import sys
from collections import Counter
from contextlib import contextmanager, suppress

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import pdist
from sklearn.base import clone, is_classifier, is_clusterer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import fiedler
from contract import INSTANCES, blobs, fit, result, rows_for, target_for
from fiedler import EmbedKMeans, LabelGraph, LandmarkGraph, LPIClustering, _registry, _validation
from fiedler._records import FitHistory
from fiedler.core.arrays import is_numpy, to_numpy
from fiedler.core.parallel import _OneThread
from fiedler.core.sparse import to_scipy
from fiedler.errors import InputError, InputTypeError
from fiedler.integrations.bertopic import ClusterModel
from fiedler.metrics import adjusted_rand_index
from fiedler.text import DocumentVectorizer
from registry_instances import check_recipes
from toys import BACKENDS

pytestmark = [  # toy data may give a disconnected graph, and noise may have fewer clusters than requested
    pytest.mark.filterwarnings("ignore::fiedler.errors.FiedlerWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

SAMPLE_WEIGHTS = "the initialisation and the graph use rows, so a row of weight two is not two rows to them"
ZERO_WEIGHTS = "a node of a graph, or a row of a baseline, cannot have weight zero, and is refused"
PREDICT_PROBA = "takes every estimator with predict_proba for a classifier"
UNKNOWN_CLASS = "-1 is not a class but marks rows whose class is unknown"
NEGATIVE_ROWS = "passes negative rows in spite of the tag"

EXPECTED_FAILURES = {
    **{
        name: {
            "check_sample_weight_equivalence_on_dense_data": reason,
            "check_sample_weight_equivalence_on_sparse_data": reason,
        }
        for names, reason in (
            (("GaussianMixture", "LapGMM", "LCGMM", "EmbedKMeans"), SAMPLE_WEIGHTS),
            (("ManifoldClustering", "SpectralClustering", "GenieLinkage", "LPIClustering", "NLE"), ZERO_WEIGHTS),
            (("NMFClustering", "GNMF", "MPCKMeans"), ZERO_WEIGHTS),
        )
        for name in names
    },
    "LLGC": {"check_classifiers_classes": UNKNOWN_CLASS},
    "TransductiveSVM": {"check_classifiers_classes": UNKNOWN_CLASS},
}
for name in ("ManifoldClustering", "LPIClustering", "NMFClustering"):
    sparse_checks = ("check_estimator_sparse_array", "check_estimator_sparse_matrix")
    EXPECTED_FAILURES.setdefault(name, {}).update(dict.fromkeys(sparse_checks, PREDICT_PROBA))
for name in ("NMFClustering", "GNMF"):
    EXPECTED_FAILURES[name]["check_clustering"] = NEGATIVE_ROWS


def expected_failures(estimator):
    failures = dict(EXPECTED_FAILURES.get(type(estimator).__name__, {}))
    if not hasattr(estimator, "predict_proba"):
        failures = {name: reason for name, reason in failures.items() if reason != PREDICT_PROBA}
    return failures


ONE_OF_EACH_CLASS = list({type(one): one for one in reversed(INSTANCES)}.values())  # the first instance of each


@parametrize_with_checks(ONE_OF_EACH_CLASS, expected_failed_checks=expected_failures)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(params=INSTANCES, ids=repr)
def model(request):
    estimator = clone(request.param)
    return estimator.set_params(random_state=0) if "random_state" in estimator.get_params() else estimator


@pytest.fixture
def X(model):
    return rows_for(model, blobs())


def assert_same_result(model, actual, expected, atol=1e-6):
    """Labels are compared as partitions, classes one by one, coordinates by their distances."""
    if is_clusterer(model):
        assert adjusted_rand_index(actual, expected) == 1
    elif is_classifier(model):
        assert_array_equal(actual, expected)
    else:  # coordinates are unique up to a rotation
        assert_allclose(pdist(actual), pdist(expected), atol=atol * max(1.0, np.abs(expected).max()))


def test_every_row_of_the_registry_that_can_be_fitted_is_checked():
    fitted = {row.name for row in _registry.ESTIMATORS.values() if hasattr(row.load(), "fit")}
    assert fitted - {"DocumentVectorizer"} == {type(one).__name__ for one in INSTANCES}  # that one takes texts


def test_a_clone_has_the_same_parameters(model):
    assert repr(clone(model)) == repr(model)


def test_same_seed_same_result(model, X):
    assert_array_equal(result(fit(clone(model), X), X), result(fit(clone(model), X), X))


def test_a_refit_forgets_the_first_fit(model, X):
    again = fit(fit(clone(model), X[::2]), X)

    assert_array_equal(result(again, X), result(fit(clone(model), X), X))


def test_float32_stays_float32(model, X):
    fitted = fit(clone(model), X.astype(np.float32))

    for name in ("memberships_", "embedding_", "cluster_centers_", "means_", "components_"):
        if hasattr(fitted, name):
            assert getattr(fitted, name).dtype == np.float32, name
    if hasattr(fitted, "transform"):
        assert fitted.transform(X.astype(np.float32)).dtype == np.float32
    assert_same_result(model, result(fitted, X.astype(np.float32)), result(fit(clone(model), X), X), atol=2e-2)


def test_read_only_rows_are_not_changed(model, X):
    frozen = X.copy()
    frozen.flags.writeable = False

    result(fit(clone(model), frozen), frozen)

    assert_array_equal(frozen, X)


def test_the_order_of_rows_does_not_matter(model, X):
    order = np.random.RandomState(3).permutation(len(X))
    y = target_for(model, len(X))
    permuted = fit(clone(model), X[order], None if y is None else y[order])

    assert_same_result(model, result(permuted, X[order]), result(fit(clone(model), X), X)[order], atol=1e-4)


NUMPY_ONLY = {"NMFClustering", "GNMF"}  # refuse other arrays, since scikit-learn's NMF and sparse updates need NumPy
RETURN_NUMPY = {"MMC", "LMNN", "MPCKMeans", "TransductiveSVM", "LLGC", "TableEncoder"}  # or names


def test_back_ends_agree(model, X, foreign):
    name = type(model).__name__
    if name in NUMPY_ONLY:
        with pytest.raises(InputError, match="convert the rows to NumPy"):
            fit(clone(model), foreign(X))
        return
    fitted = fit(clone(model), foreign(X))
    new = fitted.predict(foreign(X)) if hasattr(fitted, "predict") else fitted.transform(foreign(X))

    if foreign is BACKENDS["torch"]:  # a back end without sparse matrices has its graph, and so its labels, in NumPy
        assert is_numpy(new) == (name in RETURN_NUMPY)
    assert_same_result(model, to_numpy(new), result(fit(clone(model), X), X))


def test_sparse_rows_give_what_dense_rows_give(model, X):
    X = np.where(X > 0.5, X, 0)
    dense = fit(clone(model), X)
    if not get_tags(model).input_tags.sparse:
        with pytest.raises((ValueError, TypeError), match=r"(?i)sparse"):
            fit(clone(model), sp.csr_array(X), target_for(model, len(X)))
        return
    sparse = clone(model).fit(sp.csr_array(X), target_for(model, len(X)))

    assert_same_result(model, result(sparse, sp.csr_array(X)), result(dense, X), atol=1e-4)


def test_rows_are_validated_once_per_fit(model, X, monkeypatch):
    """By every estimator that takes part: a pipeline of two, such as k-means on an embedding, has two."""
    counts = Counter()

    def counted(check):
        def run(*args, **kwargs):
            estimator, values = args if check.__name__ == "validate_data" else (None, args[0])
            counts[type(estimator).__name__] += np.shape(values) == X.shape
            return check(*args, **kwargs)

        return run

    for name in ("check_array", "validate_data", "_check_foreign"):
        monkeypatch.setattr(_validation, name, counted(getattr(_validation, name)))
    fit(clone(model), X)

    embedding = getattr(model, "embedding", None)
    expected = {type(one).__name__: 1 for one in (model, embedding) if one is not None}
    expected.pop("TableEncoder", None)  # reads the cells of tables, which need not be numbers
    assert {name: count for name, count in counts.items() if count} == expected


def test_a_failed_fit_leaves_the_model_as_it_was(model, X):
    fitted = fit(clone(model), X)
    before, expected = dict(vars(fitted)), result(fitted, X)
    bad = X[:, :3].copy()
    bad[0, 0] = np.inf if get_tags(model).input_tags.allow_nan else np.nan
    with pytest.raises(ValueError, match=r"NaN|inf"):
        fit(fitted, bad)
    changes = {name: 10**6 for name in ("n_clusters", "n_components") if isinstance(getattr(model, name, None), int)}
    if changes:
        fitted.set_params(**changes)
        with pytest.raises(ValueError, match=r"\d+"):
            fit(fitted, X[:, :3])
        fitted.set_params(**{name: getattr(model, name) for name in changes})

    if "graph" in model.get_params() or "penalty" in model.get_params():  # fails after the rows were validated
        y = np.full(len(X) - 1, -1)
        with pytest.raises((ValueError, TypeError)):
            fitted.set_params(graph="nonsense").fit(X[:, :3], y)
        fitted.set_params(graph=model.graph)

    assert vars(fitted).keys() == before.keys()
    assert all(vars(fitted)[name] is value for name, value in before.items() if name.endswith("_") and name[0] != "_")
    assert_array_equal(result(fitted, X), expected)


@contextmanager
def interrupted_at(call):
    """Raise KeyboardInterrupt at a call of a function of the package, counted from 1; yield the number of calls.

    Not while the filters of warnings or the numbers of threads are restored, which an interrupt would leave changed.
    """
    package, count = os.path.dirname(fiedler.__file__), [0]
    restoring = {_OneThread.__exit__.__code__, _OneThread._leave_thread.__code__}

    def profile(frame, event, _):
        name, code = frame.f_code.co_filename, frame.f_code
        is_restoring = name.endswith("_foreign_warnings.py") or code in restoring
        if event == "call" and name.startswith(package) and not is_restoring:
            count[0] += 1
            if count[0] == call:
                sys.setprofile(None)
                raise KeyboardInterrupt

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        yield count
    finally:
        sys.setprofile(before)


def assert_interrupts_change_nothing(model, fit_one, fit_other):
    """Interrupt the second of two fits at six of its calls: all attributes are those of the first, or it has ended."""
    fit_other(clone(model))  # what is remembered takes no calls later
    complete = clone(model)
    with interrupted_at(None) as count:
        fit_other(complete)
    fitted, n_unchanged = fit_one(clone(model)), 0
    calls = np.unique(np.linspace(1, count[0], 7).astype(int)[:-1])
    for call in calls:
        before = dict(vars(fitted))
        with interrupted_at(call), suppress(KeyboardInterrupt):
            fit_other(fitted)
        if all(vars(fitted).get(name) is value for name, value in before.items()):
            assert vars(fitted).keys() == before.keys()
            n_unchanged += 1
        else:  # interrupted after the fit, for example while a warning was prepared
            assert_same_attributes(fitted, complete)
            fit_one(fitted)
    assert n_unchanged >= len(calls) // 2


def assert_same_attributes(one, other):
    assert vars(one).keys() == vars(other).keys()
    for name, value in vars(one).items():
        if isinstance(value, np.ndarray):
            assert_array_equal(value, getattr(other, name))


@pytest.mark.slow
def test_an_interrupted_fit_leaves_the_model_as_it_was(model, X):
    assert_interrupts_change_nothing(model, lambda one: fit(one, X), lambda one: fit(one, X[::2] * 2))


def test_interrupted_fits_of_texts_and_topics_leave_the_models_as_they_were(rng):
    texts, rows = ["a red apple", "green leaves", "a red leaf", "apples and leaves"], rng.normal(size=(30, 3))
    topics = ClusterModel(EmbedKMeans(2, random_state=0))

    assert_interrupts_change_nothing(DocumentVectorizer(), lambda one: one.fit(texts), lambda one: one.fit(texts[::2]))
    assert_interrupts_change_nothing(topics, lambda one: one.fit(rows), lambda one: one.fit(rows[::2]))


def test_parameters_set_after_a_fit_are_for_the_next_fit(model, X):
    fitted = fit(clone(model), X)
    expected = result(fitted, X)
    for name in ("cut", "metric", "solver", "assign", "covariance_type"):
        if name in fitted.get_params():
            fitted.set_params(**{name: "nonsense"})

    assert_array_equal(result(fitted, X), expected)


def test_pickles_and_model_files_give_the_same_result(model, X, tmp_path):
    fitted = fit(clone(model), X)
    assert_array_equal(result(pickle.loads(pickle.dumps(fitted)), X), result(fitted, X))
    if type(model).__name__ == "TransductiveSVM":  # contains machines of scikit-learn
        with pytest.raises(InputTypeError, match="SVC"):
            fiedler.save(fitted, tmp_path / "model.safetensors")
        return
    fiedler.save(fitted, tmp_path / "model.safetensors")

    assert_array_equal(result(fiedler.load(tmp_path / "model.safetensors"), X), result(fitted, X))


def test_data_frames_and_pipelines(model, X):
    frame = pd.DataFrame(X, columns=list("abcde"))
    y = target_for(model, len(X))
    pipeline = make_pipeline(FunctionTransformer(feature_names_out="one-to-one"), clone(model))
    pipeline.set_output(transform="pandas") if hasattr(model, "transform") else None
    pipeline.fit(frame, y)

    assert list(pipeline[-1].feature_names_in_) == list("abcde")
    if hasattr(model, "transform"):
        out = pipeline.transform(frame)
        assert list(out.columns) == list(pipeline[-1].get_feature_names_out())


def test_clusterers_with_memberships_return_them_as_data_frames(model, X):
    """After ``set_output``, with the index of the rows; LPIClustering transforms to coordinates instead."""
    if not is_clusterer(model) or not hasattr(model, "predict_proba") or isinstance(model, LPIClustering):
        return
    frame = pd.DataFrame(X, columns=list("abcde"), index=[f"r{i}" for i in range(len(X))])
    one = clone(model).set_output(transform="pandas")

    fitted, again = one.fit_transform(frame), one.transform(frame[::-1])

    assert list(fitted.columns) == [f"{type(model).__name__.lower()}{k}" for k in range(3)]
    assert list(fitted.index) == list(frame.index)
    assert list(again.index) == list(frame.index)[::-1]
    assert_allclose(again.to_numpy(), to_numpy(one.predict_proba(frame[::-1])))
    assert_allclose(fitted.to_numpy(), again[::-1].to_numpy(), atol=1e-6)
    assert isinstance(one.set_output(transform="default").transform(frame), np.ndarray)


NO_HISTORY = {
    "EmbedKMeans": "scikit-learn's k-means records none",
    "LPIClustering": "with assign='kmeans', scikit-learn's k-means records none",
    "NMFClustering": "scikit-learn's NMF records none",
    "LPI": "singular vectors, or one linear system per dimension: no objective is recorded",
    "LLGC": "one linear system, solved by conjugate gradients: no objective is recorded",
    "LaplacianEigenmaps": "eigenvectors have residuals, which are reported, and no objective",
    "HessianEigenmaps": "eigenvectors have residuals, which are reported, and no objective",
}


def test_iterations_report_their_end(model, X):
    fitted = fit(clone(model), X)
    if not hasattr(fitted, "n_iter_"):
        assert not hasattr(fitted, "history_")
        return
    assert isinstance(fitted.converged_, bool | np.bool_)
    if type(model).__name__ in NO_HISTORY and not hasattr(fitted, "history_"):
        return
    history = fitted.history_
    assert isinstance(history, FitHistory)
    if type(model).__name__ != "TransductiveSVM":  # records one value per weight of the unlabelled rows
        assert history.iterations[-1] == fitted.n_iter_
    assert np.isfinite(history.objective).all()
    assert all(len(values) == len(history.objective) for values in history.terms.values())
    assert history == pickle.loads(pickle.dumps(history))


def test_clusterers_have_a_score_that_needs_no_labels(model, X):
    if not is_clusterer(model) or not hasattr(model, "predict"):
        return
    good, bad = fit(clone(model), X).score(X), clone(model).set_params(n_clusters=2)
    assert np.isfinite(good)
    if "covariance_type" not in model.get_params():  # the score of mixtures is the log-likelihood
        assert 0.5 < good <= 1
        assert fit(bad, X).score(X) < good  # two of the three clusters merged


# ---------------------------------------------------------------------------------------------------- graph recipes


def weights_of(graph):
    """Return the weights, or the low-rank factor, as a dense NumPy array."""
    if hasattr(graph, "factor"):
        factor = to_numpy(graph.factor)
        return factor @ factor.T
    return to_scipy(graph.weights).toarray()


@pytest.fixture(params=list(check_recipes()), ids=repr)
def recipe(request):
    return clone(request.param)


def build(recipe, X):
    return (
        recipe.build(X, np.arange(X.shape[0]) * 3 // X.shape[0]) if hasattr(recipe, "uses_labels") else recipe.build(X)
    )


def test_every_recipe_of_the_registry_is_checked():
    recipes = {row.name for row in _registry.ESTIMATORS.values() if row.section == "Graphs"}
    assert recipes == {type(one).__name__ for one in check_recipes()}


def test_recipes_build_the_same_graph_again(recipe):
    X = blobs(15)
    frozen = X.copy()
    frozen.flags.writeable = False

    assert_array_equal(weights_of(build(recipe, frozen)), weights_of(build(clone(recipe), X)))


def test_recipes_keep_the_precision(recipe):
    graph = build(recipe, blobs(15).astype(np.float32))

    assert (graph.factor if hasattr(graph, "factor") else graph.weights).dtype == np.float32


def test_recipes_do_not_depend_on_the_order_of_rows(recipe):
    if isinstance(recipe, LandmarkGraph | LabelGraph):
        pytest.skip("landmarks are drawn by row number, and labels belong to rows")
    X, order = blobs(15), np.random.RandomState(0).permutation(45)

    permuted = weights_of(build(recipe, X[order]))

    assert_allclose(permuted, weights_of(build(recipe, X))[np.ix_(order, order)], atol=1e-12)


def test_recipes_agree_on_all_back_ends(recipe, foreign):
    X = blobs(15)

    assert_allclose(weights_of(build(recipe, foreign(X))), weights_of(build(recipe, X)), atol=1e-8)


def test_recipes_survive_pickling_and_model_files(recipe, tmp_path):
    fiedler.save(recipe, tmp_path / "recipe.safetensors")

    for copy in (pickle.loads(pickle.dumps(recipe)), fiedler.load(tmp_path / "recipe.safetensors")):
        assert repr(copy) == repr(recipe)
