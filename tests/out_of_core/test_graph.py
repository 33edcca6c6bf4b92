"""Cells, neighbours, graphs, moves and walks in blocks, compared with those in memory."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fiedler.datasets import tanh_manifold
from fiedler.graph.affinity import AffinityGraph
from fiedler.graph.coarsen import contract
from fiedler.graph.community import modularity
from fiedler.graph.neighbors import k_nearest
from fiedler.graph.recipes import nested_graphs, self_tuned
from fiedler.graph.smoothing import resolvent
from fiedler.manifold.memberships import PartialSupervision, walk_memberships
from fiedler.out_of_core import neighbors
from fiedler.out_of_core.graph import OWN, GraphBlocks, StoredGraph, refine
from fiedler.out_of_core.partition import CellBlocks, RowBlocks, find_cells, join_cells, two_nearest_blocks
from fiedler.out_of_core.run import Run
from fiedler.out_of_core.store import Task, Workspace
from fiedler.out_of_core.walk import compute_memberships, walk

da = pytest.importorskip("dask.array")
pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def rows():
    return tanh_manifold(3000, n_clusters=5, ambient=10, random_state=0)


@pytest.fixture
def run(client, tmp_path):
    return Run(Workspace(tmp_path / "work"), client)


def build(run, X, n_blocks):
    """Return the graphs of rows in some blocks, of which one is empty."""
    sizes = [0, *(len(part) for part in np.array_split(X, n_blocks))]
    blocks = RowBlocks.store(run, da.from_array(X, chunks=(tuple(sizes), X.shape[1])))
    return GraphBlocks.build(CellBlocks.divide(blocks, X[::2], "", 0), (5, 9), "")


def assemble(graph, size):
    """Return the whole weight matrix, in the order of the rows."""
    run, layout, stored = graph.cells.run, graph.cells.layout, StoredGraph(graph.step, size)
    n = int(layout.starts[-1])
    parts = []
    for block in range(layout.n_blocks):
        rows = stored.read(Task(run.workspace, block))
        halo = [
            layout.starts[other] + stored.read(Task(run.workspace, other)).exports[place]
            for other in rows.neighbors
            for place in [stored.read(Task(run.workspace, other)).neighbors.index(block)]
        ]
        nodes = np.concatenate([layout.starts[block] + np.arange(rows.n), *halo])
        entries = sp.coo_array(rows.weights)
        shape = (rows.n, n)
        parts.append(sp.coo_array((entries.data, (entries.row, nodes[entries.col])), shape=shape))
    nodes = graph.cells.nodes_of(np.arange(n))
    return sp.csr_array(sp.vstack(parts).tocsr()[nodes][:, nodes]), nodes


def write_by_node(run, graph, step, nodes, values):
    """Write values of the rows in the blocks of the graph."""
    in_order = np.empty_like(values)
    in_order[nodes] = values
    for block in range(graph.cells.n_blocks):
        own = in_order[graph.cells.layout.starts[block] : graph.cells.layout.starts[block + 1]]
        run.workspace.write(step, block, graph.largest.read(Task(run.workspace, block)).share(own))


def test_one_block_gives_the_graphs_in_memory(rows, run):
    X, _ = rows
    X = X[:900]  # too few for two blocks

    graph = build(run, X, 1)

    _, expected = nested_graphs(self_tuned(9), X, (5, 9))
    for size, reference in zip((5, 9), expected):
        weights, _ = assemble(graph, size)
        weights.eliminate_zeros()
        assert_allclose(weights.toarray(), reference.weights.toarray(), rtol=1e-12)


def test_blocks_find_nearly_all_neighbors_and_symmetric_weights(rows, run):
    X, _ = rows

    graph = build(run, X, 6)

    exact = k_nearest(X, 9).columns.reshape(-1, 9)
    weights, nodes = assemble(graph, 9)
    found = np.concatenate([run.workspace.read_one("neighbors", block, "nodes") for block in range(6)])[nodes]
    back = np.argsort(nodes)
    recall = np.mean([len(set(back[some]) & set(true)) for some, true in zip(found, exact)]) / 9
    assert graph.cells.n_blocks == 6
    assert recall > 0.98
    assert_allclose(weights.toarray(), weights.toarray().T, rtol=1e-12)
    _, (_, reference) = nested_graphs(self_tuned(9), X, (5, 9))
    assert abs(weights - reference.weights).sum() < 0.05 * reference.weights.sum()


def test_the_graph_of_the_groups_is_the_contracted_graph(rows, run):
    X, _ = rows
    graph = build(run, X, 4)

    coarse = graph.contract(400, 0)

    weights, nodes = assemble(graph, 9)
    groups = coarse.groups_of(nodes)
    expected = contract(AffinityGraph(weights), groups)
    found = coarse.affinity(9)
    assert 300 < found.n_nodes < 800
    assert_allclose(found.weights.toarray(), expected.weights.toarray(), rtol=1e-10)
    assert_allclose(found.loops, expected.loops, rtol=1e-10)
    assert coarse.connected(9).components()[0] == 1


def test_without_groups_every_row_is_a_node(rows, run):
    X, _ = rows

    coarse = build(run, X, 3).contract(10_000, 0)

    assert not coarse.is_coarse
    assert coarse.affinity(5).n_nodes == 3000
    assert coarse.affinity(5).loops is None


def test_moves_raise_the_modularity_of_labels_of_groups(rows, run, rng):
    X, y = rows
    graph = build(run, X, 4)
    coarse = graph.contract(300, 0)
    weights, nodes = assemble(graph, 9)
    groups = coarse.groups_of(nodes)
    labels = np.zeros(coarse.groups.starts[-1], dtype=np.int64)
    labels[groups] = np.where(rng.uniform(size=3000) < 0.1, rng.randint(5, size=3000), y)

    step = refine(coarse, labels, 9, 0.5, 0)

    moved = np.concatenate([run.workspace.read_one(step, block, OWN) for block in range(4)])[nodes]
    whole = AffinityGraph(weights)
    assert modularity(whole, moved, resolution=0.5) > modularity(whole, labels[groups], resolution=0.5) + 0.02
    kept = refine(coarse, labels, 9, None, 0)
    unmoved = np.concatenate([run.workspace.read_one(kept, block, OWN) for block in range(4)])[nodes]
    assert_array_equal(unmoved, labels[groups])


def test_the_walk_is_the_resolvent(rows, run, rng):
    X, y = rows
    graph = build(run, X, 4)
    weights, nodes = assemble(graph, 9)
    P = np.eye(5)[y]
    write_by_node(run, graph, "start", nodes, P)

    step = walk(graph, "start", 0.7, "")

    found = np.concatenate([run.workspace.read_one(step, block, OWN) for block in range(4)])[nodes]
    assert_allclose(found, resolvent(P, AffinityGraph(weights), 0.7), atol=1e-5)
    assert walk(graph, "start", 0.0, "none-") == "start"
    assert run.workspace.is_dropped("walk-005")


@pytest.mark.parametrize("has_votes", [False, True])
@pytest.mark.parametrize("n_rare", [0, 1, 4])
def test_memberships_are_those_in_memory_and_no_cluster_loses_its_last_row(n_rare, has_votes, rows, run):
    """A few rows inside another cluster stay one of their own, by shorter walks, although all votes are against it."""
    X, y = rows
    graph = build(run, X, 4)
    weights, nodes = assemble(graph, 9)
    inside = np.argsort(np.linalg.norm(X - X[y == 0].mean(axis=0), axis=1))
    labels, votes, consensus = y.copy(), np.eye(6)[y], 0.4
    labels[inside[:n_rare]] = 5
    write_by_node(run, graph, "labels", nodes, labels)
    run.workspace.write("compared", 0, {"sampled": X, "votes": votes, "of_chosen": labels})

    step = compute_memberships(graph, "labels", "compared" if has_votes else None, consensus, 6)

    options = {"votes": votes, "consensus": consensus} if has_votes else {}
    nothing_known = PartialSupervision(None, None, None)
    expected = walk_memberships(labels, 6, AffinityGraph(weights), nothing_known, X, **options)
    found = np.concatenate([run.workspace.read_one(step, block, "memberships") for block in graph.cells.rows.blocks])
    assert_allclose(found, expected, atol=1e-4)
    assert_array_equal(found.argmax(axis=1), expected.argmax(axis=1))
    assert set(found.argmax(axis=1)) == set(labels)


def test_cells_are_joined_to_blocks_of_nearby_cells_of_equal_weight(rng):
    centers = rng.normal(size=(64, 3))

    blocks = join_cells(centers, np.ones(64), 5)

    assert set(np.bincount(blocks)) <= {12, 13, 14}
    spread = np.mean([centers[blocks == block].var(axis=0).sum() for block in range(5)])
    assert spread < 0.75 * centers.var(axis=0).sum()


@pytest.mark.parametrize("is_sparse", [False, True])
def test_rows_go_to_the_two_nearest_blocks(is_sparse, rng):
    X = rng.normal(size=(300, 4)) + 100 * (not is_sparse)
    cells = find_cells(X, 3, 0)
    distances = np.linalg.norm(X[:, None] - cells.centers[cells.cells][None], axis=2)
    by_block = np.stack([distances[:, cells.blocks == block].min(axis=1) for block in range(3)], axis=1)

    home, second = two_nearest_blocks(sp.csr_array(X) if is_sparse else X, cells, 3)

    assert_array_equal(np.stack([home, second], axis=1), np.argsort(by_block, axis=1)[:, :2])


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("equal", [slice(3000), slice(None, None, 2)], ids=["the first", "every second"])
def test_equal_rows_are_divided_among_blocks(is_sparse, equal, rng):
    X = rng.normal(size=(4000, 3))
    X[equal] = X[0]
    rows = sp.csr_array(X) if is_sparse else X

    home, second = two_nearest_blocks(rows, find_cells(rows, 8, 0), 8)

    sizes, guests = np.bincount(home, minlength=8), np.bincount(second, minlength=8)
    assert sizes.max() < 3 * 500  # there are 2,000 or 3,000 equal rows
    assert sizes.min() > 0
    assert guests[np.unique(home[equal])].max() < 3 * 500
    assert (home != second).all()


def test_there_are_no_more_blocks_than_different_rows():
    X = np.repeat(np.eye(3), 400, axis=0)

    cells = find_cells(X, 4, 0)

    assert set(cells.blocks) == {0, 1, 2}


def test_a_block_with_copies_has_the_distances_of_the_exact_search(monkeypatch, rng):
    monkeypatch.setattr(neighbors, "CELLS_ABOVE", 100)
    X = rng.normal(size=(3000, 6))
    is_copy = np.isin(np.arange(3000), rng.permutation(3000)[:1000])
    X[is_copy] = X[is_copy][0]

    found, lengths = neighbors._lists(X, np.arange(3000), 2000, 9, "euclidean")

    expected = k_nearest(X, 9, method="exact").distances.reshape(-1, 9)
    assert_array_equal(lengths[is_copy], 0)
    assert is_copy[found[is_copy]].all()
    assert np.mean(lengths[:2000] <= expected[:2000, -1:] + 1e-9) > 0.95  # those at home
    assert_allclose(np.linalg.norm(X[:, None] - X[found], axis=2), lengths, atol=1e-6)


def test_rows_that_are_close_together_are_divided_by_their_places(rng):
    near, far = rng.normal(size=(3000, 2)), 1e4 * rng.normal(size=(1000, 2))  # for k-means, the first are one point

    cells = find_cells(np.concatenate([near, far]), 8, 0)

    home, _ = two_nearest_blocks(near, cells, 8)
    assert np.bincount(home).max() < 2 * 500
    assert len(cells.cells) == len(cells.centers)  # none belongs to several blocks
    spread = np.mean([near[home == block].var(axis=0).sum() for block in np.unique(home)])
    assert spread < 0.5 * near.var(axis=0).sum()
