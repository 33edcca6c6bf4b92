"""What sets clusters apart, and why a row is in its cluster, as records that can be printed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..table.profiles import Contrast, Profiles, Terms

MIN_EVIDENCE = 0.05  # of columns that are listed
MAX_COLUMNS, MAX_NEIGHBORS = 5, 5  # listed in the text


class Borderline(NamedTuple):
    """A row of low confidence.

    Attributes
    ----------
    row : int
    confidence : float
        Its membership in its cluster.
    other : int
        The other cluster of the largest membership.
    share : float
        Its membership in that one.
    """

    row: int
    confidence: float
    other: int
    share: float


class Neighbor(NamedTuple):
    """A neighbour of a row in the graph.

    Attributes
    ----------
    row : int
    share : float
        Its share of the weights of all neighbours.
    label : int
        Its cluster.
    """

    row: int
    share: float
    label: int


@dataclass(frozen=True)
class ClusterExplanation:
    """What sets a cluster apart.

    Attributes
    ----------
    label, size : int
        The number of the cluster, and that of its rows.
    name : str or None
        Its leading terms, or the columns in which it differs most; None if there is no such column.
    confidence : float
        The mean of the largest memberships of its rows, NaN if there are none.
    contrasts : list of Contrast
        The columns in which it differs most from all rows, one for each column.
    terms : list of (str, float)
        The leading terms of its texts.
    typical : list of int
        The rows of the highest confidence and, among equals, those closest to the mean.
    borderline : list of Borderline
        The rows of the lowest confidence.

    Examples
    --------
    >>> import fiedler
    >>> X = [[0.0, 1.0], [0.1, 2.0], [0.2, 1.5], [5.0, 1.2], [5.1, 1.8], [5.2, 1.4]]
    >>> model = fiedler.cluster(X, n_clusters=2, random_state=0).model
    >>> first = model.explain().clusters[model.labels_[0]]
    >>> first.name, first.size
    ('low x0', 3)
    """

    label: int
    size: int
    name: str | None
    confidence: float
    contrasts: list[Contrast]
    terms: Terms
    typical: list[int]
    borderline: list[Borderline]

    def __str__(self) -> str:
        name = "" if self.name is None else f" ({self.name})"
        lines = [f"cluster {self.label}{name}: {self.size:,} rows, confidence {self.confidence:.2f}"]
        if self.terms:
            lines.append(f"  terms: {', '.join(term for term, _ in self.terms)}")
        lines += [f"  {contrast}" for contrast in self.contrasts]
        if self.typical:
            lines.append(f"  typical rows: {', '.join(map(str, self.typical))}")
        if self.borderline:
            listed = ", ".join(f"{one.row} ({one.confidence:.2f}, or cluster {one.other})" for one in self.borderline)
            lines.append(f"  borderline rows: {listed}")
        return "\n".join(lines)


@dataclass(frozen=True)
class Explanation:
    """What sets the clusters apart.

    Attributes
    ----------
    clusters : list of ClusterExplanation
    profiles : Profiles
        The means and shares of all columns in all clusters; ``pandas.DataFrame(explanation.profiles.to_dict())``.

    Examples
    --------
    >>> import fiedler
    >>> X = [[0.0, 1.0], [0.1, 2.0], [0.2, 1.5], [5.0, 1.2], [5.1, 1.8], [5.2, 1.4]]
    >>> model = fiedler.cluster(X, n_clusters=2, random_state=0).model
    >>> print(model.explain().clusters[model.labels_[-1]].contrasts[0])
    x0: 5.1 (2.6 overall, +1.0 sd)
    """

    clusters: list[ClusterExplanation]
    profiles: Profiles

    def __str__(self) -> str:
        text = "\n\n".join(map(str, self.clusters))
        unit = "\n\nsd: difference from the mean of all rows, in standard deviations of the column."
        return text + (unit if any(one.contrasts for one in self.clusters) else "")


@dataclass(frozen=True)
class RowExplanation:
    """Why a row is in its cluster.

    Attributes
    ----------
    row : int or None
        Which row of the fit it is; None for a new one.
    label : int
        Its cluster, -1 for an outlier.
    rival : int or None
        The cluster of the largest membership among the others.
    memberships : ndarray of shape (n_clusters,)
    neighbors : list of Neighbor
        Its neighbours in the graph, the largest weights first.
    walk_mass : ndarray of shape (n_clusters,)
        Where a random walk from the row is after one step: the mean of its neighbours' memberships.
    columns : list of (str, float)
        By how much each column speaks for its cluster and against the rival: the difference of the squared distances
        to their means, in variances of the column. Empty if the columns are not known.

    Examples
    --------
    >>> import fiedler
    >>> X = [[0.0, 1.0], [0.1, 2.0], [0.2, 1.5], [5.0, 1.2], [5.1, 1.8], [5.2, 1.4]]
    >>> model = fiedler.cluster(X, n_clusters=2, random_state=0).model
    >>> why = model.explain(1)
    >>> sorted(neighbor.row for neighbor in why.neighbors)[:2], why.columns[0][0]
    ([0, 2], 'x0')
    """

    row: int | None
    label: int
    rival: int | None
    memberships: np.ndarray
    neighbors: list[Neighbor]
    walk_mass: np.ndarray
    columns: list[tuple[str, float]]

    def __str__(self) -> str:
        row = "the row" if self.row is None else f"row {self.row}"
        own = self.label if self.label >= 0 else int(self.memberships.argmax())
        place = f"is in cluster {own}" if self.label >= 0 else f"is an outlier; nearest is cluster {own}"
        lines = [f"{row} {place}, membership {self.memberships[own]:.2f}"]
        if self.rival is not None:
            lines[0] += f"; next is cluster {self.rival}, {self.memberships[self.rival]:.2f}"
        if self.neighbors:
            listed = ", ".join(f"{one.row} (cluster {one.label})" for one in self.neighbors[:MAX_NEIGHBORS])
            lines.append(f"  neighbours: {listed}")
            lines.append(f"  walk: {self.walk_mass[own]:.0%} of it is in cluster {own} after one step")
        for verb, sign in (("for", 1), ("against", -1)):
            columns = [f"{name} ({value:+.1f})" for name, value in self.columns if value * sign >= MIN_EVIDENCE]
            if columns:
                lines.append(f"  columns {verb} it: {', '.join(columns[:MAX_COLUMNS])}")
        return "\n".join(lines)
