import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.linalg import eigh, subspace_angles
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import normalize

from fiedler import LPI, AffinityGraph, FullGraph, KNNGraph, LabelGraph, LaplacianEigenmaps, PairwiseConstraints
from fiedler.core.arrays import to_numpy
from fiedler.errors import InputError
from toys import uneven_weights

SOLVERS = ["svd", "regression"]


def mixed_topics(rng, size, n_terms, words):
    """Documents of one topic and, to a varying degree, of the next one, so that the graph is connected.

    Words have different weights in each document, so that no two are equally far from a third.
    """
    topics = rng.dirichlet(np.full(n_terms, 0.2), size=3)
    main = np.repeat([0, 1, 2], size)
    share = rng.uniform(0, 0.5, size=(3 * size, 1))
    counts = rng.poisson(words * ((1 - share) * topics[main] + share * topics[(main + 1) % 3]))
    return normalize(counts * rng.uniform(0.9, 1.1, size=counts.shape))


@pytest.fixture
def documents(rng):
    """Three topics of sixty documents, forty terms, unit rows."""
    return mixed_topics(rng, 60, 40, words=40)


@pytest.fixture
def wide(rng):
    """More terms than documents: full rank."""
    return mixed_topics(rng, 30, 400, words=100)


def parts(X, graph):
    """X̂ with documents as columns, L and D, as the paper writes them."""
    d = np.asarray(graph.degrees)
    centered = (X - d @ X / d.sum()).T
    return centered, graph.laplacian().toarray(), np.diag(d)


def test_the_map_solves_the_printed_problem(documents):
    """[lpi, Eq. 1]: X̃LX̃'a = λX̃DX̃'a, against LAPACK; a'X̃DX̃'a = 1; a'X̃D1 = 0 [Eq. 2]."""
    model = LPI(4, solver="svd").fit(documents)
    X, L, D = parts(documents, model.graph_)
    W = model.components_.T

    assert_allclose(model.mean_, np.diag(D) @ documents / D.sum())
    assert_allclose(X @ L @ X.T @ W, X @ D @ X.T @ W * model.eigenvalues_, atol=1e-9)
    assert_allclose(W.T @ X @ D @ X.T @ W, np.eye(4), atol=1e-9)
    assert_allclose(W.T @ X @ D @ np.ones(len(documents)), 0, atol=1e-9)
    U, s, _ = np.linalg.svd(X, full_matrices=False)
    tilde = U[:, s > 1e-5 * s[0]].T @ X
    assert_allclose(model.eigenvalues_, eigh(tilde @ L @ tilde.T, tilde @ D @ tilde.T)[0][:4], atol=1e-9)


def test_centring_removes_the_trivial_vector(wide):
    """[lpi, Theorem 1]: 1 is in the span of the terms, so a₀ with X'a₀ = 1 solves (1) with λ = 0."""
    graph = KNNGraph(15, weight="dot", connect="mst").build(wide)
    X, D, L = wide.T, np.diag(graph.degrees), graph.laplacian().toarray()
    U, s, _ = np.linalg.svd(X, full_matrices=False)
    tilde = U[:, s > 1e-5 * s[0]].T @ X
    values, vectors = eigh(tilde @ L @ tilde.T, tilde @ D @ tilde.T)
    trivial = tilde.T @ vectors[:, 0]

    assert abs(values[0]) < 1e-9
    assert_allclose(trivial / trivial[0], 1, atol=1e-6)
    model = LPI(2, graph=graph, solver="svd").fit(wide)
    assert model.eigenvalues_[0] > 1e-4
    assert_allclose(model.eigenvalues_, values[1:3], atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
def test_with_full_rank_the_embedding_is_the_eigenmap(wide, solver):
    """[lpi, Theorem 2]."""
    graph = KNNGraph(15, weight="dot").build(wide)
    eigenmaps = LaplacianEigenmaps(3, graph=graph).fit(wide)
    model = LPI(3, graph=graph, solver=solver, tol=1e-8).fit(wide)

    overlap = eigenmaps.embedding_.T @ (np.asarray(graph.degrees)[:, None] * model.embedding_)
    assert_allclose(np.abs(overlap), np.eye(3), atol=1e-6 if solver == "svd" else 1e-3)
    assert_allclose(model.eigenvalues_, eigenmaps.eigenvalues_, atol=1e-8 if solver == "svd" else 1e-4)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_normalized_rows_have_unit_length(form, documents, rng):
    longer = form(documents * rng.uniform(1, 5, size=(len(documents), 1)))

    model = LPI(3, normalize=True).fit(longer)

    assert_allclose(model.embedding_, LPI(3).fit_transform(documents), atol=1e-8)
    assert_allclose(model.transform(longer), model.embedding_, atol=1e-8)


def test_with_a_label_graph_it_is_discriminant_analysis(rng):
    """[lpi, section 4.2], for classes of unequal size."""
    y = np.repeat([0, 1, 2, 3], [8, 15, 30, 60])
    X = (rng.normal(size=(4, 6)) @ rng.normal(size=(6, 6)))[y] + rng.normal(size=(len(y), 6)) @ rng.normal(size=(6, 6))
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    model = LPI(graph=LabelGraph(), solver="svd").fit(X, y)

    assert model.components_.shape == (3, 6)
    assert np.max(subspace_angles(model.components_.T, lda.scalings_[:, :3])) < 1e-7


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_uncentred_rows_solve_the_original_problem(wide, solver, form):
    """[lpi, section 2]: XLX'a = λXDX'a with a'XDX'a = 1; the first direction is constant (Theorem 1)."""
    graph = KNNGraph(15, weight="dot", connect="mst").build(wide)
    X, L, D = wide.T, graph.laplacian().toarray(), np.diag(graph.degrees)
    U, s, _ = np.linalg.svd(X, full_matrices=False)
    tilde = U[:, s > 1e-5 * s[0]].T @ X
    expected = eigh(tilde @ L @ tilde.T, tilde @ D @ tilde.T)[0][:3]

    model = LPI(3, graph=graph, solver=solver, center=False, tol=1e-8).fit(form(wide))

    W, atol = model.components_.T, 1e-8 if solver == "svd" else 1e-4
    assert_allclose(model.eigenvalues_, expected, atol=atol)
    assert_allclose(X @ L @ X.T @ W, X @ D @ X.T @ W * model.eigenvalues_, atol=20 * atol)
    assert_allclose(W.T @ X @ D @ X.T @ W, np.eye(3), atol=1e-6)
    assert_allclose(model.embedding_[:, 0], model.embedding_[0, 0], rtol=1e-2)
    assert_allclose(model.transform(form(wide)), wide @ W, atol=1e-9)  # no mean is subtracted
    assert not model.mean_.any()


def test_uncentred_rows_have_one_dimension_more(documents):
    """Of classes: k indicators instead of k - 1 contrasts. As many rows as features: n directions instead of n - 1."""
    y = np.repeat([0, 1, 2], 60)
    assert LPI(graph=LabelGraph(), center=False).fit(documents, y).components_.shape[0] == 3
    square = documents[:20, :20] + np.eye(20)
    assert LPI(20, graph=KNNGraph(5), center=False).fit(square).components_.shape[0] == 20
    with pytest.raises(InputError, match="choose at most 19"):
        LPI(20, graph=KNNGraph(5)).fit(square)


def test_on_the_complete_graph_with_loops_it_solves_equation_3(documents):
    """[lpi, Eq. 3]: XX'XX'a = (1-λ)XDX'a, which needs S_ii = x_i'x_i; without, directions differ by degrees."""
    documents = documents[::6]
    X = documents.T
    D = np.diag(documents @ documents.sum(axis=0))
    model = LPI(3, graph=FullGraph(weight="dot", self_loops=True), center=False, solver="svd").fit(documents)

    W = model.components_.T
    assert_allclose(X @ X.T @ X @ X.T @ W, X @ D @ X.T @ W * (1 - model.eigenvalues_), atol=1e-8)
    assert_allclose(model.graph_.degrees, np.diag(D), rtol=1e-12)  # D_ii = x_i' Σ_j x_j
    without = LPI(3, graph=FullGraph(weight="dot"), center=False, solver="svd").fit(documents)
    cosines = np.sum(W * without.components_.T, axis=0) / np.prod(
        [np.linalg.norm(maps, axis=0) for maps in (W, without.components_.T)], axis=0
    )
    assert np.abs(cosines).min() < np.cos(np.deg2rad(1))


def test_on_the_complete_graph_it_is_close_to_latent_semantic_indexing(documents):
    """[lpi, section 4.1]: up to the weights D, which differ little between documents."""
    lsi = TruncatedSVD(2, algorithm="arpack").fit_transform(documents - documents.mean(axis=0))
    complete = LPI(2, graph=FullGraph(weight="dot", self_loops=True)).fit(documents)
    local = LPI(2, graph=KNNGraph(5, weight="dot")).fit(documents)

    angle = [np.max(subspace_angles(lsi, model.embedding_)) for model in (complete, local)]
    assert angle[0] < 0.2
    assert angle[0] < angle[1]


# ---------------------------------------------------------------------------------------------------------------- pairs


def some_pairs(n, rng, *, n_labelled=12, **options):
    """Pairs among some rows of three topics of equal size."""
    y = np.full(n, -1)
    rows = rng.permutation(n)[:n_labelled]
    y[rows] = rows // (n // 3)
    return PairwiseConstraints.from_labels(y, **options)


@pytest.mark.parametrize("solver", SOLVERS)
def test_pairs_solve_the_problem_with_repulsion(wide, solver, rng):
    """X̂L⁺X̂'a = λX̂(D + L⁻)X̂'a, against LAPACK; W'X̂(D + L⁻)X̂'W = I."""
    graph, pairs = KNNGraph(15, weight="dot").build(wide), some_pairs(len(wide), rng)
    model = LPI(3, graph=graph, solver=solver, tol=1e-8).fit(wide, constraints=pairs)
    S = model.graph_.weights.toarray()
    attract, repel = np.maximum(S, 0), np.maximum(-S, 0)
    d = attract.sum(axis=1)
    X = (wide - d @ wide / d.sum()).T
    L, mass = np.diag(d) - attract, np.diag(d) + np.diag(repel.sum(axis=1)) - repel
    U, s, _ = np.linalg.svd(X, full_matrices=False)
    tilde = U[:, s > 1e-5 * s[0]].T @ X

    assert (repel > 0).sum() == 2 * len(pairs.cannot_link)
    W, atol = model.components_.T, 1e-8 if solver == "svd" else 1e-3
    assert_allclose(model.eigenvalues_, eigh(tilde @ L @ tilde.T, tilde @ mass @ tilde.T)[0][:3], atol=atol)
    assert_allclose(X @ L @ X.T @ W, X @ mass @ X.T @ W * model.eigenvalues_, atol=20 * atol)
    assert_allclose(W.T @ X @ mass @ X.T @ W, np.eye(3), atol=1e-6)
    assert_allclose(model.transform(wide), model.embedding_, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_pairs_and_a_ridge_solve_the_damped_problem(documents, solver, rng):
    pairs = some_pairs(len(documents), rng)
    model = LPI(2, KNNGraph(15, weight="dot"), solver=solver, alpha=0.5, tol=1e-10).fit(documents, constraints=pairs)
    S = model.graph_.weights.toarray()
    attract, repel = np.maximum(S, 0), np.maximum(-S, 0)
    d = attract.sum(axis=1)
    X = (documents - d @ documents / d.sum()).T
    L, repulsion = np.diag(d) - attract, np.diag(repel.sum(axis=1)) - repel
    ridge = 0.5 * d @ np.sum(X * X, axis=0) / len(d) * np.eye(len(X))
    values = eigh(X @ L @ X.T + ridge, X @ (np.diag(d) + repulsion) @ X.T + ridge)[0][:2]

    assert_allclose(model.eigenvalues_, values, atol=1e-9 if solver == "svd" else 0.02)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("options", [{"strength": 0.0}, {"n_labelled": 1}], ids=["strength 0", "no pairs"])
def test_without_pairs_the_map_is_unchanged(documents, solver, options, rng):
    pairs = some_pairs(len(documents), rng, **options)
    with_pairs, plain = (LPI(2, solver=solver, random_state=0).fit(documents, constraints=c) for c in (pairs, None))
    assert_allclose(with_pairs.components_, plain.components_)


@pytest.mark.parametrize("kinds", [("must_link",), ("must_link", "cannot_link")], ids=["must", "both"])
def test_all_pairs_of_classes_are_discriminant_analysis(kinds, rng):
    """As with `LabelGraph` [lpi, section 4.2], for classes of equal size: the pairs alone are the graph."""
    y = np.repeat([0, 1, 2, 3], 15)
    X = (rng.normal(size=(4, 6)) @ rng.normal(size=(6, 6)))[y] + rng.normal(size=(len(y), 6)) @ rng.normal(size=(6, 6))
    every = PairwiseConstraints.from_labels(y)
    pairs = PairwiseConstraints(**{kind: getattr(every, kind) for kind in kinds}, n_samples=len(y))
    empty = AffinityGraph(sp.csr_array((len(y), len(y))))

    by_pairs = LPI(3, graph=empty, solver="svd").fit(X, constraints=pairs)

    by_labels = LPI(graph=LabelGraph(), solver="svd").fit(X, y)
    for one, other in zip(by_pairs.components_, by_labels.components_):
        assert abs(one @ other) / np.linalg.norm(one) / np.linalg.norm(other) > 1 - 1e-10


def test_cannot_links_move_their_rows_apart(documents, rng):
    pairs = some_pairs(len(documents), rng, strength=3.0)
    must_only = PairwiseConstraints(pairs.must_link, n_samples=len(documents), strength=3.0)

    def separation(constraints):
        Y = LPI(2, KNNGraph(15, weight="dot"), alpha=0.1).fit_transform(documents, constraints=constraints)
        Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
        lengths = lambda pairs: np.linalg.norm(Y[pairs[:, 0]] - Y[pairs[:, 1]], axis=1).mean()  # noqa: E731
        return lengths(pairs.cannot_link), lengths(pairs.must_link)

    apart, together = separation(pairs)
    assert apart > separation(must_only)[0]
    assert together < separation(None)[1]


def test_constraints_of_other_rows_are_an_error(documents):
    with pytest.raises(InputError, match="the constraints refer to 3 rows, but X has 180"):
        LPI(2).fit(documents, constraints=PairwiseConstraints([(0, 1)], n_samples=3))


@pytest.mark.parametrize("solver", SOLVERS)
def test_transform_returns_the_coordinates_of_training_documents(documents, solver):
    model = LPI(3, solver=solver, tol=1e-8).fit(documents)
    weights = np.asarray(model.graph_.degrees)
    expected = (documents - weights @ documents / weights.sum()) @ model.components_.T
    assert_allclose(model.embedding_, expected, atol=1e-12)
    assert_allclose(model.transform(documents), model.embedding_)
    assert model.converged_
    assert_allclose(model.transform(documents[7:9]), model.embedding_[7:9])


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("data", ["documents", "wide"])
def test_sparse_and_dense_rows_give_the_same_result(data, solver, request):
    X = request.getfixturevalue(data)
    dense, sparse = LPI(2, solver=solver, tol=1e-8).fit(X), LPI(2, solver=solver, tol=1e-8).fit(sp.csr_array(X))
    assert_allclose(sparse.transform(sp.csr_array(X)), dense.transform(X), atol=1e-5)
    assert_allclose(sparse.transform(X), dense.transform(X), atol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_disconnected_graph_keeps_its_other_null_vectors(rng, solver):
    """Two components and a node without weight: one direction at λ = 0, constant on each component, and only one."""
    graph = AffinityGraph.from_matrix(uneven_weights())
    X = rng.normal(size=(10, 12))
    model = LPI(3, graph=graph, solver=solver, tol=1e-8).fit(X)

    edges = np.argwhere(uneven_weights() > 0)
    steps = model.embedding_[edges[:, 0], 0] - model.embedding_[edges[:, 1], 0]
    assert_allclose(model.eigenvalues_[0], 0, atol=1e-6)
    assert model.eigenvalues_[1] > 1e-3
    assert np.abs(steps).max() < 1e-2 * np.abs(model.embedding_[:9, 0]).max()


@pytest.mark.parametrize("alpha", [0.01, 1.0])
def test_the_ridge_enters_the_printed_problem(documents, alpha):
    """X̂SX̂'a = (1-λ)(X̂DX̂' + αI)a, α in units of the mean weighted squared length."""
    model = LPI(3, solver="svd", alpha=alpha).fit(documents)
    X, L, D = parts(documents, model.graph_)
    ridged = X @ D @ X.T + alpha * np.trace(X @ D @ X.T) / len(documents) * np.eye(len(X))
    W = model.components_.T

    assert_allclose(X @ (D - L) @ X.T @ W, ridged @ W * (1 - model.eigenvalues_), atol=1e-9)
    assert_allclose(W.T @ ridged @ W, np.eye(3), atol=1e-9)


@pytest.mark.parametrize("alpha", [0.0, 0.1])
def test_regression_is_close_to_the_exact_solution_and_never_below_it(documents, alpha):
    exact, near = (LPI(2, solver=solver, alpha=alpha).fit(documents) for solver in SOLVERS)
    assert (near.eigenvalues_ >= exact.eigenvalues_ - 1e-9).all()
    assert_allclose(near.eigenvalues_, exact.eigenvalues_, atol=0.02)


def test_scale_of_weights_and_order_of_rows_do_not_matter(documents, rng):
    graph = KNNGraph(15, weight="dot").build(documents)
    first = LPI(2, graph=graph, alpha=0.1).fit(documents)
    scaled = LPI(2, graph=graph.weights * 4.0, alpha=0.1).fit(documents)
    assert_allclose(scaled.embedding_ * 2, first.embedding_, atol=1e-8)
    order = rng.permutation(len(documents))
    shuffled = LPI(2, alpha=0.1).fit(documents[order])
    assert_allclose(np.abs(shuffled.embedding_), np.abs(first.embedding_[order]), atol=1e-8)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_back_ends_agree(documents, foreign, solver, dtype):
    X = documents.astype(dtype)
    reference, model = (LPI(2, solver=solver, tol=1e-6, random_state=0).fit(rows) for rows in (X, foreign(X)))
    assert str(model.embedding_.dtype).endswith(dtype)
    assert_allclose(
        np.abs(to_numpy(model.embedding_)), np.abs(reference.embedding_), atol=1e-3 if dtype == "float32" else 1e-5
    )
    assert to_numpy(model.transform(foreign(X[:5]))).dtype == dtype


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("center", [True, False])
def test_back_ends_agree_with_pairs(documents, foreign, solver, center, rng):
    pairs = some_pairs(len(documents), rng)
    model = LPI(2, solver=solver, center=center, tol=1e-8, random_state=0)
    reference, other = (clone(model).fit(rows, constraints=pairs) for rows in (documents, foreign(documents)))
    assert_allclose(np.abs(to_numpy(other.embedding_)), np.abs(reference.embedding_), atol=1e-5)


def test_rows_far_from_the_origin_do_not_bring_the_trivial_vector_back(rng):
    Z = rng.normal(size=(60, 200))
    graph = KNNGraph(8).build(Z)
    near, far = (LPI(2, graph).fit(Z + offset).eigenvalues_ for offset in (0.0, 1e4))
    assert_allclose(far, near, rtol=1e-6)


def test_the_number_of_dimensions_is_chosen_by_the_widest_gap(documents):
    assert LPI().fit(documents).components_.shape[0] == 2


@pytest.mark.parametrize(
    ("options", "rows", "code", "words"),
    [
        (
            {"n_components": 200}, None, "too_many_components",
            "n_components=200 is too many for 180 rows of n_features=40; choose at most 40",
        ),
        (
            {"n_components": 3}, np.repeat(np.eye(3), 20, axis=0), "too_many_components",
            "the rows have 2 independent directions .*, but n_components=3; choose fewer components",
        ),
        ({"alpha": -1}, None, "invalid_parameter", "alpha must be"),
        ({"solver": "qr"}, None, "unknown_option", "solver='qr' is not known"),
        ({}, np.ones((40, 3)), "equal_rows", "all rows of X are equal"),
        ({"graph": AffinityGraph.from_matrix(np.zeros((180, 180)))}, None, "no_edges", "the graph has no edges"),
        (
            {"graph": AffinityGraph.from_matrix(-1.0 * (np.eye(180)[::-1]), signed=True)}, None, "negative_weights",
            "the graph has negative ones",
        ),
    ],
)  # fmt: skip
def test_bad_input_raises_an_error(documents, options, rows, code, words):
    with pytest.raises(InputError, match=words) as raised:
        LPI(**options).fit(documents if rows is None else rows)
    assert raised.value.code == code


def test_too_many_components_say_how_many_there_are():
    with pytest.raises(InputError) as raised:
        LPI(3).fit(np.repeat(np.eye(3), 20, axis=0))
    assert raised.value.fields == {"n_directions": 2, "n_components": 3}


def test_a_label_graph_needs_labels(documents):
    with pytest.raises(ValueError, match=r"(made|built) from labels"):
        LPI(graph=LabelGraph()).fit(documents)


@pytest.mark.parametrize("graph", [None, "precomputed"])
def test_a_graph_without_rows_raises_an_error(graph, uneven_graph):
    with pytest.raises(InputError, match="fit on data") as raised:
        LPI(1, graph).fit(uneven_graph if graph is None else uneven_graph.weights)
    assert raised.value.code == "rows_required"


def test_fit_transform_passes_the_labels_to_the_graph(documents):
    y = np.repeat([0, 1, 2], 60)
    model = LPI(graph=LabelGraph())
    embedding = model.fit_transform(documents, y)
    assert embedding.shape == (180, 2)
    assert_allclose(embedding, model.fit(documents, y).transform(documents))


def test_a_failed_fit_leaves_the_model_unchanged(documents):
    model = LPI(2).fit(documents)
    before = dict(vars(model))
    with pytest.raises(InputError):
        model.fit(np.repeat(np.eye(40)[:2], 20, axis=0))
    assert vars(model) == before
