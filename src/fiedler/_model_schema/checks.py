"""Checks of the objects in a model file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from sklearn.base import BaseEstimator

from .attributes import ATTRIBUTES
from .kinds import Sizes, SizesOf
from .parameters import check_parameters, is_ours, parameter_names
from .relations import RELATIONS


def check_state(cls: type, state: Mapping[str, Any], sizes_of: SizesOf) -> Sizes:
    """Check the attributes of an object, parameters among them, and return its sizes.

    Classes without a row in :data:`ATTRIBUTES`, those of other packages, have their parameters checked only.
    """
    name, sizes = cls.__name__, dict[str, int]()
    parameters = parameter_names(cls) - ATTRIBUTES.get(name, {}).keys()
    check_parameters(cls, {key: value for key, value in state.items() if key in parameters})
    if name not in ATTRIBUTES:
        return sizes
    others = {key: value for key, value in state.items() if key not in ATTRIBUTES[name] and key not in parameters}
    if unknown := [key for key, value in others.items() if is_ours(cls) or not _is_scalar(value)]:
        raise ValueError(f"its {name} has unknown attributes: {', '.join(unknown)}")
    for key, spec in ATTRIBUTES[name].items():
        if key in state and not spec.matches(state[key], sizes, sizes_of):
            raise ValueError(f"its {name}.{key} is not as it must be, {spec.text}")
    required = [key for key, spec in ATTRIBUTES[name].items() if spec.is_required]
    is_estimator = issubclass(cls, BaseEstimator)  # of other objects the constructor has looked for what is required
    missing = [key for key in required if is_estimator and key not in state]
    if 0 < len(missing) < len(required):
        raise ValueError(f"its {name} lacks {', '.join(missing)}")
    if name in RELATIONS and not missing:
        RELATIONS[name](state, sizes)
    return sizes


# The size of what a transformer returns, for the step of a pipeline that follows it.
RETURNED = {"StandardScaler": "d", "MinMaxScaler": "d", "Normalizer": "d", "DocumentVectorizer": "d", "Directions": "d"}
RETURNED |= dict.fromkeys(
    ("PCA", "TruncatedSVD", "NMF", "LPI", "Whitening", "LaplacianEigenmaps", "HessianEigenmaps"), "p"
)


def check_steps(steps: Sequence[Any], sizes_of: SizesOf) -> None:
    """Check that every step of a pipeline takes as many columns as the one before it returns."""
    for first, second in pairwise(steps):
        returned, taken = sizes_of(first).get(RETURNED.get(type(first).__name__, "")), sizes_of(second).get("d")
        if returned is not None and taken is not None and returned != taken:
            raise ValueError(f"a step of a pipeline returns {returned} columns, but the next one takes {taken}")


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)
