"""A clustering told in words: why this partition, how stable it is, which rows are in doubt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.backend import to_numpy
from ..metrics import adjusted_rand_index
from .candidates import MAX_CUT_RATIO, Candidate

UNCERTAIN_BELOW = 0.5  # a membership at most so large leaves a row in doubt


def format_report(
    tried: Sequence[Candidate], chosen: Candidate, without: str | None, memberships: Any, n_doubtful: int
) -> str:
    """The whole report; ``without`` is what stood against densities."""
    memberships = to_numpy(memberships)
    parts = [_why(tried, chosen, without), _table(tried, chosen), _stability(tried, chosen)]
    return "\n\n".join([*parts, _clusters(memberships), _doubtful(memberships, n_doubtful)])


def _why(tried: Sequence[Candidate], chosen: Candidate, without: str | None) -> str:
    lead = f"{chosen.n_clusters} clusters of {len(chosen.labels):,} rows: {chosen.family} ({chosen.detail}) on "
    lead += f"{chosen.graph}, of {len(tried)} partitions that were tried."
    if chosen.family == "LapGMM":
        why = f"It cuts the graphs at most {MAX_CUT_RATIO:g} times as much as the best communities, and explains rows best."
    elif without is None:
        why = "Of all communities it cuts the graphs least, and no mixture that respects them explains the rows better."
    else:
        why = f"Of all communities it cuts the graphs least. Densities had no say: {without}."
    if not np.isnan(chosen.agreement):
        why += f" It agrees with {chosen.agreement:.0%} of what was known beforehand."
    return f"{lead}\n{why}"


def _table(tried: Sequence[Candidate], chosen: Candidate) -> str:
    """The candidates by rising cut; searches that found the same are one line."""
    rows = [f"{'partition':39s} {'graph':14s}    K     cut  modularity         ICL"]
    shown = set()
    for one in sorted(tried, key=lambda candidate: (round(candidate.cut, 6), candidate is not chosen)):
        same = (one.family, one.graph, round(one.cut, 6))
        if same in shown:
            continue
        shown.add(same)
        likely = "-" if np.isnan(one.icl) else f"{one.icl:.4g}"
        figures = f"{one.n_clusters:4d} {one.cut:7.4f} {one.modularity:11.4f} {likely:>11s}"
        rows.append(f"{f'{one.family}, {one.detail}':39s} {one.graph:14s} {figures}{'  <' if one is chosen else ''}")
    return "\n".join(rows)


def _stability(tried: Sequence[Candidate], chosen: Candidate) -> str:
    others = [(adjusted_rand_index(chosen.labels, one.labels), one) for one in tried if one is not chosen]
    if not others:
        return "There is nothing to compare it with."
    rivals = [(agree, one) for agree, one in others if one.family != "spectral"] or others
    agree, least = min(rivals, key=lambda pair: pair[0])
    words = {0.9: "All agree", 0.7: "Most agree", 0.0: "They differ"}
    word = next(word for bound, word in words.items() if agree >= bound or bound == 0)
    return (
        f"{word}: the partition that differs most, {least.family} ({least.detail}) on {least.graph}, agrees to an "
        f"adjusted Rand index of {agree:.2f}."
    )


def _clusters(memberships: np.ndarray) -> str:
    labels, k = memberships.argmax(axis=1), memberships.shape[1]
    rows = ["cluster     rows  confidence  most like"]
    for own in range(k):
        inside = memberships[labels == own]
        if not len(inside):
            rows.append(f"{own:7d} {0:8d}")
            continue
        shared = np.delete(inside.mean(axis=0), own)
        other = int(np.delete(np.arange(k), own)[shared.argmax()]) if k > 1 else own
        rows.append(f"{own:7d} {len(inside):8d} {inside[:, own].mean():11.3f} {other:10d}")
    return "\n".join(rows)


def _doubtful(memberships: np.ndarray, n_doubtful: int) -> str:
    largest = memberships.max(axis=1)
    count = int((largest <= UNCERTAIN_BELOW).sum())
    lead = f"In doubt: {count:,} rows ({count / len(largest):.1%}) have no membership above {UNCERTAIN_BELOW:g}."
    if memberships.shape[1] == 1:
        return lead
    order = np.argsort(np.partition(memberships, -2, axis=1)[:, -2:] @ [-1.0, 1.0], kind="stable")[:n_doubtful]
    pairs = np.argsort(-memberships[order], axis=1, kind="stable")[:, :2]
    shown = ", ".join(f"{row} ({one} or {other})" for row, (one, other) in zip(order, pairs))
    return f"{lead} The closest calls are rows {shown}."
