"""The contents of rows, as far as a page has room for them: beginnings of texts, thumbnails of images."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..core.backend import to_numpy
from ..errors import InputError
from .jsonable import MAX_TEXT_LENGTH, Summary, clean_text, shorten

if TYPE_CHECKING:
    from .._typing import Array

TEXT_BUDGET = 4_000_000  # characters of all texts together
MIN_TEXT_LENGTH = 40  # characters; if the budget allows less, only texts on cards are included
THUMBNAIL_BUDGET = 4_000_000  # bytes of all pixels
MAX_THUMBNAILS = 5000
MAX_THUMBNAIL_SIDE = 40  # pixels


def snippets(texts: Sequence[str], card_rows: list[int]) -> Summary:
    """Return the beginnings of texts within `TEXT_BUDGET`: of all rows, or of those on cards (then listed in ``rows``).

    The more texts, the shorter they are; those on cards have the full length.
    """
    length = min(MAX_TEXT_LENGTH, TEXT_BUDGET // len(texts))
    if length < MIN_TEXT_LENGTH:
        values = [shorten(clean_text(texts[row]), MAX_TEXT_LENGTH) for row in card_rows]
        return {"rows": card_rows, "values": values, "length": MAX_TEXT_LENGTH}
    on_cards = set(card_rows)
    values = [
        shorten(clean_text(str(text)[: 2 * MAX_TEXT_LENGTH]), MAX_TEXT_LENGTH if row in on_cards else length)
        for row, text in enumerate(texts)
    ]
    return {"rows": None, "values": values, "length": length}


def shrink_images(images: Array, n: int) -> np.ndarray:
    """Convert images to bytes, shape (n, h, w, 1 or 3), reduced by an integer factor to `MAX_THUMBNAIL_SIDE` pixels."""
    pixels = to_numpy(images)
    if pixels.ndim not in (3, 4) or len(pixels) != n or pixels.shape[3:] not in ((), (1,), (3,)):
        raise InputError(
            f"images must have shape ({n}, height, width) or ({n}, height, width, 3); got {pixels.shape}",
            code="wrong_shape",
            parameter="images",
            shape=pixels.shape,
        )
    is_bytes = pixels.dtype == np.uint8
    pixels = _block_means(pixels if pixels.ndim == 4 else pixels[..., None])
    low, high = (0.0, 255.0) if is_bytes else (float(pixels.min()), float(pixels.max()))
    return np.rint((pixels - low) * (255 / ((high - low) or 1.0))).astype(np.uint8)


def _block_means(pixels: np.ndarray) -> np.ndarray:
    """Average square blocks of pixels; an incomplete block at the edge is cut off."""
    n, height, width, channels = pixels.shape
    factor = -(-max(height, width) // MAX_THUMBNAIL_SIDE)
    block_height, block_width = min(factor, height), min(factor, width)
    h, w = height // block_height, width // block_width
    cropped = pixels[:, : h * block_height, : w * block_width]
    return cropped.reshape(n, h, block_height, w, block_width, channels).mean(axis=(2, 4), dtype=np.float32)


def pack_thumbnails(
    pixels: np.ndarray, labels: np.ndarray, n_clusters: int, card_rows: list[int], rng: np.random.RandomState
) -> Summary:
    """Pack the mean image of every cluster, the images on cards, and a random sample of others if there is room."""
    n, height, width, channels = pixels.shape
    room = min(MAX_THUMBNAILS, THUMBNAIL_BUDGET // (height * width * channels)) - len(card_rows)
    others = rng.permutation(np.setdiff1d(np.arange(n), card_rows))[: max(room, 0)]
    rows = np.sort(np.concatenate([np.array(card_rows, dtype=np.int64), others]))
    means = [
        pixels[labels == label].mean(axis=0) if (labels == label).any() else np.zeros(pixels.shape[1:])
        for label in range(n_clusters)
    ]
    mean_pixels = np.rint(means).astype(np.uint8).reshape(n_clusters, height, width, channels)
    return {
        "height": height,
        "width": width,
        "channels": channels,
        "n_means": n_clusters,
        "rows": rows.tolist(),
        "pixels": base64.b64encode(zlib.compress(np.concatenate([mean_pixels, pixels[rows]]).tobytes(), 6)).decode(),
    }
