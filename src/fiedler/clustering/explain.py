"""The report of a clustering in words: why this partition was chosen, how stable it is, which rows are uncertain."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

import numpy as np

from ..core.backend import Array, to_numpy
from ..metrics import adjusted_rand_index
from .candidates import MAX_CUT_RATIO, Candidate

UNCERTAIN_BELOW = 0.5  # a row without a larger membership is called uncertain
WIDTH = 88  # of the sentences, in characters
AGREEMENT_WORDS = ((0.9, "All agree"), (0.7, "Most agree"), (-1.0, "They differ"))  # by adjusted Rand index


def format_report(
    candidates: Sequence[Candidate],
    chosen: Candidate,
    why_no_mixture: str | None,
    memberships: Array,
    n_uncertain: int,
) -> str:
    """Write the whole report; ``why_no_mixture`` is the reason for which mixtures took no part."""
    memberships = to_numpy(memberships)
    sections = [
        _choice(candidates, chosen, why_no_mixture),
        _candidate_table(candidates, chosen),
        _stability(candidates, chosen),
        _cluster_table(memberships),
        _uncertain_rows(memberships, n_uncertain),
    ]
    return "\n\n".join(sections)


def _choice(candidates: Sequence[Candidate], chosen: Candidate, why_no_mixture: str | None) -> str:
    noun = "cluster" if chosen.n_clusters == 1 else "clusters"
    head = (
        f"{chosen.n_clusters} {noun} of {len(chosen.labels):,} rows: {chosen.family} ({chosen.detail}) on "
        f"{chosen.graph}, chosen from {len(candidates)} partitions."
    )
    if chosen.family == "LapGMM":
        reason = (
            f"Its normalised cut is at most {MAX_CUT_RATIO:g} times that of the best communities, and its integrated "
            "completed likelihood (ICL) is the highest."
        )
    else:
        lowest = min(one.cut for one in candidates if one.family == "communities")
        among = "" if chosen.cut <= lowest else " among searches that give full weight to the sizes of clusters"
        reason = f"Its normalised cut is the lowest of all communities{among}"
        reason += ", and no mixture with a similar cut has a higher ICL." if why_no_mixture is None else "."
        if why_no_mixture is not None:
            reason += f" Mixtures were not tried: {why_no_mixture}."
    if not np.isnan(chosen.agreement):
        reason += f" It agrees with {chosen.agreement:.0%} of the given labels and pairs."
    return fill(f"{head} {reason}", WIDTH)


def _candidate_table(candidates: Sequence[Candidate], chosen: Candidate) -> str:
    """List the candidates by cut; searches with the same result share a line."""
    lines = [f"{'partition':39s} {'graph':14s}    K     cut  modularity         ICL"]
    listed = set()
    for candidate in sorted(candidates, key=lambda one: (round(one.cut, 6), one is not chosen)):
        key = (candidate.family, candidate.graph, round(candidate.cut, 6))
        if key in listed:
            continue
        listed.add(key)
        icl = "-" if np.isnan(candidate.icl) else f"{candidate.icl:.4g}"
        scores = f"{candidate.n_clusters:4d} {candidate.cut:7.4f} {candidate.modularity:11.4f} {icl:>11s}"
        name = f"{candidate.family}, {candidate.detail}"
        lines.append(f"{name:39s} {candidate.graph:14s} {scores}{'  <' if candidate is chosen else ''}")
    return "\n".join(lines)


def _stability(candidates: Sequence[Candidate], chosen: Candidate) -> str:
    others = [(adjusted_rand_index(chosen.labels, one.labels), one) for one in candidates if one is not chosen]
    if not others:
        return "There is no other partition to compare it with."
    rivals = [pair for pair in others if pair[1].family != "spectral"] or others
    agreement, farthest = min(rivals, key=lambda pair: pair[0])
    word = next(word for bound, word in AGREEMENT_WORDS if agreement >= bound)
    text = (
        f"{word}: the partition that differs most, {farthest.family} ({farthest.detail}) on {farthest.graph}, has an "
        f"adjusted Rand index of {agreement:.2f} with the chosen one."
    )
    return fill(text, WIDTH)


def _cluster_table(memberships: np.ndarray) -> str:
    labels, n_clusters = memberships.argmax(axis=1), memberships.shape[1]
    lines = ["cluster     rows  confidence  nearest cluster"]
    for k in range(n_clusters):
        rows = memberships[labels == k]
        if not len(rows):
            lines.append(f"{k:7d} {0:8d}")
            continue
        shared = rows.mean(axis=0)
        confidence, shared[k] = shared[k], -1
        nearest = int(shared.argmax())
        lines.append(f"{k:7d} {len(rows):8d} {confidence:11.3f} {nearest:16d}")
    return "\n".join(lines)


def _uncertain_rows(memberships: np.ndarray, n_uncertain: int) -> str:
    confidence = memberships.max(axis=1)
    count = int((confidence <= UNCERTAIN_BELOW).sum())
    summary = f"Uncertain: {count:,} rows ({count / len(confidence):.1%}) have no membership above {UNCERTAIN_BELOW:g}."
    if memberships.shape[1] == 1:
        return summary
    margins = np.partition(memberships, -2, axis=1)[:, -2:] @ [-1.0, 1.0]
    rows = np.argsort(margins, kind="stable")[:n_uncertain]
    best_two = np.argsort(-memberships[rows], axis=1, kind="stable")[:, :2]
    listed = ", ".join(f"{row} ({first} or {second})" for row, (first, second) in zip(rows, best_two))
    return fill(f"{summary} Smallest margins: rows {listed}.", WIDTH)
