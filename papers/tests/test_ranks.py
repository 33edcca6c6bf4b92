"""The rank of the documents of every draw [lpi, section 5.4]."""

import csv

import numpy as np
import pytest
import scipy.sparse as sp

from fiedler_papers import load_protocol
from fiedler_papers.ranks import DrawRank, cells, count_different, document_rank, read_ranks, write_ranks

RANKS = load_protocol("lpi").folder / "ranks.csv"


@pytest.mark.parametrize("n_copies", [0, 7])
@pytest.mark.parametrize("density", [0.02, 0.1, 0.5])
def test_the_rank_is_that_of_the_singular_values(density, n_copies):
    rng = np.random.RandomState(0)
    X = np.where(rng.uniform(size=(60, 50)) < density, rng.randint(1, 5, size=(60, 50)), 0).astype(float)
    X[:n_copies] = X[20 : 20 + n_copies]
    X[30] = X[31] + X[32]

    assert document_rank(sp.csr_array(X)) == np.linalg.matrix_rank(X)
    assert count_different(sp.csr_array(X)) == len(np.unique(X, axis=0))


def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    """Draws that the file has are not loaded again."""
    path = tmp_path / "ranks.csv"
    first, second = list(cells())[:2]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([DrawRank._fields, [first.data, first.at["k"], first.draw, 9, 9, 9, 8]])
    loaded = []

    def load(cell):
        loaded.append(cell)
        return type("Rows", (), {"X": sp.csr_array(np.eye(3))})

    monkeypatch.setattr("fiedler_papers.ranks.load_rows", load)
    write_ranks(path, [first, second])

    assert loaded == [second]
    known, new = read_ranks(path)
    assert not known.is_full
    assert new == (second.data, second.at["k"], second.draw, 3, 3, 3, 3)
    assert new.is_full


def test_every_draw_of_both_tables_has_a_rank():
    expected = {(cell.data, cell.at["k"], cell.draw) for cell in cells()}
    assert {rank[:3] for rank in read_ranks(RANKS)} == expected
    assert len(expected) == 900
