"""Laws of estimators: each takes a subject and a case, and raises LawBroken where it does not hold.

Every law also checks that no input and no global state is changed, that no warning of another library leaks, and that
an error is one of ours (see ``guard``).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st
from scipy.spatial.distance import pdist
from scipy.stats import ortho_group

import fiedler
from fiedler.core.arrays import to_numpy
from fiedler.metrics import adjusted_rand_index

from .guard import LawBroken, Outcome, require, returns, watch
from .strategies import (
    DENSE,
    FITTABLE,
    FOREIGN,
    FORMS,
    FRAMES,
    LABELS,
    SEEDS,
    SPARSE,
    Blobs,
    Labels,
    Rows,
    blobs,
    rows,
)
from .subjects import (
    COPIES,
    NUMPY_ONLY,
    PREDICTS_TRAINING_LABELS,
    ROTATION,
    SCALE,
    SHIFT,
    Subject,
    options,
)

EMPTY_CODES = {"empty_clusters", "duplicate_rows"}  # of warnings that fewer clusters than requested have rows
KNOWN = (
    "thirds",
    "random",
    "half unknown",
    "few known",
    "strings",
    "objects",
    "booleans",
    "uint8",
    "list",
    "read-only",
)


@dataclass(frozen=True)
class Awkward:
    """Rows and parameters that may well be refused."""

    rows: Rows
    new: Rows
    labels: Labels
    n_clusters: int
    options: tuple[tuple[str, Any], ...] = ()

    def data(self, subject: Subject) -> tuple[Any, Any]:
        """Return the rows and the labels from which the subject learns."""
        y = None
        if subject.learns_from_labels:
            y = Labels(self.labels.kind, self.rows.n, self.labels.seed).build()
        return self.rows.build(), y

    def model(self, subject: Subject) -> Any:
        return subject.model(self.n_clusters, self.options)


@st.composite
def awkward(draw, subject: Subject, forms: tuple[str, ...] = tuple(FORMS)) -> Awkward:
    """Draw rows of any kind, and from 1 to n + 1 clusters."""
    drawn = draw(rows(forms=forms))
    new = draw(rows(n=(1, 5), d=(drawn.d, drawn.d)))
    kind = draw(st.sampled_from(tuple(LABELS) if draw(st.booleans()) else KNOWN))
    n_clusters = draw(st.integers(1, min(drawn.n + 1, 6)) | st.integers(1, drawn.n + 1))
    return Awkward(drawn, new, Labels(kind, drawn.n, draw(SEEDS)), n_clusters, draw(options(subject)))


@st.composite
def fittable(draw, subject: Subject) -> Awkward:
    """Draw rows to which most models can be fitted, and new rows of any kind."""
    plain = {"dtypes": ("float64", "float32"), "forms": ("C", "F")}
    drawn = draw(rows(FITTABLE, n=(8, 30), **plain))
    new = draw(rows(n=(1, 8), d=(drawn.d, drawn.d)))
    labels = Labels(draw(st.sampled_from(KNOWN)), drawn.n, draw(SEEDS))
    return Awkward(drawn, new, labels, draw(st.integers(1, 5)), draw(options(subject)))


@dataclass(frozen=True)
class Benign:
    """Well separated groups, and a seed for the change that is made to them."""

    blobs: Blobs
    seed: int
    form: str = "C"

    def data(self, subject: Subject) -> tuple[np.ndarray, Any]:
        """Return the rows, made positive where needed, and labels."""
        if subject.is_of_one_sheet:
            return self.blobs.sheet(), None
        X, classes = self.blobs.array()
        y = None
        if subject.learns_from_labels:
            y = classes
            if subject.learns_from_some:  # of every second row of each group
                position = np.array([np.sum(classes[:i] == classes[i]) for i in range(len(X))])
                y = np.where(position % 2, -1, classes)
        return (np.abs(X) if subject.positive_only else X), y

    def model(self, subject: Subject) -> Any:
        k, options = self.blobs.n_clusters, [("n_cells", self.blobs.n_clusters)]
        if isinstance(subject.model().get_params().get("n_components"), int):
            # All coordinates of a sheet, or all that tell the groups apart; some of them are not unique.
            options.append(("n_components", 2 if subject.is_of_one_sheet else k - 1))
        return subject.model(k, tuple(options))

    @property
    def rng(self) -> np.random.RandomState:
        return np.random.RandomState(self.seed)


@st.composite
def benign(draw, subject: Subject, forms: tuple[str, ...] = ("C",)) -> Benign:
    """Draw groups, with a direction of its own for each group where the subject goes by directions."""
    return Benign(draw(blobs(own_directions=subject.goes_by_directions)), draw(SEEDS), draw(st.sampled_from(forms)))


# ---------------------------------------------------------------------------------------------------- what is checked


def results(model: Any, X: Any) -> dict[str, np.ndarray]:
    """Return everything that a fitted model says of rows."""
    found = {}
    for method in ("predict", "predict_proba", "transform"):
        if hasattr(model, method):
            values = getattr(model, method)(X)
            if hasattr(values, "columns"):
                values = values.to_numpy()
            found[method] = values.toarray() if sp.issparse(values) else to_numpy(values)
    if "use_graph" in signature(getattr(model, "predict_proba", id)).parameters:
        found["predict_proba(use_graph=True)"] = to_numpy(model.predict_proba(X, use_graph=True))
    return found


def result(model: Any, X: Any) -> np.ndarray:
    """Return labels of the training rows for clusterers, classes or coordinates for others."""
    if hasattr(model, "labels_"):
        return to_numpy(model.labels_)
    found = results(model, X)
    return found["predict"] if "predict" in found else found["transform"]


def require_same(subject: Subject, actual: np.ndarray, expected: np.ndarray, *, kind: str, atol: float = 1e-6) -> None:
    """Compare labels as partitions, classes one by one, and coordinates by their distances."""
    require(actual.shape[0] == expected.shape[0], f"{kind}: other number of rows")
    if subject.is_clusterer:
        index = adjusted_rand_index(actual, expected)
        require(index == 1, f"{kind}: other partition", f"adjusted Rand index {index:.3f}")
    elif subject.is_classifier:
        require(np.array_equal(actual, expected), f"{kind}: other classes", f"{np.sum(actual != expected)} rows")
    else:
        ours, theirs = pdist(actual), pdist(expected)
        gap = np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max())
        require(gap <= atol, f"{kind}: other coordinates", f"largest difference of distances {gap:.1e}")


def require_equal(actual: dict[str, np.ndarray], expected: dict[str, np.ndarray], kind: str) -> None:
    """Compare labels exactly, and numbers up to the rounding that depends on where arrays lie in memory."""
    for name, values in expected.items():
        if values.dtype.kind == "f":
            tolerance = 1e-4 if values.dtype == np.float32 else 1e-10
            same = np.allclose(actual[name], values, rtol=tolerance, atol=tolerance * np.abs(values).max(initial=0))
        else:
            same = np.array_equal(actual[name], values)
        require(same, f"{kind}: {name} differs", f"{actual[name]!r} and {values!r}")


def check_labels(labels: np.ndarray, n: int, n_clusters: int, *, lowest: int = 0) -> None:
    require(labels.shape == (n,), "labels have another shape", labels.shape)
    require(labels.dtype.kind in "iu", "labels are not integers", labels.dtype)
    require(labels.min() >= lowest and labels.max() < n_clusters, "a label is out of range", np.unique(labels))


def check_probabilities(values: np.ndarray, n: int, name: str) -> None:
    require(values.ndim == 2 and values.shape[0] == n, f"{name} has another shape", values.shape)
    require(np.isfinite(values).all(), f"{name} is not finite", values)
    require(values.min() >= 0, f"{name} is negative", values.min())
    tolerance = 1e-4 if values.dtype == np.float32 else 1e-8
    require(np.abs(values.sum(axis=1) - 1).max() <= tolerance, f"{name} does not sum to one", values.sum(axis=1))


def check_fitted(subject: Subject, model: Any, n: int, outcome: Outcome) -> None:
    """Check that the attributes of a fitted model make sense."""
    if subject.is_clusterer:
        k = int(getattr(model, "n_clusters_", model.n_clusters))
        labels = to_numpy(model.labels_)
        check_labels(labels, n, k, lowest=-1 if getattr(model, "outliers", None) else 0)
        empty = k - len(np.unique(labels[labels >= 0]))
        told = any(one.code in EMPTY_CODES for one in outcome.warnings)
        require(not empty or told, "empty clusters without a warning", f"{empty} of {k}")
    if hasattr(model, "memberships_") and subject.class_name != "NLE":
        check_probabilities(to_numpy(model.memberships_), n, "memberships_")
    for name, value in vars(model).items():
        if name.endswith("_") and isinstance(value, np.ndarray) and value.dtype.kind == "f":
            require(np.isfinite(value).all(), f"{name} is not finite", value)


def check_results(subject: Subject, model: Any, found: dict[str, np.ndarray], m: int) -> None:
    """Check labels, probabilities and coordinates of rows."""
    if subject.is_clusterer and "predict" in found:
        k = int(getattr(model, "n_clusters_", model.n_clusters))
        check_labels(found["predict"], m, k, lowest=-1 if getattr(model, "outliers", None) else 0)
    if subject.is_classifier:
        require(np.isin(found["predict"], [*model.classes_.tolist(), -1]).all(), "an unknown class", found["predict"])
    for name in found:
        if name.startswith("predict_proba"):
            check_probabilities(found[name], m, name)
    if "transform" in found:
        values = found["transform"]
        require(values.shape[0] == m, "transform has another number of rows", values.shape)
        require(np.isfinite(values).all(), "transform is not finite", values)


def fit(subject: Subject, case: Any) -> tuple[Any, Any, Outcome]:
    """Fit under watch; the model is None where the rows were refused."""
    X, y = case.data(subject)
    model = case.model(subject)
    outcome = watch(lambda: model.fit(X, y), X, y)
    return (None if outcome.error else model), X, outcome


# ----------------------------------------------------------------------------------------------- laws of awkward data


def result_or_error(subject: Subject, case: Awkward) -> str | None:
    """A fit gives a result that makes sense, or an error of ours; so do the new rows."""
    model, X, outcome = fit(subject, case)
    if model is None:
        return outcome.error.code
    check_fitted(subject, model, case.rows.n, outcome)
    for one, m in ((X, case.rows.n), (case.new.build(), case.new.n)):
        about = watch(lambda one=one: results(model, one), one)
        if about.error is None:
            check_results(subject, model, about.value, m)
    return None


def probabilities(subject: Subject, case: Awkward) -> str | None:
    """Probabilities of any new rows are not negative and sum to one; predicted labels exist."""
    model, _, outcome = fit(subject, case)
    if model is None:
        return outcome.error.code
    new = case.new.build()
    about = watch(lambda: results(model, new), new)
    if about.error is not None:
        return about.error.code
    check_results(subject, model, about.value, case.new.n)
    return None


def same_again(subject: Subject, case: Awkward) -> str | None:
    """The same seed gives the same result in a new model and in a refitted one."""
    model, X, outcome = fit(subject, case)
    if model is None:
        return outcome.error.code
    about = watch(lambda: results(model, X), X)
    if about.error is not None:
        return about.error.code
    other, _, _ = fit(subject, case)
    require(other is not None, "a second model: an error")
    require_equal(returns(lambda: results(other, X)), about.value, "a second model")
    _, y = case.data(subject)
    returns(lambda: model.fit(X, y))
    require_equal(returns(lambda: results(model, X)), about.value, "a refit")
    return None


def files(subject: Subject, case: Awkward) -> str | None:
    """A saved and loaded model says the same of the training rows and of new ones."""
    model, X, outcome = fit(subject, case)
    if model is None:
        return outcome.error.code
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        saved = watch(lambda: fiedler.save(model, path))
        if saved.error is not None:
            return saved.error.code
        loaded = returns(lambda: fiedler.load(path))
    refused = None
    for one in (X, case.new.build()):
        about = watch(lambda one=one: results(model, one), one)
        again = watch(lambda one=one: results(loaded, one), one)
        require(str(about.error) == str(again.error), "another error after loading", again.error)
        if about.error is None:
            require_equal(again.value, about.value, "after loading")
        else:
            refused = about.error.code
    return refused


def failed_refit(subject: Subject, case: Awkward) -> str | None:
    """A fit that fails leaves the model as it was."""
    good = Benign(Blobs(3, 3, 7), 0)
    X, y = good.data(subject)
    model = good.model(subject)
    returns(lambda: model.fit(X, y), X, y)
    before, expected = dict(vars(model)), returns(lambda: results(model, X), X)
    bad, bad_y = case.data(subject)
    if watch(lambda: model.fit(bad, bad_y), bad, bad_y).error is None:
        return "fitted"
    require(vars(model).keys() == before.keys(), "a failed fit adds or removes attributes")
    require_equal(returns(lambda: results(model, X), X), expected, "after a failed fit")
    return None


# ------------------------------------------------------------------------------------------------ laws of benign data


def fitted(subject: Subject, case: Benign, X: Any, y: Any) -> Any:
    model = case.model(subject)
    returns(lambda: model.fit(X, y), X, y)
    return model


def _changed(subject: Subject, case: Benign, change: Callable[[np.ndarray], Any], kind: str, atol: float) -> None:
    """The result on changed rows is the one on the rows themselves."""
    X, y = case.data(subject)
    other = change(X)
    expected = result(fitted(subject, case, X, y), X)
    require_same(subject, result(fitted(subject, case, other, y), other), expected, kind=kind, atol=atol)


def training_rows(subject: Subject, case: Benign) -> None:
    """The training rows are predicted to have their own labels."""
    X, y = case.data(subject)
    model = fitted(subject, case, X, y)
    predicted = returns(lambda: to_numpy(model.predict(X)), X)
    require(np.array_equal(predicted, to_numpy(model.labels_)), "predict(X) differs from labels_")


def order_of_rows(subject: Subject, case: Benign) -> None:
    """Rows in another order have the same partition."""
    X, y = case.data(subject)
    order = case.rng.permutation(len(X))
    expected = result(fitted(subject, case, X, y), X)[order]
    permuted = fitted(subject, case, X[order], None if y is None else y[order])
    require_same(subject, result(permuted, X[order]), expected, kind="permuted rows", atol=1e-4)


def scaled_rows(subject: Subject, case: Benign) -> None:
    """Rows in another unit have the same result."""
    _changed(subject, case, lambda X: X * 10.0 ** case.rng.uniform(-4, 4), "scaled rows", 1e-3)


def shifted_rows(subject: Subject, case: Benign) -> None:
    """Rows from another origin have the same result."""
    _changed(subject, case, lambda X: X + case.rng.normal(scale=50, size=X.shape[1]), "shifted rows", 1e-3)


def rotated_rows(subject: Subject, case: Benign) -> None:
    """Rows in other axes have the same result."""
    _changed(subject, case, lambda X: X @ ortho_group.rvs(X.shape[1], random_state=case.rng), "rotated rows", 1e-3)


def copied_rows(subject: Subject, case: Benign) -> None:
    """The partition stays when each row is given twice, and both copies are in the same cluster."""
    X, y = case.data(subject)
    model = fitted(subject, case, np.concatenate([X, X]), None if y is None else np.concatenate([y, y]))
    labels = to_numpy(model.labels_)
    require(np.array_equal(labels[: len(X)], labels[len(X) :]), "copied rows: copies in two clusters")
    expected = result(fitted(subject, case, X, y), X)
    require_same(subject, labels[: len(X)], expected, kind="copied rows")


def single_precision(subject: Subject, case: Benign) -> None:
    """float32 gives what float64 gives."""
    _changed(subject, case, lambda X: X.astype(np.float32), "float32", 2e-2)


def back_ends(subject: Subject, case: Benign) -> str | None:
    """Arrays of another library give what NumPy's give."""
    X, y = case.data(subject)
    other = FOREIGN[case.form](X)
    model = case.model(subject)
    outcome = watch(lambda: model.fit(other, y), y)
    if subject.class_name in NUMPY_ONLY:
        require(outcome.error is not None, "an array of another library was taken")
        return outcome.error.code
    require(outcome.error is None, f"{case.form}: an error", outcome.error)
    expected = result(fitted(subject, case, X, y), X)
    require_same(subject, result(model, other), expected, kind=f"{case.form} arrays", atol=1e-6)
    return None


def memory_layouts(subject: Subject, case: Benign) -> None:
    """Strides, lists, data frames and sparse forms of the same numbers have the same result."""
    X, y = case.data(subject)
    X = np.where(np.abs(X) < 0.5, 0, X) if case.form in SPARSE else X
    other = FORMS[case.form](X)
    model = case.model(subject)
    outcome = watch(lambda: model.fit(other, y), other, y)
    if case.form in SPARSE and not subject.takes_sparse:
        require(outcome.error is not None, "sparse rows were taken")
        return
    require(outcome.error is None, f"{case.form}: an error", outcome.error)
    expected = result(fitted(subject, case, X, y), X)
    require_same(subject, result(model, other), expected, kind=case.form, atol=1e-4)


# ------------------------------------------------------------------------------------------------------------ the table


@dataclass(frozen=True)
class Law:
    """A law of estimators: its sentence, its check, its data, and the subjects that it is about."""

    sentence: str
    check: Callable[[Subject, Any], str | None]
    cases: Callable[[Subject], st.SearchStrategy[Any]]
    applies: Callable[[Subject], bool] = lambda subject: True


def _forms(*tables: dict[str, Any]) -> Callable[[Subject], st.SearchStrategy[Benign]]:
    names = tuple(name for table in tables for name in table)
    return lambda subject: benign(subject, names)


def _of_numpy(subject: Subject) -> st.SearchStrategy[Awkward]:
    """Draw rows that NumPy computes with, as it does after loading."""
    return awkward(subject, tuple(name for name in FORMS if name not in FOREIGN))


def _blind(change: str) -> Callable[[Subject], bool]:
    return lambda subject: change in subject.blind_to


LAWS: dict[str, Law] = {
    "result or error": Law("a fit gives a sound result or an error of the library", result_or_error, awkward),
    "probabilities": Law(
        "probabilities of new rows are not negative and sum to one",
        probabilities,
        fittable,
        lambda one: one.has("predict") or one.has("predict_proba") or one.has("transform"),
    ),
    "same again": Law("the same seed gives the same result, also in a refit", same_again, awkward),
    "files": Law("a saved and loaded model gives the same results", files, _of_numpy),
    "failed refit": Law("a fit that fails leaves the model as it was", failed_refit, awkward),
    "training rows": Law(
        "`predict` gives the training rows their labels",
        training_rows,
        benign,
        lambda one: one.class_name in PREDICTS_TRAINING_LABELS,
    ),
    "order of rows": Law("rows in another order have the same partition", order_of_rows, benign),
    "scale": Law("rows in another unit have the same result", scaled_rows, benign, _blind(SCALE)),
    "shift": Law("rows from another origin have the same result", shifted_rows, benign, _blind(SHIFT)),
    "rotation": Law("rows in other axes have the same result", rotated_rows, benign, _blind(ROTATION)),
    "copies": Law("rows given twice have the same partition", copied_rows, benign, _blind(COPIES)),
    "float32": Law("float32 gives what float64 gives", single_precision, benign),
    "back ends": Law("arrays of other libraries give what NumPy's give", back_ends, _forms(FOREIGN)),
    "layouts": Law(
        "strides, frames and sparse forms of the same numbers give the same",
        memory_layouts,
        _forms(DENSE, SPARSE, FRAMES),
    ),
}

__all__ = ["LAWS", "Awkward", "Benign", "Law", "LawBroken"]
