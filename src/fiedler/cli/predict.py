"""``fiedler predict`` and ``update``: assign new rows to the clusters of a model, or add them to its results."""

from __future__ import annotations

import csv
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer

from .._validation import choose, first_few
from ..core.arrays import to_numpy
from ..errors import DataNotFoundError, FiedlerWarning, FileFormatError, InputError, ignore_warnings, warn
from ..io import Input, read_input
from ..io.arrays import H5AD, is_image
from ..io.formats import is_table_file
from ..io.record import CsvStyle, encode_labels, number_rows
from ..manifold import UpdateResult
from ..manifold.candidates import ROWS
from ..manifold.explain import ClusterPipeline
from ..manifold.update import equal_rows
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
    """Predict the clusters of new rows: id, cluster, confidence and memberships as CSV."""
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
    named = (data.row_names, labels, memberships, names, data.id_header, None, data.style)
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
        options = _reading_options(source, fitted, notes, new)
        dropped = parse_columns(new.drop)
        if needed := set(dropped) & set(options.get("features", ())):
            raise InputError(f"the model needs the column {min(needed)!r}", "do not drop it", code="column_needed")
        data = read_input(source, id=new.id, drop=dropped, skip_broken=new.skip_broken, **options)
    _check_matches_model(data, fitted, notes)
    return data


def _reading_options(source: str, fitted: Any, notes: dict[str, Any], new: NewRows) -> dict[str, Any]:
    """Return the options with which the model's input was read: text column, features, rows of cells, shape of images.

    The encoder of a model of tables finds its columns by name; models without one need all features as numbers.
    Images that were not resized in the fit have one size, to which new ones are resized with a warning.
    """
    text, size = new.text, new.size
    is_folder_of_tables = Path(source).is_dir() and notes.get("kind") in ("table", "mixed")
    if source == "-" or is_folder_of_tables or is_table_file(Path(source)):
        text = text or notes.get("text")
        is_new = not text and encoder_of(fitted) is not None
        features = [] if text or is_new else notes.get("feature_names") or []
        names, missing = notes.get("id_name"), [*(notes.get("missing") or ()), *parse_columns(new.missing)]
        options = {"text": text, "features": features, "is_new": is_new, "names": names}
        return {**options, "size": size, "missing": missing}
    if Path(source).suffix.lower() == H5AD:
        return {"text": text, "size": size, "use_rep": notes.get("representation"), "allow_graph": False}
    if not (Path(source).is_dir() or is_image(Path(source))):
        return {"text": text, "size": size}
    return {"text": text, "size": size or notes.get("size"), "image_shape": notes.get("image_shape")}


def encoder_of(fitted: Any) -> TableEncoder | None:
    """Return the encoder of a model of tables, or of a pipeline that begins with one, which knows their columns."""
    first = fitted[0] if isinstance(fitted, Pipeline) else fitted
    encoder = first if isinstance(first, TableEncoder) else getattr(first, "encoder_", None)
    return encoder if hasattr(encoder, "feature_names_in_") else None


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


DUPLICATES = {
    "refuse": "end with an error",
    "replace": "replace the old rows",
    "add": "add them as further rows, without a comparison with old ones",
}
NUMBERED = re.compile(r"(line|row) \d+")  # the names of texts without names


def update(
    *,
    folder: Annotated[Path, typer.Argument(metavar="RESULTS", help="A folder written by fiedler cluster.")],
    source: Annotated[
        str | None, typer.Argument(metavar="INPUT", help="The new rows, as for fiedler predict; none with --undo.")
    ] = None,
    on_duplicate: Annotated[
        str,
        typer.Option(
            metavar="WHAT",
            help="What to do with new rows that have the name of an old row and other values: "
            f"{', '.join(f'{name} ({what})' for name, what in DUPLICATES.items())}.",
        ),
    ] = "refuse",
    undo: Annotated[bool, typer.Option("--undo", help="Restore the results before the last update.")] = False,
    new: NewRows,
    output: Output,
) -> None:
    """Add new rows to a folder of results; report moved rows, new clusters and drift."""
    folder = folder.parent if folder.is_file() else folder
    results.finish_results(folder)
    choose(DUPLICATES, on_duplicate, option="on_duplicate")
    if undo or source is None:
        undo_update(output, folder, source, undo=undo)
        return
    results.check_folder(folder, source, force=True)
    stored = StoredResults.load(folder)
    fitted, notes = stored.fitted, stored.notes
    data = read_new_rows(output, source, fitted, notes, replace(new, id=new.id or notes.get("id")))
    old = stored.rows_for(data)
    with output.working(f"adding {data.n_rows} rows"), naming_texts(data, fitted), naming_cells(data, source):
        rows = fitted[:-1].transform(data.X) if isinstance(fitted, Pipeline) and len(fitted) > 1 else data.X
        used, replaces = match_rows(old, stored.clusterer._check_new_points(rows), data.row_names, on_duplicate)
        with ignore_warnings(FiedlerWarning):  # which the line above has given
            changes = stored.clusterer.update(take_rows(rows, used), replaces=replaces) if len(used) else None
    if changes is None:
        text = f"nothing was changed: all {data.n_rows} rows of {results.source_title(source)} are in {folder} already"
        output.result(_as_json(folder, None, stored.ids, [], {}, data.n_rows), text)
        return
    if isinstance(fitted, ClusterPipeline) and data.columns is not None:
        places = np.where(replaces >= 0, replaces, len(stored.ids) - 1 + np.cumsum(replaces < 0))
        fitted.add_rows(take_rows(data.columns, used), places)
    added = old.names_of([data.row_names[row] for row in used[replaces < 0]])
    known = set(stored.ids)
    if repeated := [name for name in added if name in known]:
        output.note(f"{len(repeated)} new row(s) have the name of an old one ({first_few(repeated)}); both are kept")
    what = f"{len(used)} rows of {results.source_title(source)}"
    what += ", some in place of old ones" if len(changes.replaced) else ""
    with output.working("writing the report"):
        scores = _write_update(stored, data, added, (used, replaces), what=what)
    n_known, ids = data.n_rows - len(used), [*stored.ids, *added]
    lines = [str(changes), *([f"rows left out, as they are in the results already: {n_known}"] if n_known else [])]
    lines += [format_agreement(scores)] if scores else []
    lines.append(f"written to {folder}: {', '.join(results.FILES)}")
    rest = iter(added)
    new_ids = [ids[place] if place >= 0 else next(rest) for place in replaces]
    output.result(_as_json(folder, changes, ids, new_ids, scores, n_known), "\n".join(lines))


def take_rows(X: Any, numbers: np.ndarray) -> Any:
    """Return some rows of an array, or of a table of columns."""
    if not isinstance(X, Mapping):
        return X[numbers]
    take = lambda cells: cells[numbers] if isinstance(cells, np.ndarray) else type(cells)(cells[i] for i in numbers)  # noqa: E731
    return {name: take(cells) for name, cells in X.items()}


class StoredResults(NamedTuple):
    """A folder of results to which rows can be added."""

    folder: Path
    notes: dict[str, Any]
    fitted: Any
    clusterer: Any
    ids: list[str]
    id_header: str
    style: CsvStyle

    @classmethod
    def load(cls, folder: Path) -> StoredResults:
        """Load the results, or raise an error if rows cannot be added to them."""
        path = folder / results.MODEL_FILE
        notes, fitted = read_notes(path), load(path)
        clusterer = fitted[-1] if isinstance(fitted, Pipeline) else fitted
        if not hasattr(clusterer, "update"):
            problem = f"rows cannot be added to a model of the class {type(clusterer).__name__}"
            hint = "cluster all rows again with fiedler cluster --method auto, to whose models rows can be added"
            raise InputError(problem, hint, code="no_update_method")
        style = CsvStyle(*(notes.get("csv_style") or ()))
        ids, id_header = read_ids(folder / results.LABELS_FILE, len(clusterer.labels_), style)
        return cls(folder, notes, fitted, clusterer, ids, id_header, style)

    @property
    def parts(self) -> list[int]:
        """How many rows the input of the fit and those of updates have added."""
        return self.notes.get("parts") or [len(self.ids)]

    def rows_for(self, data: Input) -> OldRows:
        """Return the rows, with which new ones are compared by name if both have names."""
        have_names = self.notes.get("id") is not None or self.ids != number_rows(len(self.ids))
        return OldRows(self.clusterer, self.ids, self.parts, have_names and has_names(data))


def _write_update(
    stored: StoredResults, data: Input, added: list[str], match: tuple[np.ndarray, np.ndarray], *, what: str
) -> dict[str, float]:
    """Write the results of all rows, and return the scores of the clusters if all classes are known."""
    folder, notes, clusterer = stored.folder, stored.notes, stored.clusterer
    before: dict[str, Any] = {"title": folder.resolve().name, "settings": {}}
    with suppress(OSError, ValueError):  # without a summary, a report is made all the same
        before = read_summary(folder / results.SUMMARY_FILE)
    classes, lost = join_classes(before.get("truth"), data, notes.get("label_name"), *match)
    if lost:
        problem = f"{lost}, so the clusters are not compared with the known classes any more"
        warn(problem, code="classes_lost")
    ids = [*stored.ids, *added]
    summary = _summarize(before, stored.fitted, clusterer, notes, ids, classes, added=what)
    names = [cluster["name"] for cluster in summary["clusters"]]
    kept = {name: value for name, value in notes.items() if name != "written_by"}
    kept |= {"append": False, "cluster_names": names, "parts": [*stored.parts, len(added)]}
    labels, memberships = to_numpy(clusterer.labels_), to_numpy(clusterer.memberships_)
    content = (ids, labels, memberships, names, stored.id_header, None, stored.style)
    with results.atomic_folder(folder) as draft:
        results.save_csv(draft / results.LABELS_FILE, results.write_labels, *content)
        results.write_files(draft, stored.fitted, kept, summary)
        results.keep_previous(folder, draft)
    return {} if classes is None else score_table(classes[0], labels)


def undo_update(output: Output, folder: Path, source: str | None, *, undo: bool) -> None:
    """Restore the results before the last update."""
    if source is not None or not undo:
        problem = "--undo takes no new rows" if undo else "there are no new rows"
        raise InputError(problem, "give either new rows or --undo", code="invalid_parameter")
    results.restore_previous(folder)
    files = {name: str(folder / name) for name in results.FILES}
    output.result({"undone": True, "files": files}, f"the last update of {folder} was undone")


def has_names(data: Input) -> bool:
    """Whether rows have names of their own, not only numbers."""
    if data.table is not None:
        return data.id_name is not None
    is_numbered = data.row_names == number_rows(data.n_rows) or all(map(NUMBERED.fullmatch, data.row_names))
    return not is_numbered


class OldRows(NamedTuple):
    """The rows of a model: their names, and how many the input of the fit and those of updates had."""

    clusterer: Any
    ids: list[str]
    parts: list[int]
    is_named: bool

    def names_of(self, added: list[str]) -> list[str]:
        """Return the names under which rows are added."""
        return added if self.is_named else continue_ids(self.ids, added)

    def have(self, points: Any, start: int) -> bool:
        """Whether points equal the rows of the model from a number on."""
        return bool(equal_rows(self.clusterer, points, start + np.arange(points.shape[0])).all())

    def has_input(self, points: Any, names: list[str]) -> bool:
        """Whether points are all the rows of an earlier input, in the same order."""
        starts = np.cumsum([0, *self.parts])
        parts = [start for start, size in zip(starts, self.parts) if size == len(names)]
        return any(
            (not self.is_named or self.ids[start : start + len(names)] == names) and self.have(points, start)
            for start in parts
        )


def match_rows(old: OldRows, points: Any, names: list[str], on_duplicate: str) -> tuple[np.ndarray, np.ndarray]:
    """Return which new rows are used, and the number of the old row that each of these replaces, -1 for none.

    Rows that are in the model already are left out: all of an input that is given again, the beginning of one that has
    grown if its rows have no names, and those that have the name and the values of an old row.
    """
    m, n = len(names), len(old.ids)
    if on_duplicate == "add":
        return np.arange(m), np.full(m, -1)
    if old.has_input(points, names):
        return np.arange(0), np.arange(0)
    if not old.is_named:
        has_grown = m >= n and old.have(points[:n], 0)
        used = np.arange(n if has_grown else 0, m)
        return used, np.full(len(used), -1)
    places: dict[str, list[int]] = {}
    for number, name in enumerate(old.ids):
        places.setdefault(name, []).append(number)
    pairs = [(row, number) for row, name in enumerate(names) if name for number in places.get(name, ())]
    is_known, is_changed, replaces = np.zeros(m, dtype=bool), np.zeros(m, dtype=bool), np.full(m, -1)
    if pairs:
        new, numbers = np.array(pairs).T
        is_known[new[equal_rows(old.clusterer, points[new], numbers)]] = True
        is_changed[new] = True
        is_changed &= ~is_known
        replaces[new] = numbers
    replaces[~is_changed] = -1
    _check_changed([names[row] for row in np.flatnonzero(is_changed)], m, places, on_duplicate)
    used = np.flatnonzero(~is_known)
    return used, replaces[used]


def _check_changed(changed: list[str], n_rows: int, places: dict[str, list[int]], on_duplicate: str) -> None:
    """Raise an error if rows with the name of an old one must not, or cannot, replace it."""
    several = {name for name, count in Counter(changed).items() if count > 1 or len(places[name]) > 1}
    if on_duplicate == "refuse" and changed:
        problem = f"{len(changed)} of the {n_rows} new rows have the name of an old row, but other values"
        hint = "choose --on-duplicate replace to take the new values, or --on-duplicate add to keep both"
        raise InputError(f"{problem} ({first_few(changed)})", hint, code="duplicate_rows", row_names=changed)
    if several:
        names = sorted(several)
        problem = f"it is not clear which rows to replace, as several have the same name ({first_few(names)})"
        raise InputError(problem, "give each row a name of its own, or choose --on-duplicate add", code="duplicate_ids")


def read_ids(path: Path, n_rows: int, style: CsvStyle) -> tuple[list[str], str]:
    """Return the names of the rows of a model, and the name of their column, from the labels written with it."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            header, *rows = csv.reader(file, delimiter=style.delimiter)
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
    known: dict[str, Any] | None, data: Input, column: str | None, used: np.ndarray, replaces: np.ndarray
) -> tuple[tuple[np.ndarray, list[str]] | None, str | None]:
    """Return the codes and names of the known classes of old and new rows, and why there are none any more.

    ``known`` is the truth of the old rows in a summary, ``column`` the name of the column of classes; the rows ``used``
    replace old ones, or are added where ``replaces`` is -1.
    """
    if known is None:
        return None, None
    if column is None or data.table is None or column not in data.table.columns:
        named = "" if column is None else f" {column!r}"
        return None, f"the new rows have no column{named} of classes"
    codes, names = encode_labels(data.table.present(column))
    codes = codes[used]
    if (codes < 0).any():
        return None, f"{int((codes < 0).sum())} new row(s) have no class in column {column!r}"
    classes = [known["classes"][code] for code in known["codes"]]
    for code, place in zip(codes, replaces):
        if place >= 0:
            classes[place] = names[code]
    return encode_labels([*classes, *(names[code] for code in codes[replaces < 0])]), None


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


def _as_json(
    folder: Path,
    changes: UpdateResult | None,
    ids: list[str],
    new_ids: list[str],
    scores: dict[str, float],
    n_known: int,
) -> dict[str, Any]:
    """Return what has changed, if anything has, as plain values."""
    common = {"rows": len(ids), "rows_known": n_known, "ids": new_ids}
    if changes is None:
        return {**common, "rows_added": 0, "labels": [], "replaced": [], "moved": [], "new_clusters": [], "files": {}}
    moves = zip(changes.moved.tolist(), changes.moved_from.tolist(), changes.moved_to.tolist())
    return {
        **common,
        "rows_added": len(ids) - changes.n_old,
        "labels": to_numpy(changes.labels).tolist(),
        "replaced": [ids[row] for row in changes.replaced],
        "moved": [{"id": ids[row], "from": before, "to": after} for row, before, after in moves],
        "new_clusters": changes.new_clusters,
        "empty_clusters": changes.empty_clusters,
        "reorganized": changes.is_reorganized,
        "drift": {**changes.drift._asdict(), "is_large": changes.drift.is_large, "sentence": str(changes.drift)},
        "scores": scores,
        "files": {name: str(folder / name) for name in results.FILES},
    }
