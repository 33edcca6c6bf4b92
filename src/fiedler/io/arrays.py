"""Read rows from NumPy and SciPy files. Nothing is unpickled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._validation import first_few, import_optional
from ..errors import FiedlerError, FileFormatError, InputError, unreadable_for_lack_of_memory, warn
from ..graph.affinity import AffinityGraph, cells_of, choose_representation
from .record import Input, Roles, encode_labels, number_rows, table_options_error

UNKNOWN_NAMES = ("-1",)  # names that mean an unknown class in arrays of labels


def from_npy(path: Path, roles: Roles) -> Input:
    """Read the rows of one array."""
    _check_no_roles(roles, path.name)
    return from_array(_load(path), path.name)


def from_npz(path: Path, roles: Roles) -> Input:
    """Read a sparse matrix, the array ``X`` (with labels such as ``y``), or the only array of an NPZ file."""
    with _load(path) as file:
        arrays = {name: _member(file, name, path.name) for name in file.files}
    if {"format", "shape", "data"} <= set(arrays):
        _check_no_roles(roles, path.name)
        return from_array(_load_sparse(path), path.name)
    _check_no_roles(roles._replace(labels=None), path.name)
    name = "X" if "X" in arrays else next(iter(arrays), "")
    if name != "X" and len(arrays) != 1:
        raise FileFormatError(
            f"{path.name!r} contains the arrays {sorted(arrays)}",
            "name the one with the rows 'X'",
            code="several_arrays",
            file=path.name,
            arrays=sorted(arrays),
        )
    labels, class_names = (None, None) if roles.labels is None else _labels(arrays, roles.labels, path.name)
    return from_array(arrays[name], path.name, labels, class_names)


def from_array(X: Any, source: str, labels: np.ndarray | None = None, class_names: list[str] | None = None) -> Input:
    """Return the rows of an array of shape (n, d), or images of shape (n, height, width) or (n, height, width, 3)."""
    if not sp.issparse(X) and X.dtype.kind not in "iufb":
        raise FileFormatError(
            f"{source!r} contains an array of {X.dtype}, which are not numbers",
            "use an array of numbers",
            code="not_numeric",
            file=source,
        )
    if X.ndim == 0 or 0 in X.shape:
        raise FileFormatError(
            f"{source!r} contains an empty array of shape {X.shape}",
            "use an array with rows and columns",
            code="empty_array",
            file=source,
        )
    if labels is not None and len(labels) != X.shape[0]:
        raise FileFormatError(
            f"{source!r} contains {X.shape[0]} rows but {len(labels)} labels",
            "use one label per row",
            code="wrong_length",
            file=source,
        )
    row_names = number_rows(X.shape[0])
    if X.ndim == 3 or (X.ndim == 4 and X.shape[3] in (1, 3)):
        return Input("images", as_rows(X), row_names, None, X.shape[1:], labels, class_names)
    if X.ndim != 2:
        raise FileFormatError(
            f"{source!r} contains an array of shape {X.shape}",
            "rows have shape (n, d), images (n, height, width)",
            code="wrong_shape",
            file=source,
        )
    return Input("array", _as_finite_floats(X, source), row_names, labels=labels, class_names=class_names)


def _as_finite_floats(X: Any, source: str) -> Any:
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind != "f":
        return X.astype(np.float64)
    if not np.isfinite(values).all():
        row = None if sp.issparse(X) else int(np.flatnonzero(~np.isfinite(X).all(axis=1))[0])
        raise InputError(
            f"{source!r}{'' if row is None else f', row {row}'} contains NaN or infinity",
            "fill these values, or remove the rows",
            code="not_finite",
            file=source,
            row=row,
        )
    return X if values.dtype in (np.float32, np.float64) else X.astype(np.float32)


def _load(path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except MemoryError:
        raise unreadable_for_lack_of_memory(path.name) from None
    except Exception as error:  # a damaged file fails in many ways, and NumPy then suggests to unpickle it
        if isinstance(error, OSError) and error.errno is not None:  # no permission, a folder: the system's own message
            raise
        raise FileFormatError(
            f"{path.name!r} is not a NumPy file, or it is damaged",
            "write it with numpy.save, as numbers",
            code="not_a_numpy_file",
            file=path.name,
        ) from None


def _member(file: Any, name: str, file_name: str) -> np.ndarray:
    try:
        return file[name]
    except MemoryError:
        raise unreadable_for_lack_of_memory(file_name) from None
    except Exception:  # as in _load
        raise FileFormatError(
            f"{file_name!r} is damaged, or its array {name!r} does not contain numbers",
            "write it again with numpy.savez, as numbers",
            code="damaged_array",
            file=file_name,
            array=name,
        ) from None


def _load_sparse(path: Path) -> sp.csr_array:
    try:
        stored = sp.load_npz(path)
        if hasattr(stored, "check_format"):  # before compiled code converts it, which follows every index
            stored.check_format(full_check=True)
        matrix = sp.csr_array(stored)
    except MemoryError:
        raise unreadable_for_lack_of_memory(path.name) from None
    except Exception as error:  # as in _load
        raise FileFormatError(
            f"{path.name!r} does not contain a valid sparse matrix ({error})",
            "write it again with scipy.sparse.save_npz",
            code="invalid_sparse_matrix",
            file=path.name,
        ) from None
    return matrix


def _labels(arrays: dict[str, np.ndarray], name: str, file: str) -> tuple[np.ndarray, list[str]]:
    if name not in arrays:
        raise FileFormatError(
            f"{file!r} has no array {name!r} of labels",
            f"its arrays are {sorted(arrays)}",
            code="no_such_array",
            file=file,
            array=name,
            arrays=sorted(arrays),
        )
    if arrays[name].ndim != 1:
        raise FileFormatError(
            f"{file!r}: the labels {name!r} have shape {arrays[name].shape}",
            "use one label per row",
            code="wrong_shape",
            file=file,
        )
    return encode_labels(arrays[name], unknown=UNKNOWN_NAMES)


def _check_no_roles(roles: Roles, file: str) -> None:
    if roles != Roles():
        raise table_options_error(repr(file))


# ---------------------------------------------------------------------------------------------------------------------
# Read folders of images as rows of pixels between 0 and 1.

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


# ---------------------------------------------------------------------------------------------------------------------
# Read the cells of AnnData files (``.h5ad``): their graph or their rows, with the names of the cells.

H5AD = ".h5ad"


def from_h5ad(path: Path, roles: Roles, use_rep: str | None = None, *, allow_graph: bool = True) -> Input:
    """Read the cells of an AnnData file.

    Parameters
    ----------
    path : path
    roles : Roles
        ``labels`` is a column of ``obs``.
    use_rep : str, optional
        As in :func:`fiedler.integrations.anndata.cluster`.
    allow_graph : bool
        Whether the cells may be given by their graph; otherwise they are rows.
    """
    if roles != Roles(labels=roles.labels):
        raise table_options_error(repr(path.name))
    with _opened(path) as adata:
        use_rep = use_rep or choose_representation(adata, allow_graph=allow_graph)
        cells, names = cells_of(adata, use_rep), [str(name) for name in adata.obs_names]
        labels = None if roles.labels is None else _column(adata, roles.labels, path.name)
    if isinstance(cells, AffinityGraph):
        data = Input("graph", cells, names)
    else:
        data = from_array(cells, path.name)._replace(row_names=names)
    data = data._replace(representation=use_rep)
    if labels is None:
        return data
    codes, class_names = encode_labels(labels)
    if not class_names:
        raise InputError(
            f"{path.name!r}, column {roles.labels!r} of obs contains no label",
            "choose another column of labels, or none",
            code="no_labels",
            file=path.name,
            column=roles.labels,
        )
    return data._replace(labels=codes, class_names=class_names)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file without reading its matrix X, which need not be used."""
    anndata = import_optional("anndata", extra="anndata", purpose="h5ad files")
    adata = None
    try:
        adata = anndata.read_h5ad(path, backed="r")
        yield adata
    except (FiedlerError, PermissionError, MemoryError):
        raise
    except Exception as error:  # HDF5 and anndata raise many classes
        raise FileFormatError(
            f"{path.name!r} cannot be read as an h5ad file ({type(error).__name__})",
            "write it again with adata.write_h5ad",
            code="invalid_h5ad",
            file=path.name,
        ) from None
    finally:
        if adata is not None:
            adata.file.close()


def _column(adata: Any, name: str, file: str) -> list[Any]:
    """Return the cells' values in a column of obs."""
    if name not in adata.obs:
        columns = [str(column) for column in adata.obs]
        raise InputError(
            f"{file!r} has no column {name!r} in obs",
            f"its columns are {', '.join(map(repr, columns)) or 'none'}",
            code="no_such_column",
            file=file,
            column=name,
            columns=columns,
        )
    return adata.obs[name].tolist()
