"""Nonnegative updates: a matrix stays nonnegative because every entry is multiplied by a nonnegative ratio."""

from __future__ import annotations

from .backend import Array, namespace


def positive_part(A: Array) -> Array:
    """max(a, 0), entry by entry."""
    return namespace(A).where(A > 0, A, 0)


def multiplicative_update(
    Q: Array, above: Array, below: Array, *, guard: float, floor: float = 0.0, power: float = 0.5
) -> Array:
    """Q ∘ (above / (below + guard))^power, no entry under ``floor``.

    Parameters
    ----------
    Q, above, below : array of shape (n, k)
        Nonnegative.
    guard : float
        In the unit of ``below``, against division by zero.
    floor : float, default=0
        Zero is absorbing: an entry that reaches it never comes back.
    power : float, default=0.5
        ½ for quadratic objectives with orthogonal columns, 1 for the factorisations of Lee and Seung.
    """
    xp = namespace(Q)
    ratio = above / (below + guard)
    moved = Q * (xp.sqrt(ratio) if power == 0.5 else ratio**power)
    return xp.where(moved > floor, moved, floor)
