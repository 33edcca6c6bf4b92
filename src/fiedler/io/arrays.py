"""Rows of NumPy and SciPy files, of which nothing is unpickled, of folders of images, and of AnnData files."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .._validation import first_few, import_optional
from ..errors import FileFormatError, InputError, warn
from ..graph.affinity import AffinityGraph, cells_of, choose_representation
from .record import Input, Roles, encode_labels, known_classes, number_rows, reading, refuse_roles

UNKNOWN_NAMES = ("-1",)  # names that mean an unknown class in arrays of labels


def from_npy(path: Path, roles: Roles) -> Input:
    """Read the rows of one array."""
    refuse_roles(roles, repr(path.name))
    return from_array(_load(path), path.name)


def from_npz(path: Path, roles: Roles) -> Input:
    """Read a sparse matrix, the array ``X`` (with labels such as ``y``), or the only array of an NPZ file."""
    arrays, file = {}, path.name
    with _load(path) as members:
        for name in members.files:
            problem = f"is damaged, or its array {name!r} does not contain numbers"
            with reading(file, problem, "write it again with numpy.savez, as numbers", "damaged_array", array=name):
                arrays[name] = members[name]
    if {"format", "shape", "data"} <= set(arrays):
        refuse_roles(roles, repr(file))
        hint = "write it again with scipy.sparse.save_npz"
        with reading(file, "does not contain a valid sparse matrix ({error})", hint, "invalid_sparse_matrix"):
            stored = sp.load_npz(path)
            if hasattr(stored, "check_format"):  # before compiled code converts it, which follows every index
                stored.check_format(full_check=True)
            matrix = sp.csr_array(stored)
        return from_array(matrix, file)
    refuse_roles(roles._replace(labels=None), repr(file))
    name = "X" if "X" in arrays else next(iter(arrays), "")
    if name != "X" and len(arrays) != 1:
        problem, hint = f"{file!r} contains the arrays {sorted(arrays)}", "name the one with the rows 'X'"
        raise FileFormatError(problem, hint, code="several_arrays", file=file, arrays=sorted(arrays))
    labels, class_names = (None, None) if roles.labels is None else _labels(arrays, roles.labels, file)
    return from_array(arrays[name], file, labels, class_names)


def _load(path: Path) -> Any:
    hint = "write it with numpy.save, as numbers"
    with reading(path.name, "is not a NumPy file, or it is damaged", hint, "not_a_numpy_file"):
        return np.load(path, allow_pickle=False)


def _labels(arrays: dict[str, np.ndarray], name: str, file: str) -> tuple[np.ndarray, list[str]]:
    if name not in arrays:
        problem, hint = f"{file!r} has no array {name!r} of labels", f"its arrays are {sorted(arrays)}"
        raise FileFormatError(problem, hint, code="no_such_array", file=file, array=name, arrays=sorted(arrays))
    if arrays[name].ndim != 1:
        problem = f"{file!r}: the labels {name!r} have shape {arrays[name].shape}"
        raise FileFormatError(problem, "use one label per row", code="wrong_shape", file=file)
    return encode_labels(arrays[name], unknown=UNKNOWN_NAMES)


def from_array(X: Any, source: str, labels: np.ndarray | None = None, class_names: list[str] | None = None) -> Input:
    """Return the rows of an array of shape (n, d), or images of shape (n, height, width) or (n, height, width, 3)."""
    if not sp.issparse(X) and X.dtype.kind not in "iufb":
        problem = f"{source!r} contains an array of {X.dtype}, which are not numbers"
        raise FileFormatError(problem, "use an array of numbers", code="not_numeric", file=source)
    if X.ndim == 0 or 0 in X.shape:
        problem = f"{source!r} contains an empty array of shape {X.shape}"
        raise FileFormatError(problem, "use an array with rows and columns", code="empty_array", file=source)
    if labels is not None and len(labels) != X.shape[0]:
        problem = f"{source!r} contains {X.shape[0]} rows but {len(labels)} labels"
        raise FileFormatError(problem, "use one label per row", code="wrong_length", file=source)
    row_names = number_rows(X.shape[0])
    if X.ndim == 3 or (X.ndim == 4 and X.shape[3] in (1, 3)):
        return Input("images", as_rows(X), row_names, None, X.shape[1:], labels, class_names)
    if X.ndim != 2:
        problem = f"{source!r} contains an array of shape {X.shape}"
        hint = "rows have shape (n, d), images (n, height, width)"
        raise FileFormatError(problem, hint, code="wrong_shape", file=source)
    return Input("array", _as_finite_floats(X, source), row_names, labels=labels, class_names=class_names)


def _as_finite_floats(X: Any, source: str) -> Any:
    values = X.data if sp.issparse(X) else X
    if values.dtype.kind != "f":
        return X.astype(np.float64)
    if not np.isfinite(values).all():
        row = None if sp.issparse(X) else int(np.flatnonzero(~np.isfinite(X).all(axis=1))[0])
        problem = f"{source!r}{'' if row is None else f', row {row}'} contains NaN or infinity"
        raise InputError(problem, "fill these values, or remove the rows", code="not_finite", file=source, row=row)
    return X if values.dtype in (np.float32, np.float64) else X.astype(np.float32)


# ------------------------------------------------------------------------- images, as rows of pixels between 0 and 1

MAX_16_BIT = 65_535  # largest value of a pixel of 16 bits
ENDINGS = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".pgm", ".ppm", ".tif", ".tiff", ".webp")


def is_image(path: Path) -> bool:
    """Whether a file is an image, judged by its ending."""
    return path.suffix.lower() in ENDINGS


class ImageOptions(NamedTuple):
    """How images are read."""

    size: int | None = None  # pixels per side to which every image is resized
    shape: tuple[int, ...] | None = None  # of the images of a model, whose colours and, without size, size they get
    skip_broken: bool = False  # whether files that cannot be read are left out


def from_images(folder: Path, files: list[Path], options: ImageOptions) -> Input:
    """Read images of a folder, in the order of ``files``.

    Without a size, all images must have the same. If one image is in colour, all are read in colour, unless the shape
    of a model decides.
    """
    images: dict[str, Any] = {}
    broken: dict[str, str] = {}
    for path in files:
        name = path.relative_to(folder).as_posix()
        try:
            image = _read_image(path)
        except (PermissionError, ImportError, MemoryError):
            raise
        except Exception as error:  # Pillow raises many classes
            broken[name] = error.problem if isinstance(error, FileFormatError) else type(error).__name__
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
        in_color = [name for name, image in images.items() if image.mode != "L"]
        if mode == "L" and in_color:
            problem = f"{len(in_color)} image(s) are in colour, but those of the model are grey ({first_few(in_color)})"
            warn(problem, "they are converted to grey", code="images_converted_to_grey", files=in_color)
    pixels = np.stack([np.asarray(image.convert(mode)) for image in images.values()])
    return Input("images", as_rows(pixels), list(images), image_shape=pixels.shape[1:], skipped=tuple(broken))


def _skip_or_raise(broken: dict[str, str], n_files: int, *, skip: bool) -> None:
    """Warn of all files that cannot be read, or raise an error that names the first of them."""
    names, listed = list(broken), [f"{name!r} ({reason})" for name, reason in broken.items()]
    if skip and len(broken) < n_files:
        problem = f"{len(broken)} of {n_files} images cannot be read and are skipped: {', '.join(listed)}"
        return warn(problem, code="images_skipped", files=names)
    problem = f"{len(broken)} of {n_files} images cannot be read: {first_few(listed)}"
    if len(broken) == 1:
        problem = f"{names[0]!r} cannot be read as an image ({broken[names[0]]})"
    hint = "choose a folder with other images" if skip else "repair or remove such files, or use skip_broken=True"
    code = "no_readable_image" if skip else "invalid_image"
    raise FileFormatError(problem, hint, code=code, file=names[0], files=names)


def _check_same_size(images: dict[str, Any]) -> None:
    """Raise an error that names the first image of another size."""
    first, first_image = next(iter(images.items()))
    for name, image in images.items():
        if image.size != first_image.size:
            actual, expected = ("x".join(map(str, pair)) for pair in (image.size, first_image.size))
            problem = f"the image {name!r} is {actual}, but {first!r} is {expected}"
            hint = "resize all to the same size, such as size=32"
            raise InputError(problem, hint, code="image_sizes_differ", file=name)


def _resize_as_model(images: dict[str, Any], shape: tuple[int, ...]) -> dict[str, Any]:
    """Resize images to the height and width of a model's, with a warning that names the first ones that differ."""
    height, width = shape[:2]
    others = [name for name, image in images.items() if image.size != (width, height)]
    if others:
        problem = f"{len(others)} image(s) have another size than those of the model ({first_few(others)})"
        warn(problem, f"they are resized to {width}x{height}", code="images_resized", files=others)
    return {name: image.resize((width, height)) for name, image in images.items()}


def _read_image(path: Path) -> Any:
    """Read one image in greyscale or RGB with 8 bits per channel: 16 bits are rescaled, transparency is dropped."""
    pillow = import_optional("PIL.Image", extra="image", purpose="images")
    with pillow.open(path) as image:
        image.load()  # completely, so that a truncated file is noticed here
        if image.mode.startswith("I"):
            pixels = np.asarray(image).astype(np.float64)
            if pixels.min() < 0 or pixels.max() > MAX_16_BIT:
                raise FileFormatError("more than 16 bits per pixel", code="invalid_image")
            return pillow.fromarray(np.rint(pixels * (255 / MAX_16_BIT)).astype(np.uint8))
        if image.mode == "F":
            raise FileFormatError("floating-point pixels of unknown range", code="invalid_image")
        return image.convert("L" if image.mode in ("1", "L", "LA") else "RGB")


def as_rows(images: np.ndarray) -> np.ndarray:
    """Return images as rows of float32 pixels; 8-bit pixels are scaled to [0, 1]."""
    rows = images.reshape(images.shape[0], -1).astype(np.float32)
    if not np.isfinite(rows).all():
        raise InputError("the images contain NaN or infinity", "fill these pixels", code="not_finite")
    return rows / np.float32(255) if images.dtype == np.uint8 else rows


# --------------------------------------------------------------------------------------------------- cells of AnnData

H5AD = ".h5ad"


def from_h5ad(path: Path, roles: Roles, use_rep: str | None = None, *, allow_graph: bool = True) -> Input:
    """Read the cells of an AnnData file: their graph, if that is allowed, or their rows; labels are a column of obs."""
    file = path.name
    refuse_roles(roles._replace(labels=None), repr(file))
    anndata, adata = import_optional("anndata", extra="anndata", purpose="h5ad files"), None
    try:
        with reading(
            file, "cannot be read as an h5ad file ({kind})", "write it again with adata.write_h5ad", "invalid_h5ad"
        ):
            adata = anndata.read_h5ad(path, backed="r")  # without its matrix X, which need not be used
            use_rep = use_rep or choose_representation(adata, allow_graph=allow_graph)
            cells, names = cells_of(adata, use_rep), [str(name) for name in adata.obs_names]
            labels = [] if roles.labels is None else _column(adata, roles.labels, file)
    finally:
        if adata is not None:
            adata.file.close()
    is_graph = isinstance(cells, AffinityGraph)
    data = Input("graph", cells, names) if is_graph else from_array(cells, file)._replace(row_names=names)
    data = data._replace(representation=use_rep)
    if roles.labels is None:
        return data
    return data._replace(**known_classes(labels, f"{file!r}, column {roles.labels!r} of obs", file, roles.labels))


def _column(adata: Any, name: str, file: str) -> list[Any]:
    """Return the cells' values in a column of obs."""
    if name not in adata.obs:
        columns = [str(column) for column in adata.obs]
        problem, hint = (
            f"{file!r} has no column {name!r} in obs",
            f"its columns are {', '.join(map(repr, columns)) or 'none'}",
        )
        raise InputError(problem, hint, code="no_such_column", file=file, column=name, columns=columns)
    return adata.obs[name].tolist()
