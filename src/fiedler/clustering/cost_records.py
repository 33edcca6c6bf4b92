"""The expected cost of a fit, as it is shown."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.progress import format_seconds


@dataclass(frozen=True)
class StageCost:
    """Expected cost of one stage of a fit.

    Attributes
    ----------
    name : str
    seconds, cpu_seconds : float
        Time with the threads of this machine, and on all of its cores together.
    peak_bytes : int
        Memory during the stage, including the rows.

    Examples
    --------
    >>> import fiedler
    >>> [stage.name for stage in fiedler.estimate(5000, 100, n_clusters=10).stages]
    ['neighbour graphs', 'searching communities', 'comparing views', 'memberships']
    """

    name: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int


@dataclass(frozen=True)
class FitCost:
    """Expected cost of a fit of ManifoldClustering, see :func:`fiedler.estimate`.

    Attributes
    ----------
    n_rows, n_columns, n_clusters : int
        The size of the fit; of a number of clusters that is still to be chosen, the largest.
    stages : tuple of StageCost
        The stages in the order of the fit.
    data_bytes : int
        The memory of the rows themselves.

    Examples
    --------
    >>> from fiedler.clustering import FitCost, StageCost
    >>> print(FitCost(1000, 5, 3, (StageCost("mixtures", 2.0, 4.0, 3 * 10**8),), data_bytes=40_000))
    1,000 x 5 rows, 3 clusters: about 2 s (4 s of CPU time), at most 300 MB
      stage                   seconds    CPU s   memory
      mixtures                    2.0      4.0   300 MB
    """

    n_rows: int
    n_columns: int
    n_clusters: int
    stages: tuple[StageCost, ...]
    data_bytes: int

    @property
    def seconds(self) -> float:
        """The time of the fit; right within a factor of about two."""
        return sum(stage.seconds for stage in self.stages)

    @property
    def cpu_seconds(self) -> float:
        """The time on all cores together."""
        return sum(stage.cpu_seconds for stage in self.stages)

    @property
    def peak_bytes(self) -> int:
        """The peak of the memory, an upper estimate, including the rows."""
        return max(stage.peak_bytes for stage in self.stages)

    @property
    def extra_bytes(self) -> int:
        """The peak of the memory besides the rows."""
        return self.peak_bytes - self.data_bytes

    def __str__(self) -> str:
        lines = [
            f"{self.n_rows:,} x {self.n_columns:,} rows, {self.n_clusters} clusters: about "
            f"{format_seconds(self.seconds)} ({format_seconds(self.cpu_seconds)} of CPU time), "
            f"at most {format_bytes(self.peak_bytes)}",
            f"  {'stage':<21} {'seconds':>9} {'CPU s':>8} {'memory':>8}",
        ]
        for stage in self.stages:
            times = f"{stage.seconds:>9.1f} {stage.cpu_seconds:>8.1f}"
            lines.append(f"  {stage.name:<21} {times} {format_bytes(stage.peak_bytes):>8}")
        return "\n".join(lines)


def format_bytes(n_bytes: float) -> str:
    """Format a number of bytes.

    Examples
    --------
    >>> format_bytes(340e6), format_bytes(2.36e9), format_bytes(48e9)
    ('340 MB', '2.4 GB', '48 GB')
    """
    if n_bytes < 0.95e9:
        return f"{n_bytes / 1e6:.0f} MB"
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes < 9.5e9 else f"{n_bytes / 1e9:.0f} GB"
