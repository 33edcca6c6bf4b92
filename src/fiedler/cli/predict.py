"""``fiedler predict``: assign new rows to the clusters of a model."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.pipeline import Pipeline

from ..core.backend import to_numpy
from ..errors import InputError
from ..io import Input, read_input
from ..io.cells import H5AD
from ..io.images import is_image
from ..io.tables import table_ending
from ..persistence import load, read_notes
from ..table import TableCompleter, TableEncoder
from .fitting import check_append, save_labels, save_table, write_labels, write_table
from .methods import naming_texts_without_terms
from .options import Drop, Id, Json, Quiet, Size, SkipBroken, Source, Text, parse_columns
from .output import Output
from .results import MODEL_FILE, check_file, finish_results

KIND_NAMES = {
    "table": "a table",
    "mixed": "a table",
    "array": "an array",
    "images": "images",
    "texts": "texts",
    "graph": "a graph",
}


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model.npz written by fiedler cluster, or its folder.")
    ],
    source: Source,
    id: Id = None,
    text: Text = None,
    drop: Drop = None,
    size: Size = None,
    skip_broken: SkipBroken = False,
    append: Annotated[
        bool, typer.Option("--append", help="Write the whole table with cluster and confidence instead of labels.")
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="CSV file; default: standard output.")] = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Predict the clusters of new rows: id, label, confidence and memberships as CSV."""
    output = Output(quiet, json)
    finish_results(model if model.is_dir() else model.parent)
    path = model / MODEL_FILE if model.is_dir() else model
    notes, fitted = read_notes(path), load(path)
    if not hasattr(fitted, "predict"):
        raise InputError(
            f"{str(path)!r} contains a {type(fitted).__name__}, which cannot predict",
            "choose the model of a clustering",
            code="cannot_predict",
            file=str(path),
        )
    check_file(out)
    options: dict[str, Any] = {"id": id, "text": text, "drop": drop, "size": size, "skip_broken": skip_broken}
    data = read_new_rows(output, source, fitted, notes, **options)
    check_append(data, append)
    with output.working(f"predicting {data.n_rows} rows"), naming_texts(data, fitted), naming_cells(data, source):
        memberships = to_numpy(fitted.predict_proba(data.X)) if hasattr(fitted, "predict_proba") else None
        labels = to_numpy(fitted.predict(data.X)) if memberships is None else memberships.argmax(axis=1)
    confidence = None if memberships is None else memberships.max(axis=1)
    named = (data.row_names, labels, memberships, notes.get("cluster_names"), data.id_name or "id")
    if out is not None:
        save_table(out, data, labels, confidence) if append else save_labels(out, *named)
    if json:
        soft = {} if confidence is None else {"confidence": confidence.tolist()}
        output.result({"ids": data.row_names, "labels": labels.tolist(), **soft, "skipped": list(data.skipped)})
    elif out is not None:
        output.result({}, f"{data.n_rows} rows; written to {out}")
    elif append:
        write_table(sys.stdout, data, labels, confidence)
    else:
        write_labels(sys.stdout, *named)


def read_new_rows(
    output: Output,
    source: str,
    fitted: Any,
    notes: dict[str, Any],
    *,
    id: str | None,
    text: str | None,
    drop: Sequence[str] | None,
    size: int | None,
    skip_broken: bool = False,
) -> Input:
    """Read new rows as those of the model were read, and check that they are of the same kind."""
    if notes.get("kind") == "graph":
        raise InputError(
            "the model was fitted to the graph of its cells, to which new cells have no links",
            "cluster the cells again with fiedler cluster --use-rep X_pca or X",
            code="fitted_to_graph",
        )
    with output.working(f"reading {source}"):
        options = _reading_options(source, fitted, notes, text=text, size=size)
        dropped = parse_columns(drop)
        if needed := set(dropped) & set(options.get("features", ())):
            raise InputError(
                f"the model needs the column {min(needed)!r}",
                "do not drop it",
                code="column_needed",
                column=min(needed),
            )
        data = read_input(source, id=id, drop=dropped, skip_broken=skip_broken, **options)
    _check_matches_model(data, fitted, notes)
    return data


def _reading_options(
    source: str, fitted: Any, notes: dict[str, Any], *, text: str | None, size: int | None
) -> dict[str, Any]:
    """Return the options with which the model's input was read: text column, features, rows of cells, shape of images.

    The first step of a model of tables finds its columns by name; models without one need all features as numbers.
    Images that were not resized in the fit have one size, to which new ones are resized with a warning.
    """
    is_folder_of_tables = Path(source).is_dir() and notes.get("kind") in ("table", "mixed")
    if source == "-" or is_folder_of_tables or table_ending(Path(source)) is not None:
        text = text or notes.get("text")
        is_new = not text and _reads_tables(fitted)
        features = [] if text or is_new else notes.get("feature_names") or []
        return {"text": text, "features": features, "is_new": is_new, "names": notes.get("id_name"), "size": size}
    if Path(source).suffix.lower() == H5AD:
        return {"text": text, "size": size, "use_rep": notes.get("representation"), "allow_graph": False}
    if not (Path(source).is_dir() or is_image(Path(source))):
        return {"text": text, "size": size}
    return {"text": text, "size": size or notes.get("size"), "image_shape": notes.get("image_shape")}


def naming_texts(data: Input, fitted: Any) -> AbstractContextManager[None]:
    """Name texts without known words in the warning about them."""
    if data.kind != "texts" or not isinstance(fitted, Pipeline):
        return nullcontext()
    return naming_texts_without_terms(data, lambda: np.flatnonzero(np.diff(fitted[0].transform(data.X).indptr) == 0))


def _reads_tables(fitted: Any) -> bool:
    """Whether the first step of a model finds columns by their names, and estimates what is missing."""
    return isinstance(fitted, Pipeline) and isinstance(fitted[0], TableEncoder | TableCompleter)


@contextmanager
def naming_cells(data: Input, source: str) -> Iterator[None]:
    """Say where in its file a cell is that cannot be read like those of the fit."""
    try:
        yield
    except InputError as error:
        if error.code != "not_like_fit" or data.table is None:
            raise
        fields = error.fields
        location = data.table.locations[fields["row"]]
        raise InputError(
            f"{Path(source).name!r}, column {fields['column']!r}, {location}: {fields['value']!r} is not a "
            f"{fields['kind']}, as in the fit",
            error.hint,
            code=error.code,
            **fields,
        ) from None


def _check_matches_model(data: Input, fitted: Any, notes: dict[str, Any]) -> None:
    """Raise an error for rows of another kind or shape than the model was fitted to."""
    if KIND_NAMES[data.kind] != KIND_NAMES[notes.get("kind", data.kind)]:
        raise InputError(
            f"the model was fitted to {KIND_NAMES[notes['kind']]}, but the input is {KIND_NAMES[data.kind]}",
            "use the same kind of input",
            code="wrong_kind",
        )
    if data.image_shape is not None and list(data.image_shape) != notes.get("image_shape"):
        expected, actual = ("x".join(map(str, shape)) for shape in (notes.get("image_shape") or (), data.image_shape))
        raise InputError(
            f"the model was fitted to images of {expected}, but these are {actual}",
            "convert them to the same size and colours",
            code="wrong_image_shape",
        )
    n_features = getattr(fitted, "n_features_in_", None)
    if data.kind not in ("texts", "mixed") and n_features not in (None, data.X.shape[1]):
        raise InputError(
            f"the model was fitted to {n_features} columns, but the input has {data.X.shape[1]}",
            "use the same columns",
            code="wrong_n_features",
        )
