"""The ``graph`` parameter of estimators: recipes, graphs, matrices, neighbours transformers or 'precomputed'."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from sklearn.base import clone

from .._typing import GraphLike, LabelsLike, MatrixLike
from .._validation import check_data, did_you_mean
from ..core.backend import Array, positive_part
from ..core.sparse import Sparse, csr_parts, is_sparse, with_data
from ..errors import InputError, InputTypeError, shown
from .affinity import AffinityGraph
from .neighbors import from_transformer
from .recipes import KNNGraph

if TYPE_CHECKING:
    from .constraints import PairwiseConstraints


# Attributes by which a recipe declares that its ``build`` takes these arguments:
ARGUMENT_FLAGS = {"y": "uses_labels", "constraints": "uses_constraints"}


def as_affinity(
    graph: GraphLike,
    X: MatrixLike | AffinityGraph,
    y: LabelsLike | None = None,
    constraints: PairwiseConstraints | None = None,
    *,
    validated: bool = False,
) -> AffinityGraph:
    """Return the graph that a ``graph`` parameter means for the rows of ``X``.

    Parameters
    ----------
    graph : recipe, AffinityGraph, matrix, neighbours transformer or 'precomputed'
        A recipe is cloned before it is used. A scikit-learn neighbours transformer means binary weights and 'union';
        'precomputed' means that ``X`` is the affinity matrix.
    X : array or CSR matrix of shape (n_samples, n_features), or AffinityGraph
        The rows; a graph is returned unchanged.
    y : array-like of shape (n_samples,), optional
        Labels, for recipes that use them.
    constraints : PairwiseConstraints, optional
        Pairs, for recipes that use them.
    validated : bool, default=False
        Whether ``X`` has been validated already, as an estimator does at the beginning of ``fit``.

    Examples
    --------
    >>> from fiedler import KNNGraph
    >>> as_affinity(KNNGraph(1), [[0.0], [1.0], [5.0]])
    AffinityGraph(n_nodes=3, n_edges=2, signed=False)
    >>> as_affinity("precomputed", [[0, 2], [2, 0]])
    AffinityGraph(n_nodes=2, n_edges=1, signed=False)
    """
    if not validated and needs_rows(graph) and not isinstance(X, AffinityGraph):
        X = check_data(X, min_samples=2 if is_recipe(graph) else 1)
    return build_affinity(graph, X, y, constraints)[0]


def build_affinity(graph: Any, X: Any, y: Any = None, constraints: Any = None) -> tuple[AffinityGraph, Any]:
    """Return the graph as `as_affinity` does, from validated rows, and the recipe that links new points to it.

    The recipe is a clone: a recipe that learns, such as :class:`LearnedLaplacian`, is fitted, and neither that nor a
    later ``set_params`` may change an object that the caller owns.
    """
    if is_recipe(graph):
        recipe = clone(graph, safe=False)
        return X if isinstance(X, AffinityGraph) else _build_recipe(recipe, X, y, constraints), recipe
    if isinstance(X, AffinityGraph):
        return X, graph
    if isinstance(graph, str):
        check_graph_name(graph)
        return AffinityGraph.from_matrix(X), graph
    if isinstance(graph, AffinityGraph):
        return _check_n_nodes(graph, X), graph
    if hasattr(graph, "fit_transform") and not isinstance(graph, type):
        return KNNGraph()._weigh(X, from_transformer(graph, X), None), graph
    if is_sparse(graph) or isinstance(graph, list) or (hasattr(graph, "shape") and not isinstance(graph, type)):
        return _check_n_nodes(AffinityGraph.from_matrix(graph), X), graph
    raise InputTypeError(
        f"graph={shown(graph)} is not a graph",
        "pass a recipe such as KNNGraph(), an AffinityGraph, a symmetric matrix, a neighbours transformer, or "
        "'precomputed'",
        code="not_a_graph",
        parameter="graph",
    )


def check_graph_name(graph: str, *, names: Sequence[str] = ("precomputed",)) -> None:
    """Raise an error unless ``graph`` is one of the names that stand for a graph."""
    if graph not in names:
        raise InputError(
            f"graph={graph!r} is not known{did_you_mean(graph, names)}",
            f"use {' or '.join(map(repr, names))}, or pass a recipe such as KNNGraph()",
            code="unknown_option",
            parameter="graph",
            value=graph,
            options=list(names),
        )


def _build_recipe(recipe: Any, X: Array, y: Any, constraints: Any) -> AffinityGraph:
    arguments = {"y": y, "constraints": constraints}
    used = {name: value for name, value in arguments.items() if getattr(recipe, ARGUMENT_FLAGS[name], False)}
    graph = _without_validation(recipe, "build")(X, **used)
    if isinstance(graph, AffinityGraph):
        return graph
    raise InputTypeError(
        f"{type(recipe).__name__} does not build an AffinityGraph and is accepted by NLE only",
        "use KNNGraph() here",
        code="not_a_graph",
        parameter="graph",
    )


def _without_validation(recipe: Any, method: Literal["build", "link"]) -> Callable[..., Any]:
    """Return ``_build`` or ``_link`` of a recipe, or the public method of a foreign one, which must validate again.

    The public method is also returned if a subclass overrides only that one: the override must not be bypassed.
    """
    for cls in type(recipe).__mro__:
        if f"_{method}" in vars(cls):
            return getattr(recipe, f"_{method}")
        if method in vars(cls):
            break
    return getattr(recipe, method)


def _check_n_nodes(graph: AffinityGraph, X: Any) -> AffinityGraph:
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if graph.n_nodes != n:
        raise InputError(
            f"the graph has {graph.n_nodes} nodes, but X has {n} rows",
            "build it on the same rows",
            code="graph_size_mismatch",
            n_nodes=graph.n_nodes,
            n_samples=n,
        )
    return graph


def is_recipe(graph: Any) -> bool:
    """Whether ``graph`` builds a graph from rows."""
    return hasattr(graph, "build") and not isinstance(graph, type)


def needs_rows(graph: Any) -> bool:
    """Whether a graph is computed from the rows, by a recipe or a neighbours transformer."""
    return is_recipe(graph) or (hasattr(graph, "fit_transform") and not isinstance(graph, type))


def learns_from_pairs(graph: Any) -> bool:
    """Whether a recipe uses pairwise constraints itself."""
    return bool(getattr(graph, ARGUMENT_FLAGS["constraints"], False))


def link_new_points(recipe: Any, X_new: Array, X: Array, graph: AffinityGraph) -> Sparse:
    """Return the weights from new points to the training rows, both validated, by the recipe that built the graph.

    A kernel such as the inner product can be negative for new points, although no weight of the graph is. Such weights
    are 0, so that means over neighbours are means; only on a signed graph they stay.
    """
    if hasattr(recipe, "link"):
        W = _without_validation(recipe, "link")(X_new, X, graph)
        if getattr(graph, "signed", False):
            return W
        return with_data(W, positive_part(csr_parts(W)[0])) if is_sparse(W) else positive_part(W)
    raise InputError(
        "new points need a recipe to be joined to the graph, but the graph was given ready-made",
        "fit with graph=KNNGraph(...) (or another recipe) to use predict and transform",
        code="no_recipe_for_new_points",
        parameter="graph",
    )


def is_pairwise(graph: Any) -> bool:
    """Whether ``X`` is the affinity matrix itself, for scikit-learn's ``pairwise`` tag."""
    return isinstance(graph, str) and graph == "precomputed"
