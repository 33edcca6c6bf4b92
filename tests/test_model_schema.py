"""The table of attributes: what the state of an object must be, beyond its types."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import NMF
from sklearn.feature_extraction.text import CountVectorizer

from fiedler import KNNGraph
from fiedler._model_schema import ATTRIBUTES, RELATIONS, check_parameters, check_state, conforms
from fiedler._model_schema.kinds import rows
from fiedler.graph.weights import CopiedRows
from fiedler.manifold.state import FittedState
from fiedler.mixture.covariance import Gaussians
from fiedler.text import DocumentVectorizer


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (1, int, True),
        (np.int64(1), int, True),
        (True, int, False),
        (1, float, True),
        (True, float, False),
        (1, bool, True),
        (2, bool, False),
        (np.bool_(True), bool, True),
        ("a", Literal["a"], True),
        (["a"], Literal["a"], False),
        (None, int | None, True),
        (["a"], list[str], True),
        ([1], Sequence[str], False),
        ((1, 2), tuple[int, int], True),
        ((1,), tuple[int, int], False),
        ([1, 2], tuple[int, int], False),
        ({"a": 1}, Mapping[str, float], True),
        ({"a": "b"}, Mapping[str, float], False),
        ([], Mapping[str, float], False),
        (object(), Any, True),
    ],
)
def test_values_conform_to_annotations(value, hint, expected):
    assert conforms(value, hint) is expected


@pytest.mark.parametrize(
    ("cls", "parameters"),
    [
        (DocumentVectorizer, {"token_pattern": "("}),
        (DocumentVectorizer, {"ngram_range": (2, 1)}),
        (DocumentVectorizer, {"ngram_range": (0, 1)}),
        (CountVectorizer, {"stop_words": [[]]}),
        (CountVectorizer, {"ngram_range": (1, 2, 3)}),
        (CountVectorizer, {"dtype": str}),
        (CountVectorizer, {"lowercase": "yes"}),
        (KNNGraph, {"n_jobs": 10**6}),
        (KNNGraph, {"method": NMF()}),
        (KNNGraph, {"weight": "none"}),
    ],
    ids=str,
)
def test_parameters_of_a_wrong_type_or_value_are_refused(cls, parameters):
    with pytest.raises(ValueError, match=next(iter(parameters))):
        check_parameters(cls, parameters)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("power", [0.51, np.inf, np.nan])
def test_rows_whose_squares_overflow_are_refused(power, form, dtype):
    spec, largest = rows("n", "d"), float(np.finfo(dtype).max)

    assert spec.matches(form(np.full((2, 3), largest**0.45, dtype)), {}, dict)
    assert not spec.matches(form(np.full((2, 3), -(largest**power), dtype)), {}, dict)


class OfAnotherPackage:
    """A class without a table."""

    def __init__(self, size=1):
        self.size = size


def test_classes_of_other_packages_may_have_any_attributes():
    assert check_state(OfAnotherPackage, {"size": 2, "anything": 3}, dict) == {}


K, D = 2, 3
GAUSSIANS = Gaussians(np.ones(K), np.ones((K, D)), np.ones((K, D)), np.ones((K, D)), np.zeros(D), "diag", 0.0)._asdict()
NMF_STATE = vars(NMF(2)) | {"n_features_in_": 3, "components_": np.ones((2, 3)), "_n_components": 2, "n_components_": 2}


@pytest.mark.parametrize(
    ("cls", "state", "changes", "reason"),
    [
        (Gaussians, GAUSSIANS, {"kind": "full"}, "not of kind 'full'"),
        (
            CopiedRows,
            {"first": np.array([0]), "nodes": np.array([0])},
            {"first": np.array([1])},
            "names a row that it does not have",
        ),
        (NMF, NMF_STATE, {"components_": np.zeros((2, 3))}, "all its components are zero"),
        (NMF, NMF_STATE, {"n_components": 5}, "another one than that of its parameters"),
        (NMF, NMF_STATE, {"extra_": np.ones(3)}, "unknown attributes: extra_"),
        (
            CountVectorizer,
            vars(CountVectorizer()),
            {"input": "filename"},
            "input has the wrong type or an unknown value",
        ),
        (CountVectorizer, vars(CountVectorizer()), {"vocabulary_": {"a": 1}}, "vocabulary_ is not as it must be"),
        (CountVectorizer, vars(CountVectorizer()), {"vocabulary_": [0]}, "vocabulary_ is not as it must be"),
    ],
)
def test_attributes_that_contradict_each_other_are_refused(cls, state, changes, reason):
    check_state(cls, state, dict)
    with pytest.raises(ValueError, match=reason):
        check_state(cls, state | changes, dict)


def test_attributes_of_newer_versions_of_scikit_learn_may_be_plain_values():
    check_state(NMF, NMF_STATE | {"extra_": 3}, dict)


class Encoding:
    center = np.zeros(2)


class Whitening:
    """Has another number of columns than the rows that it takes."""


CHOSEN = {"candidates_": {"chosen": [True]}, "_state": FittedState([None])}
WHOLE = {"memberships_": 0, "labels_": 0, **CHOSEN}


COLUMN = {"kind": "number", "levels": ["a"], "has_other": True, "vectorizer": None, "components": None}


@pytest.mark.parametrize(
    ("name", "state", "sizes", "reason"),
    [
        ("ColumnEncoding", COLUMN, {"w": 2}, "kind number has 2 values instead of 1"),
        ("ColumnEncoding", COLUMN | {"kind": "category"}, {"w": 1}, "kind category has 1 values instead of 2"),
        ("ColumnEncoding", COLUMN | {"kind": "text"}, {"w": 1}, "no terms or no components"),
        ("LapGMM", {"_projection": None, "_fit_X": None}, {"d": 2, "p": 3}, "two of its sizes differ, 2 and 3"),
        ("LapGMM", {"_projection": None, "_fit_X": 0}, {"d": 2, "p": 2}, "memberships are missing"),
        ("EmbedKMeans", {"embedder_": None}, {"d": 2, "p": 3}, "differ"),
        ("LPIClustering", {"_soft": True}, {}, "mixture is missing"),
        ("LLGC", {"_landmark_distributions": None}, {}, "label_distributions_ are missing"),
        ("LLGC", {"_landmark_distributions": None, "label_distributions_": 0}, {"m": 2, "n": 3}, "differ"),
        ("ManifoldClustering", WHOLE, {"columns": 3, "p": 2}, "differ, 3 and 2"),
        (
            "ManifoldClustering",
            WHOLE | {"_state": FittedState([None], view=Whitening())},
            {"columns": 3, "d": 4, "p": 2},
            "differ, 3 and 4",
        ),
        ("ManifoldClustering", {**WHOLE, "encoder_": 0}, {"columns": 3, "d": 4, "p": 2}, "differ, 4 and 2"),
        ("ManifoldClustering", WHOLE, {"columns": 2, "m": 3, "n": 4}, "differ, 3 and 4"),
        ("ManifoldClustering", {**WHOLE, "candidates_": {}}, {"columns": 2}, "not exactly one of its candidates"),
        ("ManifoldClustering", {"_state": FittedState()}, {"columns": 2}, "memberships are missing"),
        ("TableCompleter", {"_names": ["a"]}, {"columns": 2}, "do not have a name each"),
        ("TableCompleter", {"_names": ["a", "a"]}, {"columns": 2}, "do not have a name each"),
        (
            "TableEncoder",
            {"encodings_": [Encoding()], "uses_": {}},
            {"d": 2, "columns": 2**40},
            "how each of its columns",
        ),
        (
            "TableEncoder",
            {"encodings_": [Encoding()], "uses_": {"a": "number"}},
            {"d": 3, "columns": 1},
            "another number of values than its encodings",
        ),
    ],
)
def test_models_whose_parts_do_not_belong_together_are_refused(name, state, sizes, reason):
    with pytest.raises(ValueError, match=reason):
        RELATIONS[name](state, dict(sizes))


def test_terms_are_pairs_of_a_string_and_a_number():
    terms = ATTRIBUTES["Profiles"]["terms"]

    assert terms.matches({"notes": [[("star", 0.5)], []]}, {"k": 2}, dict)
    assert not terms.matches({"notes": [[("star", "a")], []]}, {"k": 2}, dict)
    assert not terms.matches({"notes": [[("star", 0.5)]]}, {"k": 2}, dict)
    assert not terms.matches({"notes": [["star"], []]}, {"k": 2}, dict)
