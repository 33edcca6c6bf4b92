"""What the rows hold, as much of it as a page can carry: beginnings of texts, small images."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.backend import to_numpy
from .jsonable import SNIPPET, Summary, clean, shortened

TEXT_BYTES, SHORTEST = 4_000_000, 40  # of all texts together; characters of one
THUMBNAIL_BYTES, MOST_THUMBNAILS, THUMBNAIL_SIDE = 4_000_000, 5000, 40  # of all pixels; images; pixels


def snippets(texts: Sequence[str], on_cards: list[int]) -> Summary:
    """The beginnings of texts, within `TEXT_BYTES`: of all rows, or of those on cards alone (then ``rows`` names them).

    The more texts, the shorter; those on cards are as long as can be.
    """
    length = min(SNIPPET, TEXT_BYTES // len(texts))
    if length < SHORTEST:
        kept = [shortened(clean(texts[row]), SNIPPET) for row in on_cards]
        return {"rows": on_cards, "values": kept, "length": SNIPPET}
    shown = set(on_cards)
    kept = [
        shortened(clean(str(text)[: 2 * SNIPPET]), SNIPPET if row in shown else length)
        for row, text in enumerate(texts)
    ]
    return {"rows": None, "values": kept, "length": length}


def thumbnails(images: Any, n: int) -> np.ndarray:
    """Images as bytes (n, h, w, 1 or 3), shrunk by a whole factor to at most `THUMBNAIL_SIDE` pixels a side."""
    pixels = to_numpy(images)
    if pixels.ndim not in (3, 4) or len(pixels) != n or pixels.shape[3:] not in ((), (1,), (3,)):
        raise ValueError(f"images must have shape ({n}, height, width) or ({n}, height, width, 3); got {pixels.shape}")
    is_bytes = pixels.dtype == np.uint8
    pixels = _block_means(pixels if pixels.ndim == 4 else pixels[..., None])
    low, high = (0.0, 255.0) if is_bytes else (float(pixels.min()), float(pixels.max()))
    return np.rint((pixels - low) * (255 / ((high - low) or 1.0))).astype(np.uint8)


def _block_means(pixels: np.ndarray) -> np.ndarray:
    """The means over squares of pixels, so large that what is left is small; the edge that remains is cut off."""
    n, height, width, channels = pixels.shape
    factor = -(-max(height, width) // THUMBNAIL_SIDE)
    down, across = min(factor, height), min(factor, width)
    h, w = height // down, width // across
    cut = pixels[:, : h * down, : w * across].reshape(n, h, down, w, across, channels)
    return cut.mean(axis=(2, 4), dtype=np.float32)


def kept_thumbnails(
    pixels: np.ndarray, labels: np.ndarray, k: int, on_cards: list[int], rng: np.random.RandomState
) -> Summary:
    """The mean image of every cluster, then those on cards and as many others as there is room for, drawn at random."""
    n, height, width, channels = pixels.shape
    room = min(MOST_THUMBNAILS, THUMBNAIL_BYTES // (height * width * channels)) - len(on_cards)
    others = rng.permutation(np.setdiff1d(np.arange(n), on_cards))[: max(room, 0)]
    kept = np.sort(np.concatenate([np.array(on_cards, dtype=np.int64), others]))
    means = [
        pixels[labels == one].mean(axis=0) if (labels == one).any() else np.zeros(pixels.shape[1:]) for one in range(k)
    ]
    data = np.concatenate([np.rint(means).astype(np.uint8).reshape(k, height, width, channels), pixels[kept]])
    return {
        "height": height,
        "width": width,
        "channels": channels,
        "n_means": k,
        "rows": kept.tolist(),
        "pixels": base64.b64encode(zlib.compress(data.tobytes(), 6)).decode("ascii"),
    }
