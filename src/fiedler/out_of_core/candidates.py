"""Candidate partitions of the groups of nodes of all blocks: their scores, and their place in files."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import count

import numpy as np

from ..clustering.candidates import RIDGE, Candidate, PartitionScorer
from ..core.backend import Array
from ..mixture.statistics import Statistics, group_statistics
from .cells import Layout
from .graph import CoarseGraphs, read_groups
from .rows import RowBlocks
from .statistics import read_statistics, statistics_arrays, sum_statistics
from .workspace import Workspace


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockScorer(PartitionScorer):
    """Scores partitions of groups of nodes, with sums over the rows of all blocks.

    Attributes
    ----------
    coarse : CoarseGraphs
    estimates_mixtures : bool
        Whether mixtures can be estimated from the rows.
    """

    coarse: CoarseGraphs
    estimates_mixtures: bool

    @property
    def rows(self) -> RowBlocks:
        """The rows in the blocks of the input."""
        return self.coarse.graph.cells.rows

    @property
    def has_rows(self) -> bool:
        """Whether mixtures can be estimated."""
        return self.estimates_mixtures

    @property
    def n_features(self) -> int:
        """The number of columns of the rows."""
        return self.rows.n_features

    @cached_property
    def origin(self) -> Array:
        """The mean of the rows, representable in their precision."""
        return self.rows.moments[0].astype(self.rows.dtype)

    @cached_property
    def ridge(self) -> float:
        """The ridge on covariances, in the unit of X²."""
        return RIDGE * float(self.rows.moments[1].mean())

    def icl(self, labels: np.ndarray) -> float:
        """Return NaN: only partitions that compete by their likelihood are worth a pass over all rows."""
        return math.nan

    def likelihood(self, labels: np.ndarray) -> float:
        """Return the integrated completed likelihood of a partition per row."""
        return super().icl(labels)

    @cached_property
    def _numbers(self) -> Iterator[int]:
        """The numbers of the sums, which are the same if a fit goes on."""
        return count()

    def group_statistics(self, groups: np.ndarray) -> Statistics:
        """Return the sums of the rows of all nodes of each group."""
        run, cells, step = self.rows.run, self.coarse.graph.cells, f"sums/{next(self._numbers):02d}"
        run.once(f"{step}-groups", lambda: {"groups": groups})

        def total() -> dict[str, Array]:
            run.map(
                f"{step}-blocks",
                sum_block,
                cells.n_blocks,
                layout=cells.layout,
                groups=f"{step}-groups",
                origin=self.origin,
                supernodes=self.coarse.groups,
                starts=self.coarse.starts,
            )
            return statistics_arrays(sum_statistics(run, f"{step}-blocks", range(cells.n_blocks)))

        run.once(step, total)
        run.drop(f"{step}-blocks")
        return read_statistics(run.workspace, step)


def sum_block(
    workspace: Workspace,
    block: int,
    *,
    layout: Layout,
    groups: str,
    origin: np.ndarray,
    supernodes: str,
    starts: np.ndarray,
) -> dict[str, Array]:
    """Sum the rows of a block by the groups of their supernodes."""
    of_supernodes = workspace.read_one(groups, 0, "groups")
    own = of_supernodes[read_groups(workspace, block, supernodes, starts)]
    rows = layout.read_rows(workspace, block)
    return statistics_arrays(group_statistics(rows, own, int(of_supernodes.max()) + 1, origin=origin))


def pack_candidates(candidates: Sequence[Candidate]) -> dict[str, Array]:
    """Return candidates as arrays by name."""
    records = [{name: value for name, value in asdict(one).items() if name != "labels"} for one in candidates]
    labels = np.stack([one.labels.astype(np.int32) for one in candidates])
    return {"labels": labels, "records": np.array(json.dumps(records))}


def unpack_candidates(labels: np.ndarray, records: np.ndarray) -> list[Candidate]:
    """Return candidates from the arrays of `pack_candidates`."""
    return [Candidate(**record, labels=row.astype(np.int64)) for record, row in zip(json.loads(str(records)), labels)]
