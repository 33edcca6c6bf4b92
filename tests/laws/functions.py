"""Laws of functions, graphs, metrics and pairs; each takes a case and raises LawBroken where it does not hold."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import fiedler
from fiedler import AffinityGraph, PairwiseConstraints, metrics
from fiedler.core.arrays import to_numpy
from fiedler.core.sparse import to_scipy
from fiedler.graph.kernels import KERNELS
from registry_instances import Spec, build

from .guard import require, returns, watch
from .laws import check_labels, check_probabilities
from .strategies import DTYPES, FORMS, FRAMES, LABELS, SEEDS, VALUES, Labels, Rows, labels, rows, to_dtype

# ----------------------------------------------------------------------------------------------- cluster, and how many


@dataclass(frozen=True)
class Call:
    """Rows and the arguments of a function."""

    rows: Rows
    arguments: tuple[tuple[str, Any], ...]


CLUSTER_ARGUMENTS: dict[str, st.SearchStrategy[Any]] = {
    "n_clusters": st.integers(1, 31) | st.just("auto"),
    "effort": st.sampled_from(("fast", "default", "thorough")),
    "outliers": st.sampled_from((0.05, 0.5)),
    "min_cluster_size": st.integers(1, 10),
    "max_cluster_size": st.integers(1, 10),
    "max_clusters": st.integers(2, 8),
}


@st.composite
def calls_of_cluster(draw) -> Call:
    names = draw(st.lists(st.sampled_from(sorted(CLUSTER_ARGUMENTS)), max_size=3, unique=True))
    return Call(draw(rows()), tuple((name, draw(CLUSTER_ARGUMENTS[name])) for name in sorted(names)))


def cluster(case: Call) -> str | None:
    """``cluster`` gives labels and memberships that make sense, or an error of ours."""
    X, arguments = case.rows.build(), dict(case.arguments)
    outcome = watch(lambda: fiedler.cluster(X, random_state=0, **arguments), X)
    if outcome.error is not None:
        return outcome.error.code
    found, memberships, model = outcome.value
    k = int(model.n_clusters_)
    check_labels(to_numpy(found), case.rows.n, k, lowest=-1 if "outliers" in arguments else 0)
    check_probabilities(to_numpy(memberships), case.rows.n, "memberships")
    require(memberships.shape[1] == k, "memberships of another number of clusters", memberships.shape)
    if isinstance(arguments.get("n_clusters"), int):
        require(k == arguments["n_clusters"] or outcome.warnings, "another number of clusters without a warning", k)
    require(isinstance(returns(model.report), str), "report is not a text")
    return None


@st.composite
def calls_of_choose(draw) -> Call:
    lowest = draw(st.integers(1, 5))
    candidates = tuple(range(lowest, draw(st.integers(lowest, 8)) + 1))
    return Call(draw(rows(n=(1, 40), forms=tuple(set(FORMS) - set(FRAMES)))), (("candidates", candidates),))


def choose_n_clusters(case: Call) -> str | None:
    """``choose_n_clusters`` chooses one of the candidates, or raises an error of ours."""
    X, candidates = case.rows.build(), dict(case.arguments)["candidates"]
    outcome = watch(lambda: fiedler.choose_n_clusters(X, candidates, random_state=0), X)
    if outcome.error is not None:
        return outcome.error.code
    require(outcome.value.n_clusters in candidates, "a number that is not a candidate", outcome.value.n_clusters)
    require(isinstance(str(outcome.value), str), "the choice has no text")
    return None


# ------------------------------------------------------------------------------------------------------------- graphs


@dataclass(frozen=True)
class RecipeCase:
    """A recipe of a graph and rows."""

    recipe: Spec
    rows: Rows


@st.composite
def recipe_cases(draw) -> RecipeCase:
    weight = draw(st.sampled_from(tuple(KERNELS)))
    shared: dict[str, Any] = {"weight": weight}
    if weight == "heat" and draw(st.booleans()):
        shared["bandwidth"] = draw(st.sampled_from((1e-3, 1.0, 1e3)))
    metric = {"metric": draw(st.sampled_from(("euclidean", "cosine")))}
    connect = {"connect": draw(st.sampled_from((None, "mst")))}
    kinds = {
        "KNNGraph": {
            "n_neighbors": draw(st.integers(1, 10)),
            "symmetrize": draw(st.sampled_from(("union", "mutual"))),
            **metric,
            **connect,
        },
        "RadiusGraph": {"radius": draw(st.sampled_from((1e-3, 1.0, 1e3))), **metric, **connect},
        "FullGraph": {**metric, **connect},
        "LandmarkGraph": {"n_landmarks": draw(st.integers(1, 31))},
    }
    name = draw(st.sampled_from(tuple(kinds)))
    signed = {"signed": draw(st.booleans())} if name != "LandmarkGraph" else {}
    return RecipeCase(Spec(name, shared | kinds[name] | signed), draw(rows()))


def recipes(case: RecipeCase) -> str | None:
    """A recipe builds a symmetric graph of finite weights, not negative unless signed, or raises an error of ours."""
    X, recipe = case.rows.build(), build(case.recipe)
    outcome = watch(lambda: recipe.build(X), X)
    if outcome.error is not None:
        return outcome.error.code
    if hasattr(outcome.value, "factor"):
        require(np.isfinite(to_numpy(outcome.value.factor)).all(), "a factor that is not finite")
        return None
    check_graph(outcome.value, case.rows.n, signed=bool(case.recipe.params.get("signed")))
    return None


def check_graph(graph: AffinityGraph, n: int, *, signed: bool) -> None:
    """Check weights, degrees, components and Laplacians."""
    W = to_scipy(graph.weights)
    require(W.shape == (n, n), "a graph of another size", W.shape)
    require(np.isfinite(W.data).all(), "a weight is not finite", W.data)
    require(abs(W - W.T).sum() == 0, "weights are not symmetric")
    require(not W.diagonal().any(), "weights on the diagonal")
    require(signed or not (W.data < 0).any(), "a negative weight", W.data)
    count, parts = returns(graph.components)
    require(len(np.unique(parts)) == count, "another number of components")
    for kind in ("combinatorial", "symmetric", "random_walk"):
        L = to_scipy(returns(lambda kind=kind: graph.laplacian(kind)))
        require(np.isfinite(L.data).all(), f"the {kind} Laplacian is not finite")


@dataclass(frozen=True)
class MatrixCase:
    """A matrix that may be an affinity matrix."""

    values: str
    n: int
    seed: int
    dtype: str
    form: str
    square: bool
    symmetric: bool
    positive: bool
    signed: bool

    def build(self) -> Any:
        """Return the matrix in its form."""
        n = self.n
        W = VALUES[self.values](np.random.RandomState(self.seed), n, n if self.square else n + 1)
        with np.errstate(all="ignore"):
            W = np.abs(W) if self.positive else W
            W = W / 2 + W.T / 2 if self.symmetric and self.square else W
        dtype = self.dtype if self.form in ("C", "F", "reversed", "every second", "read-only", "list") else "float64"
        return FORMS[self.form](to_dtype(W, dtype))


def matrix_cases() -> st.SearchStrategy[MatrixCase]:
    usually = st.sampled_from((True, True, True, False))
    forms = tuple(name for name in FORMS if name not in FRAMES)
    return st.builds(
        MatrixCase,
        st.sampled_from(tuple(VALUES)),
        st.integers(1, 20),
        SEEDS,
        st.sampled_from(DTYPES),
        st.sampled_from(forms),
        usually,
        usually,
        usually,
        st.booleans(),
    )


def affinity_graphs(case: MatrixCase) -> str | None:
    """``AffinityGraph.from_matrix`` gives a graph that makes sense and can be saved, or an error of ours."""
    W = case.build()
    outcome = watch(lambda: AffinityGraph.from_matrix(W, signed=case.signed), W)
    if outcome.error is not None:
        return outcome.error.code
    graph = outcome.value
    check_graph(graph, case.n, signed=case.signed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.safetensors"
        returns(lambda: graph.save(path))
        again = returns(lambda: AffinityGraph.load(path))
    require((to_scipy(again.weights) != to_scipy(graph.weights)).nnz == 0, "another graph after loading")
    return None


# ------------------------------------------------------------------------------------------------------------- metrics


SCORES: dict[str, tuple[Callable[..., float], float, bool]] = {  # name: function, lowest value, whether symmetric
    "normalized_mutual_information": (metrics.normalized_mutual_information, 0.0, True),
    "rand_index": (metrics.rand_index, 0.0, True),
    "adjusted_rand_index": (metrics.adjusted_rand_index, -1.0, True),
    "balanced_rand_index": (metrics.balanced_rand_index, 0.0, False),
    "purity": (metrics.purity, 0.0, False),
    "clustering_accuracy": (metrics.clustering_accuracy, 0.0, True),
}


@dataclass(frozen=True)
class ScoreCase:
    """A score and two labelings."""

    score: str
    first: Labels
    second: Labels


@st.composite
def score_cases(draw) -> ScoreCase:
    first = draw(labels())
    second = Labels(draw(st.sampled_from(tuple(LABELS))), first.n, draw(SEEDS))
    return ScoreCase(draw(st.sampled_from(tuple(SCORES))), first, second)


def scores(case: ScoreCase) -> str | None:
    """A score lies in its range, is one for equal labelings, and symmetric where it should be."""
    function, lowest, symmetric = SCORES[case.score]
    first, second = case.first.build(), case.second.build()
    outcome = watch(lambda: function(first, second), first, second)
    if outcome.error is not None:
        return outcome.error.code
    require(lowest <= outcome.value <= 1 + 1e-9, f"{case.score} out of range", outcome.value)
    same = returns(lambda: function(first, first), first)
    require(abs(same - 1) < 1e-9, f"{case.score} of equal labelings is not one", same)
    if symmetric:
        other = returns(lambda: function(second, first), first, second)
        require(abs(other - outcome.value) < 1e-9, f"{case.score} is not symmetric", (outcome.value, other))
    return None


# --------------------------------------------------------------------------------------------------------------- pairs


@dataclass(frozen=True)
class PairsCase:
    """Pairs of rows as lists, and the kind of container they are given in."""

    must_link: tuple[tuple[int, int], ...]
    cannot_link: tuple[tuple[int, int], ...]
    n_samples: int
    container: str = "list"


CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "list": list,
    "array": lambda pairs: np.array(pairs, dtype=np.int64).reshape(-1, 2),
    "uint8": lambda pairs: np.array(pairs, dtype=np.int64).reshape(-1, 2).astype(np.uint8),
    "floats": lambda pairs: np.array(pairs, dtype=np.float64).reshape(-1, 2),
    "objects": lambda pairs: np.array(pairs, dtype=object).reshape(-1, 2),
    "strings": lambda pairs: np.array(pairs, dtype=str).reshape(-1, 2),
    "flat": lambda pairs: [number for pair in pairs for number in pair],
    "triples": lambda pairs: [(*pair, 0) for pair in pairs],
    "a single number": lambda pairs: 3,
    "None": lambda pairs: None,
}


@st.composite
def pairs_cases(draw) -> PairsCase:
    n = draw(st.integers(0, 12))
    lowest, highest = (0, max(n - 1, 0)) if draw(st.integers(0, 3)) else (-2, n + 1)
    pair = st.tuples(st.integers(lowest, highest), st.integers(lowest, highest))
    links = st.lists(pair, max_size=5).map(tuple)
    container = "list" if draw(st.booleans()) else draw(st.sampled_from(tuple(CONTAINERS)))
    return PairsCase(draw(links), draw(links), n, container)


def pairs(case: PairsCase) -> str | None:
    """Pairs imply no more than they say when closed twice, survive a file, and are violated by labels or not."""
    make = CONTAINERS[case.container]
    must, cannot = make(case.must_link), make(case.cannot_link)
    outcome = watch(lambda: PairwiseConstraints(must, cannot, case.n_samples), must, cannot)
    if outcome.error is not None:
        return outcome.error.code
    found = outcome.value
    closure = returns(found.closure)
    require(returns(closure.closure) == closure, "the closure of a closure is another one")
    require(closure.n_pairs >= found.n_pairs, "the closure has fewer pairs")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pairs.csv"
        returns(lambda: found.to_csv(path))
        again = returns(lambda: PairwiseConstraints.from_csv(path, case.n_samples))
    require(again == found, "other pairs after reading the file")
    labels = returns(lambda: found.groups)
    violated = returns(lambda: found.violations(labels))
    require(len(violated.must_link) == 0, "groups violate the must-links")
    return None


@dataclass(frozen=True)
class PairsOfLabels:
    """Labels from which pairs are made."""

    labels: Labels
    rate: float | None
    max_pairs: int | None


def pairs_of_labels_cases() -> st.SearchStrategy[PairsOfLabels]:
    return st.builds(PairsOfLabels, labels(), st.sampled_from((None, 0.1, 1.0)), st.sampled_from((None, 1, 10)))


def pairs_of_labels(case: PairsOfLabels) -> str | None:
    """Pairs made from labels are not violated by them."""
    y = case.labels.build()
    outcome = watch(
        lambda: PairwiseConstraints.from_labels(y, rate=case.rate, max_pairs=case.max_pairs, random_state=0), y
    )
    if outcome.error is not None:
        return outcome.error.code
    require(returns(lambda: outcome.value.violations(y), y).n_pairs == 0, "labels violate their own pairs")
    return None


@dataclass(frozen=True)
class FunctionLaw:
    """A law of a function: its sentence, check and cases."""

    sentence: str
    check: Callable[[Any], str | None]
    cases: Callable[[], st.SearchStrategy[Any]]


FUNCTION_LAWS: dict[str, FunctionLaw] = {
    "cluster": FunctionLaw("`cluster` gives a sound result or an error of the library", cluster, calls_of_cluster),
    "choose_n_clusters": FunctionLaw("`choose_n_clusters` chooses a candidate", choose_n_clusters, calls_of_choose),
    "graph recipes": FunctionLaw("graphs are symmetric, finite and without loops", recipes, recipe_cases),
    "AffinityGraph": FunctionLaw("a matrix gives a sound graph, also from its file", affinity_graphs, matrix_cases),
    "metrics": FunctionLaw("scores are in range, symmetric, and one for equal labelings", scores, score_cases),
    "PairwiseConstraints": FunctionLaw("pairs are closed once, and the same from their file", pairs, pairs_cases),
    "pairs from labels": FunctionLaw(
        "labels agree with the pairs made from them", pairs_of_labels, pairs_of_labels_cases
    ),
}
