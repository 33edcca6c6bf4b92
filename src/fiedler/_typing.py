"""Types of public signatures. Nothing here is needed at run time, so importing it costs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, Union

if TYPE_CHECKING:
    import numpy as np

    from .graph.affinity import AffinityGraph

# An array of any library that array_api_compat knows: the standard has no common type for them.
Array: TypeAlias = Any


class SupportsShape(Protocol):
    """An array of NumPy or another library, a SciPy sparse matrix, or a data frame."""

    @property
    def shape(self) -> Any:
        """The size along every axis."""


# Rows of numbers. NumPy's ArrayLike is not used here: it accepts strings, which would hide a misspelt option.
MatrixLike: TypeAlias = SupportsShape | Sequence[Sequence[float]]

# One label per row.
LabelsLike: TypeAlias = SupportsShape | Sequence[int] | list[str]

RandomState: TypeAlias = Union[int, "np.random.RandomState", None]


class GraphRecipe(Protocol):
    """How a graph is built from rows: :class:`fiedler.KNNGraph` and its relatives."""

    def build(self, X: Any) -> Any:
        """Build the graph on the rows of ``X``."""


class Transformer(Protocol):
    """A scikit-learn transformer."""

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit to ``X`` and return the transformed rows."""


# What a ``graph`` parameter takes; None is the estimator's default recipe.
GraphLike: TypeAlias = Union[GraphRecipe, "AffinityGraph", MatrixLike, Literal["precomputed"], None]
