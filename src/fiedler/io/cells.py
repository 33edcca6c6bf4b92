"""Read the cells of AnnData files (``.h5ad``): their graph or their rows, with the names of the cells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .._validation import import_optional
from ..errors import FiedlerError, FileFormatError, InputError
from ..graph.affinity import AffinityGraph
from ..graph.foreign import cells_of, choose_representation
from .arrays import from_array
from .record import Input, Roles, encode_labels, table_options_error

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
