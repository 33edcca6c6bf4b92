"""``fiedler predict`` and ``update``: assign new rows to the clusters of a model, or add them to its results."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

from .._validation import first_few
from ..core.arrays import to_numpy
from ..errors import DataNotFoundError, FileFormatError, InputError
from ..io import Input, read_input
from ..io.arrays import H5AD, is_image
from ..io.formats import is_table_file
from ..io.record import encode_labels, number_rows
from ..manifold import UpdateResult
from ..manifold.candidates import ROWS
from ..manifold.explain import ClusterPipeline
from ..manifold.views import INDICATORS
from ..metrics import score_table
from ..persistence import load, read_notes
from ..report import read_summary, summarize
from ..table import TableEncoder
from . import results
from .fitting import format_agreement, naming_texts_without_terms
from .options import NewRows, Source, parse_columns
from .output import Output

KIND_NAMES = {"table": "a table", "mixed": "a table", "array": "an array", "images": "images", "texts": "texts"}
LOST_COLUMNS = (
    "The model file does not contain the rows before they were transformed, so clusters are described by the {} of the "
    "rows instead of the columns of the input."
)


def predict(
    *,
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A model.safetensors written by fiedler cluster, or its folder.")
    ],
    source: Source,
    new: NewRows,
    level: Annotated[
        int | None,
        typer.Option(metavar="K", help="Predict at another level of the model, that of K clusters; see cluster."),
    ] = None,
    append: Annotated[
        bool, typer.Option("--append", help="Write the whole table with cluster and confidence instead of labels.")
    ] = False,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="CSV file; default: standard output.")] = None,
    output: Output,
) -> None:
    """Predict the clusters of new rows: id, label, confidence and memberships as CSV."""
    results.finish_results(model if model.is_dir() else model.parent)
    path = model / results.MODEL_FILE if model.is_dir() else model
    notes, fitted = read_notes(path), load(path)
    if not hasattr(fitted, "predict"):
        problem = f"{str(path)!r} contains a {type(fitted).__name__}, which cannot predict"
        raise InputError(problem, "choose the model of a clustering", code="cannot_predict")
    results.check_file(out)
    names = notes.get("cluster_names")
    if level is not None:
        fitted, names = at_level(fitted, level), None
    data = read_new_rows(output, source, fitted, notes, new)
    results.check_append(data, append)
    with output.working(f"predicting {data.n_rows} rows"), naming_texts(data, fitted), naming_cells(data, source):
        memberships = to_numpy(fitted.predict_proba(data.X)) if hasattr(fitted, "predict_proba") else None
        if memberships is None or level is not None:  # labels of levels are nested, not the largest memberships
            labels = to_numpy(fitted.predict(data.X))
        else:
            labels = memberships.argmax(axis=1)
    confidence = None if memberships is None else memberships.max(axis=1)
    write: Callable[..., None] = results.write_table if append else results.write_labels
    named = (data.row_names, labels, memberships, names, data.id_name or "id")
    content = (data, labels, confidence) if append else named
    if out is not None:
        results.save_csv(out, write, *content)
    if output.json:
        soft = {} if confidence is None else {"confidence": confidence.tolist()}
        output.result({"ids": data.row_names, "labels": labels.tolist(), **soft, "skipped": list(data.skipped)})
    elif out is not None:
        output.result({}, f"{data.n_rows} rows; written to {out}")
    else:
        write(sys.stdout, *content)


def at_level(fitted: Any, n_clusters: int) -> Any:
    """Return a model, or a pipeline that ends in one, at the level of a number of clusters."""
    clusterer = fitted[-1] if isinstance(fitted, Pipeline) else fitted
    if not hasattr(clusterer, "at"):
        problem = f"a model of the class {type(clusterer).__name__} has no levels"
        raise InputError(problem, "leave out --level, or use fiedler cluster --method auto", code="no_levels")
    model = clusterer.at(n_clusters)
    return Pipeline([*fitted.steps[:-1], (fitted.steps[-1][0], model)]) if isinstance(fitted, Pipeline) else model


def read_new_rows(output: Output, source: str, fitted: Any, notes: dict[str, Any], new: NewRows) -> Input:
    """Read new rows as those of the model were read, and check that they are of the same kind."""
    if notes.get("kind") == "graph":
        problem = "the model was fitted to the graph of its cells, to which new cells have no links"
        hint = "cluster the cells again with fiedler cluster --use-rep X_pca or X"
        raise InputError(problem, hint, code="fitted_to_graph")
    with output.working(f"reading {source}"):
        options = _reading_options(source, fitted, notes, text=new.text, size=new.size)
        dropped = parse_columns(new.drop)
        if needed := set(dropped) & set(options.get("features", ())):
            raise InputError(f"the model needs the column {min(needed)!r}", "do not drop it", code="column_needed")
        data = read_input(source, id=new.id, drop=dropped, skip_broken=new.skip_broken, **options)
    _check_matches_model(data, fitted, notes)
    return data


def _reading_options(
    source: str, fitted: Any, notes: dict[str, Any], *, text: str | None, size: int | None
) -> dict[str, Any]:
    """Return the options with which the model's input was read: text column, features, rows of cells, shape of images.

    The encoder of a model of tables finds its columns by name; models without one need all features as numbers.
    Images that were not resized in the fit have one size, to which new ones are resized with a warning.
    """
    is_folder_of_tables = Path(source).is_dir() and notes.get("kind") in ("table", "mixed")
    if source == "-" or is_folder_of_tables or is_table_file(Path(source)):
        text = text or notes.get("text")
        is_new = not text and encoder_of(fitted) is not None
        features = [] if text or is_new else notes.get("feature_names") or []
        names, missing = notes.get("id_name"), notes.get("missing") or ()
        options = {"text": text, "features": features, "is_new": is_new, "names": names}
        return {**options, "size": size, "missing": missing}
    if Path(source).suffix.lower() == H5AD:
        return {"text": text, "size": size, "use_rep": notes.get("representation"), "allow_graph": False}
    if not (Path(source).is_dir() or is_image(Path(source))):
        return {"text": text, "size": size}
    return {"text": text, "size": size or notes.get("size"), "image_shape": notes.get("image_shape")}


def encoder_of(fitted: Any) -> TableEncoder | None:
    """Return the encoder of a model of tables, or of a pipeline that begins with one."""
    first = fitted[0] if isinstance(fitted, Pipeline) else fitted
    return first if isinstance(first, TableEncoder) else getattr(first, "encoder_", None)


def naming_texts(data: Input, fitted: Any) -> AbstractContextManager[None]:
    """Name texts without known words in the warning about them."""
    if data.kind != "texts" or not isinstance(fitted, Pipeline):
        return nullcontext()
    return naming_texts_without_terms(data, lambda: np.flatnonzero(np.diff(fitted[0].transform(data.X).indptr) == 0))


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
        problem = f"{fields['value']!r} is not a {fields['kind']}, as in the fit"
        place = f"{Path(source).name!r}, column {fields['column']!r}, {location}"
        raise InputError(f"{place}: {problem}", error.hint, code=error.code, **fields) from None


def _check_matches_model(data: Input, fitted: Any, notes: dict[str, Any]) -> None:
    """Raise an error for rows of another kind or shape than the model was fitted to."""
    if KIND_NAMES[data.kind] != KIND_NAMES[notes.get("kind", data.kind)]:
        problem = f"the model was fitted to {KIND_NAMES[notes['kind']]}, but the input is {KIND_NAMES[data.kind]}"
        raise InputError(problem, "use the same kind of input", code="wrong_kind")
    if data.image_shape is not None and list(data.image_shape) != notes.get("image_shape"):
        expected, actual = ("x".join(map(str, shape)) for shape in (notes.get("image_shape") or (), data.image_shape))
        problem = f"the model was fitted to images of {expected}, but these are {actual}"
        raise InputError(problem, "convert them to the same size and colours", code="wrong_image_shape")
    n_features = getattr(fitted, "n_features_in_", None)
    if hasattr(data.X, "shape") and n_features not in (None, data.X.shape[1]):
        problem = f"the model was fitted to {n_features} columns, but the input has {data.X.shape[1]}"
        raise InputError(problem, "use the same columns", code="wrong_n_features")


# ------------------------------------------------------------------------------------------------------------- update


def update(
    *,
    folder: Annotated[Path, typer.Argument(metavar="RESULTS", help="A folder written by fiedler cluster.")],
    source: Source,
    new: NewRows,
    output: Output,
) -> None:
    """Add new rows to a folder of results; report moved rows, new clusters and drift."""
    folder = folder if folder.is_dir() else folder.parent
    results.finish_results(folder)
    path = folder / results.MODEL_FILE
    notes, fitted = read_notes(path), load(path)
    clusterer = fitted[-1] if isinstance(fitted, Pipeline) else fitted
    if not hasattr(clusterer, "update"):
        problem = f"rows cannot be added to a model of the class {type(clusterer).__name__}"
        hint = "cluster all rows again with fiedler cluster --method auto, to whose models rows can be added"
        raise InputError(problem, hint, code="no_update_method")
    results.check_folder(folder, source, force=True)
    ids, id_name = read_ids(folder / results.LABELS_FILE, len(clusterer.labels_))
    data = read_new_rows(output, source, fitted, notes, replace(new, id=new.id or notes.get("id")))
    steps = fitted[:-1] if isinstance(fitted, Pipeline) else None
    with output.working(f"adding {data.n_rows} rows"), naming_texts(data, fitted), naming_cells(data, source):
        changes = clusterer.update(steps.transform(data.X) if steps else data.X)
    if isinstance(fitted, ClusterPipeline):
        fitted.add_rows(data.columns)
    new_ids = continue_ids(ids, data.row_names)
    known = set(ids)
    if repeated := [name for name in new_ids if name in known]:
        output.note(f"{len(repeated)} new row(s) have the name of an old one ({first_few(repeated)}); both are kept")
    ids = [*ids, *new_ids]
    before: dict[str, Any] = {"title": folder.resolve().name, "settings": {}}
    with suppress(OSError, ValueError):  # without a summary, a report is made all the same
        before = read_summary(folder / results.SUMMARY_FILE)
    classes, lost = join_classes(before.get("truth"), data, notes.get("label_name"))
    if lost:
        output.note(f"{lost}, so the clusters are not compared with the known classes any more")
    with output.working("writing the report"):
        added = f"{data.n_rows} rows of {Path(source).name}"
        summary = _summarize(before, fitted, clusterer, notes, ids, classes, added=added)
        names = [cluster["name"] for cluster in summary["clusters"]]
        kept = {name: value for name, value in notes.items() if name != "written_by"}
        kept |= {"append": False, "cluster_names": names}
        with results.atomic_folder(folder) as draft:
            rows = (ids, to_numpy(clusterer.labels_), to_numpy(clusterer.memberships_), names, id_name)
            results.save_csv(draft / results.LABELS_FILE, results.write_labels, *rows)
            results.write_files(draft, fitted, kept, summary)
    scores = {} if classes is None else score_table(classes[0], to_numpy(clusterer.labels_))
    agreement = [] if classes is None else [format_agreement(scores)]
    written = f"written to {folder}: {', '.join(results.FILES)}"
    output.result(_as_json(folder, changes, ids, scores), "\n".join([str(changes), *agreement, written]))


def read_ids(path: Path, n_rows: int) -> tuple[list[str], str]:
    """Return the names of the rows of a model, and the name of their column, from the labels written with it."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file)
    except FileNotFoundError:
        problem = f"there is no {path.name} in {str(path.parent)!r}, which has the names of the rows"
        raise DataNotFoundError(problem, "choose a folder written by fiedler cluster", code="file_not_found") from None
    except ValueError:  # an empty file, or not text
        header, rows = [""], []
    if len(rows) != n_rows:
        problem = f"{str(path)!r} has {len(rows)} rows, but the model next to it has {n_rows}"
        raise FileFormatError(problem, "cluster all rows again", code="wrong_length")
    return [results.original_cell(row[0]) for row in rows], results.original_cell(header[0])


def continue_ids(ids: Sequence[str], new_ids: list[str]) -> list[str]:
    """Return the names of new rows; if all rows are numbered, the numbers go on.

    Examples
    --------
    >>> continue_ids(["0", "1"], ["0", "1", "2"])
    ['2', '3', '4']
    >>> continue_ids(["a", "b"], ["0", "1"])
    ['0', '1']
    """
    if list(ids) == number_rows(len(ids)) and new_ids == number_rows(len(new_ids)):
        return number_rows(len(ids) + len(new_ids))[len(ids) :]
    return new_ids


def join_classes(
    known: dict[str, Any] | None, data: Input, column: str | None
) -> tuple[tuple[np.ndarray, list[str]] | None, str | None]:
    """Return the codes and names of the known classes of old and new rows, and why there are none any more.

    ``known`` is the truth of the old rows in a summary, ``column`` the name of the column of classes.
    """
    if known is None:
        return None, None
    if column is None or data.table is None or column not in data.table.columns:
        named = "" if column is None else f" {column!r}"
        return None, f"the new rows have no column{named} of classes"
    codes, names = encode_labels(data.table.present(column))
    if (codes < 0).any():
        return None, f"{int((codes < 0).sum())} new row(s) have no class in column {column!r}"
    old = [known["classes"][code] for code in known["codes"]]
    return encode_labels([*old, *(names[code] for code in codes)]), None


def _summarize(
    before: dict[str, Any],
    fitted: Any,
    clusterer: Any,
    notes: dict[str, Any],
    ids: list[str],
    classes: tuple[np.ndarray, list[str]] | None,
    *,
    added: str,
) -> dict[str, Any]:
    """Return the summary of all rows, from what the model file contains of them and from the summary before."""
    earlier = before["settings"].get("rows added")
    settings = {**before["settings"], "rows added": f"{earlier}, {added}" if earlier else added}
    described, lost = _descriptions(fitted, clusterer, notes)
    names = notes.get("cluster_names") or []
    return summarize(
        clusterer,
        clusterer._rows_of_fit(),
        names=[*names, *[None] * (clusterer.n_clusters_ - len(names))],
        ids=ids,
        truth=None if classes is None else classes[0],
        class_names=None if classes is None else classes[1],
        title=before["title"],
        settings=settings | ({"columns": lost} if lost else {}),
        columns=[tuple(column.values()) for column in before.get("columns") or []] or None,
        command=results.command_line(),
        **described,
    )


def _descriptions(fitted: Any, clusterer: Any, notes: dict[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Return by what clusters are described (columns in their units, terms, images), and what is lost of it."""
    steps = dict(fitted.steps[:-1]) if isinstance(fitted, Pipeline) else {}
    rows, kind = clusterer._rows_of_fit(), notes["kind"]
    profiles = fitted.known_profiles() if isinstance(fitted, ClusterPipeline) else None
    if profiles is not None and profiles.columns and notes["feature_names"]:
        return {"original": profiles}, None
    if clusterer.view_ not in (ROWS, INDICATORS):
        return {}, LOST_COLUMNS.format(f"coordinates in the view {clusterer.view_!r}")
    if kind == "images":
        return {"images": np.asarray(rows).reshape(-1, *notes["image_shape"])}, None
    if kind == "texts":
        return {"feature_names": steps["terms"].get_feature_names_out()}, None
    encoder = encoder_of(fitted)
    if encoder is not None:
        columns = {"feature_names": encoder.get_feature_names_out()}
        if encoder.smoothing_ is None or clusterer.view_ == INDICATORS:
            return {"original": encoder.decode(to_numpy(rows)), **columns}, None
        return columns, LOST_COLUMNS.format("encoded columns")
    scaler = steps.get("scale")
    if isinstance(scaler, Normalizer):
        return {"feature_names": notes["feature_names"]}, LOST_COLUMNS.format("scaled columns")
    original = None if scaler is None else scaler.inverse_transform(to_numpy(rows))
    return {"original": original, "feature_names": notes["feature_names"]}, None


def _as_json(folder: Path, changes: UpdateResult, ids: list[str], scores: dict[str, float]) -> dict[str, Any]:
    """Return what has changed as plain values."""
    moves = zip(changes.moved.tolist(), changes.moved_from.tolist(), changes.moved_to.tolist())
    return {
        "rows": len(ids),
        "rows_added": len(ids) - changes.n_old,
        "ids": ids[changes.n_old :],
        "labels": to_numpy(changes.labels).tolist(),
        "moved": [{"id": ids[row], "from": before, "to": after} for row, before, after in moves],
        "new_clusters": changes.new_clusters,
        "reorganized": changes.is_reorganized,
        "drift": {**changes.drift._asdict(), "is_large": changes.drift.is_large},
        "scores": scores,
        "files": {name: str(folder / name) for name in results.FILES},
    }
