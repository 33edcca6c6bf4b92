"""Multiplicative updates: a matrix stays non-negative because every entry is multiplied by a non-negative ratio."""

from __future__ import annotations

from .backend import Array, namespace


def multiplicative_update(
    Q: Array, numerator: Array, denominator: Array, *, epsilon: float, floor: float = 0.0, power: float = 0.5
) -> Array:
    """Return Q ∘ (numerator / (denominator + epsilon))^power, with no entry below ``floor``.

    Parameters
    ----------
    Q, numerator, denominator : array of shape (n, k)
        Non-negative.
    epsilon : float
        Added to ``denominator``, in its unit, to avoid division by zero.
    floor : float, default=0
        Smallest value of an entry. A positive value keeps entries from becoming zero, which they would stay.
    power : float, default=0.5
        ½ for quadratic objectives with orthogonal columns, 1 for the factorisations of Lee and Seung.
    """
    xp = namespace(Q)
    ratio = numerator / (denominator + epsilon)
    updated = Q * (xp.sqrt(ratio) if power == 0.5 else ratio**power)
    return xp.where(updated > floor, updated, floor)
