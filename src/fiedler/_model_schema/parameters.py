"""Checks of the parameters of constructors, by their annotations or by what scikit-learn declares."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal

import numpy as np
from sklearn.utils._param_validation import validate_parameter_constraints

from ..graph.affinity import AffinityGraph
from .kinds import TEXT, Spec, is_integer, is_real, maybe, one_of

MAX_THREADS = 1024  # that a parameter n_jobs may ask for

# Parameters that need more than the type of their annotation, or that scikit-learn does not check.
DTYPE = Spec("type of numbers", lambda value, *_: isinstance(value, type) and issubclass(value, np.number))
NGRAMS = Spec("tuple of two integers from 1, ascending", lambda value, *_: _is_range(value))
PATTERN = Spec("regular expression", lambda value, *_: isinstance(value, str) and _is_pattern(value))
THREADS = maybe(Spec(f"integer up to {MAX_THREADS}", lambda value, *_: is_integer(value) and abs(value) <= MAX_THREADS))
WORDS = maybe(Spec("'english' or words", lambda value, *_: value == "english" or _are_words(value)))
# Documents are texts: otherwise they would be names of files, which scikit-learn reads.
VECTORIZER: dict[str, Spec] = {
    "input": one_of("content"),
    "dtype": DTYPE,
    "ngram_range": NGRAMS,
    "token_pattern": PATTERN,
    "stop_words": WORDS,
}
PARAMETERS: dict[str, dict[str, Spec]] = {
    "CountVectorizer": VECTORIZER,
    "HashingVectorizer": VECTORIZER,
    "DocumentVectorizer": {"ngram_range": NGRAMS, "token_pattern": PATTERN},
    "KNNGraph": {"method": TEXT, "n_jobs": THREADS},
    "RadiusGraph": {"n_jobs": THREADS},
    "GenieLinkage": {"n_jobs": THREADS},
    "ManifoldClustering": {"n_jobs": THREADS},
}


def _is_range(value: Any) -> bool:
    is_pair = type(value) is tuple and len(value) == 2 and all(map(is_integer, value))
    return is_pair and 1 <= value[0] <= value[1]


def _are_words(value: Any) -> bool:
    return isinstance(value, list | tuple | set | frozenset) and all(isinstance(word, str) for word in value)


def _is_pattern(value: str) -> bool:
    try:
        return bool(re.compile(value))
    except re.error:
        return False


@cache
def parameter_names(cls: type) -> set[str]:
    return set(inspect.signature(cls).parameters)


def check_parameters(cls: type, parameters: Mapping[str, Any]) -> None:
    """Check the parameters of a constructor by its annotations, or by the constraints that scikit-learn declares."""
    if (constraints := getattr(cls, "_parameter_constraints", None)) is not None:
        validate_parameter_constraints(constraints, dict(parameters), cls.__name__)
    hints, specs = _hints(cls), PARAMETERS.get(cls.__name__, {})
    for key, value in parameters.items():
        is_valid = specs[key].matches(value, {}, dict) if key in specs else conforms(value, hints.get(key, Any))
        if not is_valid:
            raise ValueError(f"its {cls.__name__}.{key} has the wrong type or an unknown value")


@cache
def _hints(cls: type) -> dict[str, Any]:
    if not is_ours(cls):
        return {}
    names = {"AffinityGraph": AffinityGraph, "np": np}  # which annotations only mention
    return typing.get_type_hints(cls.__init__, localns=names)  # type: ignore[misc]


def conforms(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type; numbers may be of NumPy, and an integer is a float.

    Examples
    --------
    >>> conforms(3, float | None), conforms("3", float | None), conforms("a", Literal["a", "b"])
    (True, False, True)
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return isinstance(value, str | int) and value in arguments
    if origin in TESTS_OF_CONTAINERS:
        return TESTS_OF_CONTAINERS[origin](value, arguments)
    if arguments:
        return any(conforms(value, argument) for argument in arguments)
    return hint is Any or TESTS_OF_TYPES.get(hint, lambda value: _is_instance(value, hint))(value)


def _is_instance(value: Any, hint: Any) -> bool:
    """Whether a value is of a class, or has the methods of a protocol."""
    if getattr(hint, "_is_protocol", False):
        return all(hasattr(value, name) for name in vars(hint) if not name.startswith("_"))
    return isinstance(value, hint)


def _is_sequence(value: Any, arguments: tuple[Any, ...]) -> bool:
    return isinstance(value, list | tuple) and all(conforms(one, arguments[0]) for one in value)


def _is_tuple(value: Any, arguments: tuple[Any, ...]) -> bool:
    is_pair = isinstance(value, tuple) and len(value) == len(arguments)
    return is_pair and all(conforms(one, argument) for one, argument in zip(value, arguments))


def _is_mapping(value: Any, arguments: tuple[Any, ...]) -> bool:
    key, item = arguments
    return isinstance(value, dict) and all(conforms(name, key) and conforms(one, item) for name, one in value.items())


TESTS_OF_CONTAINERS: dict[Any, Callable[[Any, tuple[Any, ...]], bool]] = {
    list: _is_sequence,
    Sequence: _is_sequence,
    tuple: _is_tuple,
    Mapping: _is_mapping,
}
TESTS_OF_TYPES: dict[Any, Callable[[Any], bool]] = {
    int: is_integer,
    float: is_real,
    bool: lambda value: isinstance(value, bool | np.bool_) or (is_integer(value) and value in (0, 1)),
}


def is_ours(cls: type) -> bool:
    """Whether a class is of this package; those of scikit-learn have further attributes, depending on its version."""
    return cls.__module__.startswith("fiedler.")
