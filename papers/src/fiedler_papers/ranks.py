"""The rank of the documents of every draw [lpi, section 5.4]: ``python -m fiedler_papers.ranks papers/lpi/ranks.csv``.

If the documents of a draw are linearly independent, LPI is the Laplacian eigenmap (Theorem 2). The paper counts 430 of
450 such draws of TDT2 and 312 of 450 of Reuters. Draws that the file already has are not computed again.
"""

from __future__ import annotations

import csv
import itertools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from .protocol import Cell, load_protocol
from .rows import load_rows

PAPER, TABLES, METHOD = "lpi", ("3", "4"), "lpi"
ROUNDED_TO = 9  # digits to which equal rows of unit length agree
ZERO_SHARE = 1e-12  # of the largest eigenvalue of the Gram matrix, below which one is zero up to rounding


class DrawRank(NamedTuple):
    """The size of the matrix of documents and terms of a draw, the number of different documents, and the rank."""

    data: str
    k: int
    draw: int
    n_documents: int
    n_terms: int
    n_different: int
    rank: int

    @property
    def is_full(self) -> bool:
        """Whether the documents are linearly independent."""
        return self.rank == self.n_documents

    @property
    def is_full_without_copies(self) -> bool:
        """Whether the different documents are linearly independent."""
        return self.rank == self.n_different


def count_different(X: sp.csr_array) -> int:
    """Count the different rows of a sparse matrix, equal up to rounding.

    Examples
    --------
    >>> count_different(sp.csr_array([[1.0, 0], [0, 1], [1, 0]]))
    2
    """
    rows = sp.csr_array(X, copy=True)
    rows.sort_indices()
    rounded = np.round(rows.data, ROUNDED_TO)
    ends = rows.indptr
    return len({(rows.indices[a:b].tobytes(), rounded[a:b].tobytes()) for a, b in itertools.pairwise(ends)})


def document_rank(X: sp.csr_array) -> int:
    """Return the rank of a sparse matrix.

    A document with a term that no other document has is independent of the others: it counts one, and is left out. This
    is repeated for the documents that remain; the eigenvalues of the Gram matrix of the last ones are computed.

    Examples
    --------
    >>> document_rank(sp.csr_array([[1.0, 1, 0], [0, 1, 1], [0, 2, 2]]))
    2
    """
    kept = np.arange(X.shape[0])
    while len(kept):
        rest = sp.csc_array(X[kept])
        rest.eliminate_zeros()
        lonely = np.flatnonzero(np.diff(rest.indptr) == 1)
        independent = np.unique(rest.indices[rest.indptr[lonely]])
        if len(independent) == 0:
            break
        kept = np.delete(kept, independent)
    if len(kept) == 0:
        return int(X.shape[0])
    rows = X[kept]
    values = np.linalg.eigvalsh((rows @ rows.T).toarray())
    return int(X.shape[0] - len(kept) + np.sum(values > ZERO_SHARE * values[-1]))


def cells() -> Iterator[Cell]:
    """Yield one cell per draw of the two corpora."""
    protocol = load_protocol(PAPER)
    for table in TABLES:
        yield from protocol.cells(table=table, only=[METHOD])


def read_ranks(path: Path) -> list[DrawRank]:
    """Read the ranks of a file; empty without a file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [DrawRank(row.pop("data"), *map(int, row.values())) for row in csv.DictReader(file)]


def write_ranks(path: Path, cells: Iterable[Cell]) -> None:
    """Append the ranks of all draws that the file does not have, one line at a time."""
    known = {rank[:3] for rank in read_ranks(path)}
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(DrawRank._fields)
        for cell in cells:
            place = (cell.data, cell.at["k"], cell.draw)
            if place not in known:
                X = load_rows(cell).X
                writer.writerow([*place, *X.shape, count_different(X), document_rank(X)])
                file.flush()


if __name__ == "__main__":
    write_ranks(Path(sys.argv[1]), cells())
