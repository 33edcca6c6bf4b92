"""Read folders of images as rows of pixels between 0 and 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._validation import first_few, import_optional
from ..errors import FileFormatError, InputError, warn
from .record import Input

MAX_16_BIT = 65_535  # largest value of a pixel of 16 bits
ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp")


def is_image(path: Path) -> bool:
    """Whether a file is an image, judged by its ending."""
    return path.suffix.lower() in ENDINGS


class ImageOptions(NamedTuple):
    """How images are read.

    Attributes
    ----------
    size : int or None
        Resize every image to this many pixels per side.
    shape : tuple or None
        Height, width and, in colour, the number of channels of the images of a model. Images get its colours and,
        without ``size``, its height and width.
    skip_broken : bool
        Whether to leave out files that cannot be read.
    """

    size: int | None = None
    shape: tuple[int, ...] | None = None
    skip_broken: bool = False


class BrokenImage(NamedTuple):
    """A file that cannot be read as an image, and the reason."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name!r} ({self.reason})"


def from_images(folder: Path, files: list[Path], options: ImageOptions) -> Input:
    """Read images of a folder, in the order of ``files``.

    Without a size, all images must have the same. If one image is in colour, all are read in colour, unless the shape
    of a model decides.
    """
    images: dict[str, Any] = {}
    broken = []
    for path in files:
        name = path.relative_to(folder).as_posix()
        image = _read_image(path, name)
        if isinstance(image, BrokenImage):
            broken.append(image)
        else:
            images[name] = image if options.size is None else image.resize((options.size, options.size))
    if broken:
        _skip_or_raise(broken, len(files), skip=options.skip_broken)
    if options.shape is None:
        _check_same_size(images)
        mode = "L" if all(image.mode == "L" for image in images.values()) else "RGB"
    else:
        images = images if options.size is not None else _resize_as_model(images, options.shape)
        mode = "L" if len(options.shape) == 2 else "RGB"
        _warn_of_lost_colors(images, mode)
    pixels = np.stack([np.asarray(image.convert(mode)) for image in images.values()])
    skipped = tuple(one.name for one in broken)
    return Input("images", as_rows(pixels), list(images), image_shape=pixels.shape[1:], skipped=skipped)


def _skip_or_raise(broken: list[BrokenImage], n_files: int, *, skip: bool) -> None:
    """Warn of all files that cannot be read, or raise an error that names the first of them."""
    names = [one.name for one in broken]
    if skip and len(broken) < n_files:
        warn(
            f"{len(broken)} of {n_files} images cannot be read and are skipped: {', '.join(map(str, broken))}",
            code="images_skipped",
            files=names,
        )
        return
    problem = f"{len(broken)} of {n_files} images cannot be read: {first_few([str(one) for one in broken])}"
    if len(broken) == 1:
        problem = f"{broken[0].name!r} cannot be read as an image ({broken[0].reason})"
    raise FileFormatError(
        problem,
        "choose a folder with other images" if skip else "repair or remove such files, or use skip_broken=True",
        code="no_readable_image" if skip else "invalid_image",
        file=names[0],
        files=names,
    )


def _check_same_size(images: dict[str, Any]) -> None:
    """Raise an error that names the first image of another size."""
    first, first_image = next(iter(images.items()))
    for name, image in images.items():
        if image.size != first_image.size:
            actual, expected = ("x".join(map(str, pair)) for pair in (image.size, first_image.size))
            raise InputError(
                f"the image {name!r} is {actual}, but {first!r} is {expected}",
                "resize all to the same size, such as size=32",
                code="image_sizes_differ",
                file=name,
            )


def _resize_as_model(images: dict[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """Resize images to the height and width of a model's, with a warning that names the first ones that differ."""
    height, width = shape[:2]
    others = [name for name, image in images.items() if image.size != (width, height)]
    if others:
        warn(
            f"{len(others)} image(s) have another size than those of the model ({first_few(others)})",
            f"they are resized to {width}x{height}",
            code="images_resized",
            files=others,
        )
    return {name: image.resize((width, height)) for name, image in images.items()}


def _warn_of_lost_colors(images: dict[str, Any], mode: str) -> None:
    """Warn of images in colour that become grey; grey ones in colour lose nothing."""
    in_color = [name for name, image in images.items() if image.mode != "L"]
    if mode == "L" and in_color:
        warn(
            f"{len(in_color)} image(s) are in colour, but those of the model are grey ({first_few(in_color)})",
            "they are converted to grey",
            code="images_converted_to_grey",
            files=in_color,
        )


def _read_image(path: Path, name: str) -> Any:
    """Read one image in greyscale or colour, completely, so that a truncated file is noticed here."""
    pillow = import_optional("PIL.Image", extra="image", purpose="images")
    try:
        with pillow.open(path) as image:
            image.load()
            return _as_8_bit(image)
    except (PermissionError, ImportError, MemoryError):
        raise
    except Exception as error:  # Pillow raises many classes
        return BrokenImage(name, error.problem if isinstance(error, FileFormatError) else type(error).__name__)


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
