"""Folders of images to rows of pixels between 0 and 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._validation import import_optional
from .record import Input

SIXTEEN_BITS = 65_535
ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp")


def is_image(path: Path) -> bool:
    """Whether a file is one, by its ending."""
    return path.suffix.lower() in ENDINGS


def from_images(folder: Path, files: list[Path], size: int | None = None) -> Input:
    """The images of a folder, in the order of their names.

    Parameters
    ----------
    folder : path
    files : list of paths
    size : int, optional
        Bring every image to this many pixels a side; without it all have to be of one size.
    """
    names = [path.relative_to(folder).as_posix() for path in files]
    images = [_opened(path, name, size) for path, name in zip(files, names)]
    colour = any(image.mode != "L" for image in images)
    first = images[0].size
    for image, name in zip(images, names):
        if image.size != first:
            shape, usual = ("x".join(map(str, pair)) for pair in (image.size, first))
            raise ValueError(f"{name!r} is {shape} where {names[0]!r} is {usual}; bring all to one size, such as 32")
    pixels = np.stack([np.asarray(image.convert("RGB" if colour else "L")) for image in images])
    return Input("images", as_rows(pixels), names, pixels=pixels.shape[1:])


def _opened(path: Path, name: str, size: int | None) -> Any:
    """One image, grey or in colour, read to its end so that a cut one is found here."""
    pillow = import_optional("PIL.Image", extra="image", purpose="images")
    try:
        with pillow.open(path) as image:
            image.load()
            whole = _eight_bits(image)
            return whole if size is None else whole.resize((size, size))
    except (PermissionError, ImportError):
        raise
    except Exception as error:  # Pillow has many
        reason = str(error) if type(error) is ValueError else type(error).__name__
        raise ValueError(f"{name!r} cannot be read as an image ({reason}); mend it or take it out") from None


def _eight_bits(image: Any) -> Any:
    """Grey or in colour, a byte a channel: sixteen bits are brought down to eight, transparency is left out."""
    if image.mode.startswith("I"):
        pixels = np.asarray(image).astype(np.float64)
        if pixels.min() < 0 or pixels.max() > SIXTEEN_BITS:
            raise ValueError("more than sixteen bits")
        return import_optional("PIL.Image", extra="image", purpose="images").fromarray(
            np.rint(pixels * (255 / SIXTEEN_BITS)).astype(np.uint8)
        )
    if image.mode == "F":
        raise ValueError("real numbers, whose range is unknown")
    return image.convert("L" if image.mode in ("1", "L", "LA") else "RGB")


def as_rows(images: np.ndarray) -> np.ndarray:
    """Pixels as rows of float32; bytes are brought to [0, 1].

    Examples
    --------
    >>> as_rows(np.array([[[0, 255], [51, 0]]], dtype=np.uint8))
    array([[0. , 1. , 0.2, 0. ]], dtype=float32)
    """
    rows = images.reshape(images.shape[0], -1).astype(np.float32)
    if not np.isfinite(rows).all():
        raise ValueError("the images hold NaN or infinity; fill these pixels")
    return rows / np.float32(255) if images.dtype == np.uint8 else rows
