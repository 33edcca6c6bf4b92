import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.model_selection import GridSearchCV, KFold

from fiedler import KNNGraph, SpectralClustering
from fiedler.errors import DataNotFoundError, FileFormatError, InputError
from fiedler.graph.constraints import PairwiseConstraints, check_constraints
from fiedler.metrics import adjusted_rand_index
from fiedler.supervision import ConstrainedKFold, LearnedLaplacian


def brute_closure(must, cannot, n):
    """Warshall on the must-links, then every pair of rows of two groups that a cannot-link joins."""
    reach = np.eye(n, dtype=bool)
    for i, j in must:
        reach[i, j] = reach[j, i] = True
    for k, i, j in itertools.product(range(n), repeat=3):
        reach[i, j] |= reach[i, k] and reach[k, j]
    pairs = list(itertools.combinations(range(n), 2))
    apart = {
        (i, j) for i, j in pairs for a, b in cannot if (reach[i, a] and reach[j, b]) or (reach[i, b] and reach[j, a])
    }
    return {(i, j) for i, j in pairs if reach[i, j]}, apart


def as_set(pairs):
    return {tuple(pair) for pair in pairs.tolist()}


@pytest.mark.parametrize("seed", range(5))
def test_closure_equals_brute_force(seed):
    rng = np.random.RandomState(seed)
    side = rng.randint(4, size=14)
    drawn = [tuple(sorted(rng.choice(14, 2, replace=False))) for _ in range(14)]
    must = [(i, j) for i, j in drawn if side[i] == side[j]]
    cannot = [(i, j) for i, j in drawn if side[i] != side[j]]
    closed = PairwiseConstraints(must, cannot, 14).closure()
    assert (as_set(closed.must_link), as_set(closed.cannot_link)) == brute_closure(must, cannot, 14)
    assert closed.closure() == closed


def test_order_and_repetition_do_not_matter():
    once = PairwiseConstraints([(0, 1)], [(3, 2)], 4)
    again = PairwiseConstraints(np.array([(1, 0), (0, 1), (1, 0)]), [(2, 3), (3, 2)], 4)
    assert once == again
    assert once.n_pairs == 2
    assert once != PairwiseConstraints([(0, 1)], [(3, 2)], 5)


def test_conflicts_are_named_with_their_chain():
    with pytest.raises(
        ValueError, match=r"2 cannot-link\(s\) contradict .*\(0, 3\), joined by 0-1-2-3; \(4, 5\), joined by 4-5"
    ):
        PairwiseConstraints([(0, 1), (1, 2), (2, 3), (4, 5)], [(0, 3), (5, 4), (0, 4)], 6)
    chain = [(i, i + 1) for i in range(9)]
    with pytest.raises(ValueError, match="and 3 more"):
        PairwiseConstraints(chain, [(0, j) for j in range(2, 10)], 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([(0, 1)], []), "n_samples is missing"),
        (([(0, 5)], [], 5), r"pair \(0, 5\), but rows are numbered 0 to 4"),
        (([(-1, 2)], [], 5), r"pair \(-1, 2\)"),
        (([(2, 2)], [], 5), "of a row with itself"),
        (([(0, 1, 2)], [], 5), "shape"),
        (([(0.5, 1.5)], [], 5), "row numbers"),
        (([[0], [1, 2]], [], 5), "must be a list of pairs"),
        ((5, [], 5), "must be a list of pairs"),
    ],
)
def test_invalid_pairs_raise(arguments, message):
    with pytest.raises(ValueError, match=message):
        PairwiseConstraints(*arguments)


def test_invalid_pairs_are_described_by_code_and_fields():
    with pytest.raises(InputError) as caught:
        PairwiseConstraints([], [(1, 2), (0, 5)], 5)
    assert caught.value.code == "invalid_pair"
    facts = {"kind": "cannot-link", "pair": (0, 5), "reason": "rows are numbered 0 to 4"}
    assert facts.items() <= caught.value.fields.items()
    with pytest.raises(InputError) as caught:
        PairwiseConstraints([(2, 2), (0, 1), (3, 3)], [], 5)
    assert caught.value.code == "self_pair"
    assert {"kind": "must-link", "n_pairs": 2}.items() <= caught.value.fields.items()


def test_labels_give_all_pairs_of_labelled_rows():
    pairs = PairwiseConstraints.from_labels([0, 0, 1, -1, 1])
    assert as_set(pairs.must_link) == {(0, 1), (2, 4)}
    assert as_set(pairs.cannot_link) == {(0, 2), (0, 4), (1, 2), (1, 4)}
    assert PairwiseConstraints.from_labels(["a", "a", "b", "-1", "b"]) == pairs
    assert PairwiseConstraints.from_labels([-1, -1, 3]).n_pairs == 0
    assert PairwiseConstraints.from_labels([-1, -1], rate=0.5).n_pairs == 0
    hard = PairwiseConstraints.from_labels([0, 0, 1], strength=2.0, hard=True)
    assert (hard.strength, hard.hard, hard.closure().strength) == (2.0, True, 2.0)


def test_labels_are_sampled_class_by_class_and_pairs_capped():
    y = np.repeat([0, 1, 2], [100, 30, 1])
    pairs = PairwiseConstraints.from_labels(y, rate=0.05, random_state=0)
    assert_array_equal(np.bincount(y[pairs.rows]), [5, 2, 1])  # ceil of 5, 1.5 and 0.05
    capped = PairwiseConstraints.from_labels(y, max_pairs=40, random_state=0)
    assert (len(capped.must_link), len(capped.cannot_link)) == (40, 40)
    assert (y[capped.must_link[:, 0]] == y[capped.must_link[:, 1]]).all()
    assert (y[capped.cannot_link[:, 0]] != y[capped.cannot_link[:, 1]]).all()
    assert capped == PairwiseConstraints.from_labels(y, max_pairs=40, random_state=0)


def test_too_many_labels_need_max_pairs(monkeypatch):
    monkeypatch.setattr("fiedler.graph.constraints.MAX_ENUMERATED_PAIRS", 100)
    y = np.arange(60) % 2
    with pytest.raises(ValueError, match="1,770 pairs; set max_pairs"):
        PairwiseConstraints.from_labels(y)
    assert PairwiseConstraints.from_labels(y, max_pairs=20, random_state=0).n_pairs == 40
    with pytest.raises(InputError, match="imply") as caught:
        PairwiseConstraints([(i, i + 1) for i in range(59)], [], 60).closure()
    assert caught.value.code == "too_many_pairs"


def test_pairs_survive_a_file(tmp_path):
    pairs = PairwiseConstraints([(0, 1), (4, 2)], [(1, 3)], 6)
    pairs.to_csv(tmp_path / "pairs.csv")
    assert PairwiseConstraints.from_csv(tmp_path / "pairs.csv", 6) == pairs
    assert (tmp_path / "pairs.csv").read_text().splitlines()[0] == "first,second,kind"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n", "must begin with the line"),
        ("", "must begin with the line"),
        ("first,second,kind\n0,x,must-link\n", "line 2: expected two row numbers"),
        ("first,second,kind\n0,1,must-link\n0,1,maybe\n", "line 3"),
        ("first,second,kind\n0,9,must-link\n", "numbered 0 to 4"),
    ],
)
def test_unreadable_files_raise(text, message, tmp_path):
    (tmp_path / "pairs.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        PairwiseConstraints.from_csv(tmp_path / "pairs.csv", 5)


def test_unreadable_files_are_described_by_code_and_fields(tmp_path):
    path = tmp_path / "pairs.csv"
    with pytest.raises(DataNotFoundError, match="cannot read pairs") as caught:
        PairwiseConstraints.from_csv(path, 5)
    assert caught.value.code == "pairs_file_unreadable"
    assert caught.value.fields == {"file": str(path), "reason": "No such file or directory"}
    with pytest.raises(FileFormatError, match="cannot read pairs") as caught:
        PairwiseConstraints.from_csv(tmp_path, 5)
    assert caught.value.code == "pairs_file_unreadable"
    path.write_bytes("first,second,kind\n0,1,müst-link\n".encode("latin-1"))
    with pytest.raises(FileFormatError, match="not encoded in UTF-8") as caught:
        PairwiseConstraints.from_csv(path, 5)
    assert (caught.value.code, caught.value.fields) == ("pairs_file_encoding", {"file": str(path)})
    path.write_text("first,second,kind\n0,1,must-link\n0,1\n")
    with pytest.raises(FileFormatError) as caught:
        PairwiseConstraints.from_csv(path, 5)
    assert caught.value.fields["line"] == 3


def test_a_subset_keeps_implied_pairs():
    pairs = PairwiseConstraints([(0, 1), (1, 2)], [(2, 3)], 5)
    part = pairs.subset([3, 2, 0])
    assert as_set(part.must_link) == {(1, 2)}
    assert as_set(part.cannot_link) == {(0, 1), (0, 2)}
    with pytest.raises(ValueError, match="different numbers"):
        pairs.subset([0, 0])
    with pytest.raises(ValueError, match="list of row numbers"):
        pairs.subset([0.7, 1.2])


def test_violations_keep_their_kind():
    pairs = PairwiseConstraints([(0, 1), (2, 3)], [(0, 2), (1, 3)], 4)
    broken = pairs.violations([0, 0, 0, 1])
    assert broken == PairwiseConstraints([(2, 3)], [(0, 2)], 4)


def test_a_sample_has_the_requested_size():
    pairs = PairwiseConstraints.from_labels(np.arange(20) % 3)
    assert pairs.sample(15, random_state=0).n_pairs == 15
    assert pairs.sample(15, random_state=0) == pairs.sample(15, random_state=0)


def test_slicing_handles_equals_subset():
    """Slicing the array of handles equals ``subset``."""
    pairs = PairwiseConstraints([(0, 1), (1, 2)], [(2, 3)], 5)
    rows = np.array([4, 2, 3])
    assert check_constraints(pairs.per_row()[rows], np.zeros((3, 1))) == pairs.subset(rows)
    assert check_constraints(pairs.per_row(), np.zeros((5, 1))) == pairs.closure()
    assert check_constraints(None, None) is None


def test_constraints_of_other_rows_or_types_raise():
    pairs = PairwiseConstraints([(0, 1)], [], 5)
    with pytest.raises(ValueError, match="refer to 5 rows, but X has 4"):
        check_constraints(pairs, np.zeros((4, 1)))
    with pytest.raises(TypeError, match="must be PairwiseConstraints"):
        check_constraints(np.array([(0, 1)]), np.zeros((5, 1)))


def test_folds_split_no_group(rng):
    y = np.arange(60) % 3
    pairs = PairwiseConstraints.from_labels(np.where(np.arange(60) < 24, y, -1))
    folds = list(ConstrainedKFold(pairs, 3, random_state=0).split_pairs(np.zeros((60, 2))))
    assert_array_equal(np.sort(np.concatenate([test for _, test, _, _ in folds])), np.arange(60))
    for train, test, known, hidden in folds:
        assert len(np.intersect1d(pairs.groups[train], pairs.groups[test])) == 0
        assert (known, hidden) == (pairs.subset(train), pairs.subset(test))
    with pytest.raises(TypeError, match="without constraints use"):
        ConstrainedKFold(None).split(np.zeros((4, 1)))


@pytest.mark.parametrize("folds", [KFold(3, shuffle=True, random_state=0), "constrained"])
def test_a_grid_search_over_a_constrained_estimator(folds, rng):
    X = np.repeat(6 * np.eye(3), 30, axis=0) + rng.normal(size=(90, 3))
    y = np.repeat([0, 1, 2], 30)
    pairs = PairwiseConstraints.from_labels(y, rate=0.1, random_state=0)
    cv = ConstrainedKFold(pairs, 3, random_state=0) if folds == "constrained" else folds
    search = GridSearchCV(
        SpectralClustering(3, LearnedLaplacian(penalty=0.1), random_state=0),
        {"n_clusters": [2, 3], "graph__metric": ["scale", "diagonal"]},
        scoring=lambda model, X, y: adjusted_rand_index(y, model.predict(X)),
        cv=cv,
        error_score="raise",
    )
    search.fit(X, y, constraints=pairs.per_row())
    assert search.best_params_["n_clusters"] == 3


def test_constraints_become_edges_if_the_recipe_does_not_learn(rng):
    """Constraints of a model whose recipe does not use them are added to the graph."""
    X = rng.normal(size=(40, 2))
    pairs = PairwiseConstraints([(0, 1)], [(2, 3)], 40)
    graph = SpectralClustering(2, KNNGraph(5), random_state=0).fit(X, constraints=pairs).graph_
    assert graph.weights[0, 1] > 0 > graph.weights[2, 3]
