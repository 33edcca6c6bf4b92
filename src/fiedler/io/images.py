"""Read folders of images as rows of pixels between 0 and 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from .._validation import import_optional
from ..errors import FileFormatError, InputError
from .record import Input

MAX_16_BIT = 65_535  # largest value of a pixel of 16 bits
ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp")


def is_image(path: Path) -> bool:
    """Whether a file is an image, judged by its ending."""
    return path.suffix.lower() in ENDINGS


def from_images(folder: Path, files: list[Path], size: int | None = None) -> Input:
    """Read images of a folder, in the order of ``files``.

    Parameters
    ----------
    folder : path
    files : list of paths
    size : int, optional
        Resize every image to this many pixels per side; without it, all images must have the same size.
    """
    names = [path.relative_to(folder).as_posix() for path in files]
    images = [_read_image(path, name, size) for path, name in zip(files, names)]
    in_color = any(image.mode != "L" for image in images)
    first_size = images[0].size
    for image, name in zip(images, names):
        if image.size != first_size:
            actual, expected = ("x".join(map(str, pair)) for pair in (image.size, first_size))
            raise InputError(
                f"the image {name!r} is {actual}, but {names[0]!r} is {expected}",
                "resize all to the same size, such as size=32",
                code="image_sizes_differ",
                file=name,
            )
    pixels = np.stack([np.asarray(image.convert("RGB" if in_color else "L")) for image in images])
    return Input("images", as_rows(pixels), names, image_shape=pixels.shape[1:])


def _read_image(path: Path, name: str, size: int | None) -> Any:
    """Read one image in greyscale or colour, completely, so that a truncated file fails here."""
    pillow = import_optional("PIL.Image", extra="image", purpose="images")
    try:
        with pillow.open(path) as image:
            image.load()
            converted = _as_8_bit(image)
            return converted if size is None else converted.resize((size, size))
    except (PermissionError, ImportError):
        raise
    except Exception as error:  # Pillow raises many classes
        reason = error.problem if isinstance(error, FileFormatError) else type(error).__name__
        raise FileFormatError(
            f"{name!r} cannot be read as an image ({reason})",
            "repair it, or remove it",
            code="invalid_image",
            file=name,
            reason=reason,
        ) from None


def _as_8_bit(image: Any) -> Any:
    """Convert to greyscale or RGB with 8 bits per channel: 16 bits are rescaled, transparency is dropped."""
    if image.mode.startswith("I"):
        pixels = np.asarray(image).astype(np.float64)
        if pixels.min() < 0 or pixels.max() > MAX_16_BIT:
            raise FileFormatError("more than 16 bits per pixel", code="invalid_image")
        return import_optional("PIL.Image", extra="image", purpose="images").fromarray(
            np.rint(pixels * (255 / MAX_16_BIT)).astype(np.uint8)
        )
    if image.mode == "F":
        raise FileFormatError("floating-point pixels of unknown range", code="invalid_image")
    return image.convert("L" if image.mode in ("1", "L", "LA") else "RGB")


def as_rows(images: np.ndarray) -> np.ndarray:
    """Return images as rows of float32 pixels; 8-bit pixels are scaled to [0, 1].

    Examples
    --------
    >>> as_rows(np.array([[[0, 255], [51, 0]]], dtype=np.uint8))
    array([[0. , 1. , 0.2, 0. ]], dtype=float32)
    """
    rows = images.reshape(images.shape[0], -1).astype(np.float32)
    if not np.isfinite(rows).all():
        raise InputError("the images contain NaN or infinity", "fill these pixels", code="not_finite")
    return rows / np.float32(255) if images.dtype == np.uint8 else rows
