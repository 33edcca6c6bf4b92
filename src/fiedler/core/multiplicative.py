"""Multiplicative updates: a matrix stays nonnegative because every entry is multiplied by a nonnegative ratio."""

from __future__ import annotations

from .backend import Array, namespace


def positive_part(A: Array) -> Array:
    """Return max(a, 0) of every entry."""
    return namespace(A).where(A > 0, A, 0)


def multiplicative_update(
    Q: Array, above: Array, below: Array, *, guard: float, floor: float = 0.0, power: float = 0.5
) -> Array:
    """Return Q ∘ (above / (below + guard))^power, with no entry below ``floor``.

    Parameters
    ----------
    Q, above, below : array of shape (n, k)
        Nonnegative.
    guard : float
        Added to ``below``, in its unit, to avoid division by zero.
    floor : float, default=0
        Smallest value of an entry. A positive value keeps entries from becoming zero, which they would stay.
    power : float, default=0.5
        ½ for quadratic objectives with orthogonal columns, 1 for the factorisations of Lee and Seung.
    """
    xp = namespace(Q)
    ratio = above / (below + guard)
    updated = Q * (xp.sqrt(ratio) if power == 0.5 else ratio**power)
    return xp.where(updated > floor, updated, floor)
