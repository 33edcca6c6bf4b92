"""The report of a clustering in words: why this partition was chosen, how stable it is, which rows are uncertain."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

import numpy as np

from ..core.arrays import Array, to_numpy
from ..metrics import adjusted_rand_index
from .candidates import MAX_CUT_RATIO, ROWS, Candidate

ANSWERS = "answers"  # the family of a partition that was chosen by questions
MUCH_LOWER = 0.02  # difference of the consensus, which a choice within ties and samples does not exceed
UNCERTAIN_BELOW = 0.5  # a row without a larger membership is called uncertain
CONTESTED_BELOW = 0.5  # share of the votes for the cluster of a row
DISAGREEMENT_BELOW = 0.6  # consensus below which methods and views are said to disagree
WIDTH = 88  # of the sentences, in characters
AGREEMENT_WORDS = ((0.9, "All agree"), (0.7, "Most agree"), (-1.0, "They differ"))  # by adjusted Rand index


def disagreement(consensus: float | None) -> str | None:
    """Return a sentence if methods and views do not agree on the clusters; None if they do, or were not compared."""
    if consensus is None or not consensus < DISAGREEMENT_BELOW:
        return None
    return (
        f"Methods and views of the rows do not agree on these clusters: their mean agreement is {consensus:.2f}, where "
        "1 is full agreement. Try another number of clusters, or other columns."
    )


def format_report(
    candidates: Sequence[Candidate],
    chosen: Candidate,
    no_mixture_reason: str | None,
    memberships: Array,
    n_uncertain: int,
    *,
    labels: Array,
    n_compared: int | None = None,
    row_agreement: np.ndarray | None = None,
    sample: tuple[np.ndarray, int] | None = None,
    n_added: int = 0,
) -> str:
    """Write the whole report."""
    memberships, labels = to_numpy(memberships), to_numpy(labels)
    numbers, n_rows = (np.arange(len(labels)), len(labels)) if sample is None else sample
    if memberships.shape[1] == 1:  # nothing to choose from, and no row is uncertain
        n_outliers = int((labels < 0).sum())
        return f"One cluster of all {n_rows:,} rows{f', but for {n_outliers:,} outliers' if n_outliers else ''}."
    if n_compared is None or row_agreement is None:
        sections = [
            _choice_by_scores(candidates, chosen, no_mixture_reason, n_rows - n_added),
            _candidate_table(candidates, chosen),
            _stability(candidates, chosen),
        ]
    else:
        sections = [
            _choice_by_consensus(candidates, chosen, n_rows - n_added, n_compared),
            _candidate_table(_best_of_families(candidates, chosen), chosen),
            _contested_rows(row_agreement),
        ]
    if n_added:
        sections.append(f"{n_added:,} rows were added afterwards. What follows is about all {n_rows:,} rows.")
    if len(numbers) < n_rows:
        sections.append(f"What follows is about a random sample of {len(numbers):,} rows.")
    uncertain = _uncertain_rows(memberships, n_uncertain, numbers)
    return "\n\n".join([*sections, _cluster_table(memberships, labels), uncertain])


def _head(chosen: Candidate, n_rows: int, n_candidates: int) -> str:
    detail = f" ({chosen.detail})" if chosen.detail else ""
    place = chosen.view if chosen.view != ROWS else chosen.graph
    return (
        f"{chosen.n_clusters} clusters of {n_rows:,} rows: {chosen.family}{detail} on {place}, chosen from "
        f"{n_candidates} partitions."
    )


def _choice_by_consensus(candidates: Sequence[Candidate], chosen: Candidate, n_rows: int, n_compared: int) -> str:
    highest = max(one.consensus for one in candidates if not np.isnan(one.consensus))
    most = "most" if chosen.consensus >= highest - MUCH_LOWER else f"well (another partition has {highest:.2f})"
    reason = (
        f"Other methods and views agree with it {most}: {chosen.consensus:.2f} on average, where 1 is full agreement."
    )
    if n_compared < n_rows:
        reason += f" They were compared on a sample of {n_compared:,} rows."
    if not np.isnan(chosen.agreement):
        reason += f" It agrees with {chosen.agreement:.0%} of the given labels and pairs."
    text = fill(f"{_head(chosen, n_rows, len(candidates))} {reason}", WIDTH)
    caution = disagreement(chosen.consensus)
    return text if caution is None else f"{fill(caution, WIDTH)}\n\n{text}"


def _choice_by_scores(
    candidates: Sequence[Candidate], chosen: Candidate, no_mixture_reason: str | None, n_rows: int
) -> str:
    if chosen.family == ANSWERS:
        what = f"{chosen.n_clusters} clusters of {n_rows:,} rows, chosen by answers to questions about pairs of rows."
        return fill(
            f"{what} Of coarse and fine partitions, this one is expected to be closest to what is meant.", WIDTH
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
        reason += ", and no mixture with a similar cut has a higher ICL." if no_mixture_reason is None else "."
        if no_mixture_reason is not None:
            reason += f" Mixtures were not tried: {no_mixture_reason}."
    if not np.isnan(chosen.agreement):
        reason += f" It agrees with {chosen.agreement:.0%} of the given labels and pairs."
    return fill(f"{_head(chosen, n_rows, len(candidates))} {reason}", WIDTH)


def _best_of_families(candidates: Sequence[Candidate], chosen: Candidate) -> list[Candidate]:
    """Return the partition of the highest consensus of every method in every view; the chosen one for its own."""
    best = {(chosen.family, chosen.view): chosen}
    for one in sorted(candidates, key=lambda one: -np.nan_to_num(one.consensus, nan=-1.0)):
        if not np.isnan(one.consensus):
            best.setdefault((one.family, one.view), one)
    return list(best.values())


def _candidate_table(candidates: Sequence[Candidate], chosen: Candidate) -> str:
    """List the candidates by consensus, or by cut where there is none; searches with the same result share a line."""
    lines = [f"{'partition':39s} {'view':17s}    K  consensus     cut  modularity"]
    listed = set()
    by_score = lambda one: (-np.nan_to_num(one.consensus, nan=-1.0), round(one.cut, 6), one is not chosen)  # noqa: E731
    for candidate in sorted(candidates, key=by_score):
        key = (candidate.family, candidate.view, candidate.graph, round(candidate.cut, 6))
        if key in listed:
            continue
        listed.add(key)
        consensus = "-" if np.isnan(candidate.consensus) else f"{candidate.consensus:.2f}"
        scores = f"{candidate.n_clusters:4d} {consensus:>10s} {candidate.cut:7.4f} {candidate.modularity:11.4f}"
        name = f"{candidate.family}, {candidate.detail}" if candidate.detail else candidate.family
        place = candidate.view if candidate.view != ROWS else candidate.graph
        lines.append(f"{name:39s} {place:17s} {scores}{'  <' if candidate is chosen else ''}")
    return "\n".join(lines)


def _contested_rows(row_agreement: np.ndarray) -> str:
    count = int((row_agreement < CONTESTED_BELOW).sum())
    share = f"{count:,} rows ({count / len(row_agreement):.1%})"
    return fill(f"Contested: on {share}, less than half of the methods and views agree.", WIDTH)


def _stability(candidates: Sequence[Candidate], chosen: Candidate) -> str:
    others = [(adjusted_rand_index(chosen.labels, one.labels), one) for one in candidates if one is not chosen]
    if not others:
        return "There is no other partition to compare it with."
    rivals = [pair for pair in others if pair[1].family != "spectral"] or others
    agreement, other = min(rivals, key=lambda pair: pair[0])
    word = next(word for bound, word in AGREEMENT_WORDS if agreement >= bound)
    text = (
        f"{word}: the partition that differs most, {other.family} ({other.detail}) on {other.graph}, has an "
        f"adjusted Rand index of {agreement:.2f} with the chosen one."
    )
    return fill(text, WIDTH)


def _cluster_table(memberships: np.ndarray, labels: np.ndarray) -> str:
    n_clusters, n_outliers = memberships.shape[1], int((labels < 0).sum())
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
    if n_outliers:
        lines.append(f"outliers {n_outliers:7d}")
    return "\n".join(lines)


def _uncertain_rows(memberships: np.ndarray, n_uncertain: int, numbers: np.ndarray) -> str:
    confidence = memberships.max(axis=1)
    count = int((confidence <= UNCERTAIN_BELOW).sum())
    summary = f"Uncertain: {count:,} rows ({count / len(confidence):.1%}) have no membership above {UNCERTAIN_BELOW:g}."
    margins = np.partition(memberships, -2, axis=1)[:, -2:] @ [-1.0, 1.0]
    rows = np.argsort(margins, kind="stable")[:n_uncertain]
    best_two = np.argsort(-memberships[rows], axis=1, kind="stable")[:, :2]
    listed = ", ".join(f"{row} ({first} or {second})" for row, (first, second) in zip(numbers[rows], best_two))
    return fill(f"{summary} Smallest margins: rows {listed}.", WIDTH)
