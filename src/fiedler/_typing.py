"""Types of public signatures. Nothing here is needed at run time, so importing it costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, Union

if TYPE_CHECKING:
    import numpy as np
    import scipy.sparse as sp
    from numpy.typing import ArrayLike

    from .graph.affinity import AffinityGraph

# An array of any library that array_api_compat knows: the standard has no common type for them.
Array: TypeAlias = Any

# Rows of numbers: anything NumPy understands, an array of another library, a data frame, or a SciPy sparse matrix.
MatrixLike: TypeAlias = Union["ArrayLike", "sp.sparray", "sp.spmatrix", "SupportsArrayAPI"]

# One label a row; a list of integers or strings, an array, or a series.
LabelsLike: TypeAlias = Union["ArrayLike", "SupportsArrayAPI"]

RandomState: TypeAlias = Union[int, "np.random.RandomState", None]


class SupportsArrayAPI(Protocol):
    """An array of another library (torch, CuPy) or a data frame: it has a shape."""

    @property
    def shape(self) -> Any:
        """Its size along every axis."""


class GraphRecipe(Protocol):
    """How a graph is built from rows: :class:`fiedler.KNNGraph` and its relatives."""

    def build(self, X: Any) -> Any:
        """Build the graph on the rows of ``X``."""


# What a ``graph`` parameter takes; None is the estimator's default recipe.
GraphLike: TypeAlias = Union[
    GraphRecipe, "AffinityGraph", "sp.sparray", "sp.spmatrix", "ArrayLike", Literal["precomputed"], None
]
