"""Fitted models in one file that holds arrays and plain values, and nothing that runs.

The file is an ``.npz``: the model's arrays by number and, as one more array of bytes, a JSON text that says where each
of them belongs. Reading it never unpickles and never imports what the file names: classes are looked up in
:mod:`fiedler._registry`, sparse matrices are checked entry by entry before any compiled code sees them. Arrays of torch and CuPy
are brought to the host; a model that was fitted on a device is a NumPy model when it is read.

A node of the JSON text is a plain value (None, bool, number, string), a list, or an object with a ``kind``, a row of
:data:`KINDS`.
"""

from __future__ import annotations

import inspect
import json
import os
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from ._files import atomic_write
from ._registry import storable_classes
from ._validation import is_foreign
from ._version import __version__
from ._versions import versions
from .core.backend import to_numpy
from .core.sparse import is_sparse, to_scipy

FORMAT = "fiedler model"
VERSION = 1  # of the format; raised when an older fiedler could not read what a newer one writes
TEXT = "json"  # the array that holds the text
# How far a file may unpack, its text and all of it: to so many bytes, or so many times its own size. More is a bomb.
TEXT_ROOM, ROOM = (10_000_000, 20), (100_000_000, 100)
LISTENERS = ("_skl_callbacks", "_parent_callback_ctx")  # who is told of a fit is no part of the model


# ------------------------------------------------------------------------------------------------- the public functions


def save(model: Any, path: str | os.PathLike[str], *, notes: dict[str, Any] | None = None) -> None:
    """Write a fitted model to one ``.npz`` file, whole or not at all.

    Parameters
    ----------
    model : estimator
        One of fiedler's, or a scikit-learn pipeline that ends in one.
    path : path
        Ends in ``.npz``.
    notes : dict, optional
        Plain values (None, truth values, numbers, strings, lists of these) to keep beside it, for :func:`read_notes`.

    Examples
    --------
    >>> import fiedler, tempfile, pathlib
    >>> X, y = fiedler.datasets.two_moons(n_samples=200, random_state=0)
    >>> model = fiedler.SpectralClustering(2, random_state=0).fit(X)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "moons.npz"
    >>> fiedler.save(model, path)
    >>> bool((fiedler.load(path).predict(X) == model.predict(X)).all())
    True
    """
    if not str(path).endswith(".npz"):
        raise ValueError(f"model files end in .npz; got {str(path)!r}")
    if not isinstance(model, BaseEstimator):
        raise TypeError(f"a model file holds an estimator; got {type(model).__name__}")
    if not _are_notes(notes or {}):
        raise TypeError("notes are a dictionary of plain values: None, truth values, numbers, strings, lists of these")
    writer = _Writer()
    text = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": _written_by(),
        "notes": notes or {},
        "model": writer.node(model, type(model).__name__),
    }
    arrays: dict[str, Any] = {TEXT: np.frombuffer(json.dumps(text).encode(), np.uint8), **writer.arrays}
    with atomic_write(path) as draft:
        np.savez_compressed(draft, **arrays)
        with zipfile.ZipFile(draft) as archive:
            packed_too_well = _is_bomb(draft, archive.infolist())
        if packed_too_well:  # zeros over zeros: written as they are, so that `load` need not wonder
            np.savez(draft, **arrays)


def load(path: str | os.PathLike[str]) -> Any:
    """The model in a file that :func:`save` wrote; reading runs no code that the file brings.

    Parameters
    ----------
    path : path

    Returns
    -------
    estimator

    Examples
    --------
    >>> import fiedler
    >>> fiedler.load("nothing.npz")
    Traceback (most recent call last):
    ...
    FileNotFoundError: there is no model file 'nothing.npz'
    """
    with _opened(path) as file:
        text = _text(file, path)
        try:
            model = _Reader(file).value(text["model"])
        except Exception as error:  # whatever a crafted node may lead to
            raise ValueError(f"{str(path)!r} holds no sound model: {error}") from error
    if not isinstance(model, BaseEstimator):
        raise ValueError(f"{str(path)!r} holds no model")
    return model


def read_notes(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What was noted beside the model, and by what it was written under ``written_by``.

    Parameters
    ----------
    path : path

    Examples
    --------
    >>> import fiedler, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "graph.npz"
    >>> fiedler.save(fiedler.KNNGraph(5), path, notes={"columns": ["a", "b"]})
    >>> fiedler.persistence.read_notes(path)["columns"]
    ['a', 'b']
    """
    with _opened(path) as file:
        text = _text(file, path)
    return {**text["notes"], "written_by": text["written_by"]}


def _written_by() -> str:
    return ", ".join(f"{name} {number}" for name, number in versions().items())


def _opened(path: str | os.PathLike[str]) -> Any:
    """The archive; its arrays are read when they are asked for, and one of objects, which could run code, never is."""
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no model file {str(path)!r}") from None
    except (IsADirectoryError, PermissionError) as error:
        raise type(error)(f"{str(path)!r} cannot be read: {error.strerror}") from None
    except Exception as error:  # a damaged archive fails in more ways than can be listed; NumPy's advice is to unpickle
        raise ValueError(f"{str(path)!r} is not a model file, or it is damaged") from error
    if file.zip is not None and _is_bomb(path, file.zip.infolist()):
        file.close()
        raise ValueError(f"{str(path)!r} is damaged, or meant to do harm: it unpacks to far more than it is")
    return file


def _is_bomb(path: str | os.PathLike[str], entries: Iterable[zipfile.ZipInfo]) -> bool:
    """Whether an archive would unpack beyond its room; no more is ever read of an entry than the size it states."""
    packed = os.path.getsize(path)
    sizes = [(entry.filename.removesuffix(".npy"), entry.file_size) for entry in entries]
    text, whole = sum(size for name, size in sizes if name == TEXT), sum(size for _, size in sizes)
    return any(size > max(least, times * packed) for size, (least, times) in ((text, TEXT_ROOM), (whole, ROOM)))


def _text(file: Any, path: str | os.PathLike[str]) -> dict[str, Any]:
    """The file's text, if it is one of ours and of a format that we know."""
    try:
        text = json.loads(file[TEXT].astype(np.uint8, casting="safe").tobytes())
        if text["format"] != FORMAT:
            raise ValueError
        version, written_by = int(text["version"]), str(text["written_by"])
        notes, _ = text["notes"], text["model"]
    except Exception:  # no such array, no JSON, or not what it should be
        raise ValueError(f"{str(path)!r} is not a model file: it was not written by fiedler.save") from None
    if version > VERSION:
        raise ValueError(
            f"{str(path)!r} has format {version}, written by {written_by}; this fiedler ({__version__}) reads formats "
            f"up to {VERSION}: update it"
        )
    if not _are_notes(notes):
        raise ValueError(f"{str(path)!r} is damaged: its notes are no dictionary of plain values")
    return text


def _are_notes(notes: Any) -> bool:
    return isinstance(notes, dict) and all(isinstance(name, str) and _is_plain(notes[name]) for name in notes)


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


# -------------------------------------------------------------------------------------------------------------- classes


def _class(name: str) -> type:
    """A class of the table."""
    home = storable_classes().get(name)
    if home is None:
        raise ValueError(f"it names a class {name!r} that no model file may hold")
    return getattr(import_module(home), name)


def _state(thing: Any) -> dict[str, Any]:
    """All that a thing remembers, but what it can work out again."""
    if is_dataclass(thing):
        return {field.name: getattr(thing, field.name) for field in fields(thing)}
    if isinstance(thing, tuple):
        return thing._asdict()  # type: ignore[attr-defined]
    return {
        name: value
        for name, value in vars(thing).items()
        if not _is_worked_out(type(thing), name) and name not in LISTENERS
    }


def _is_worked_out(cls: type, name: str) -> bool:
    return isinstance(getattr(cls, name, None), cached_property)


def _revived(cls: type, state: dict[str, Any]) -> Any:
    """A thing with this state; records are made by their constructors, which check their fields' names.

    A parameter that came with a later version takes its default; one without a default must be there. No state may
    stand before what the class itself does: a method, or a property.
    """
    if is_dataclass(cls) or issubclass(cls, tuple):
        return cls(**state)
    defaults = {_kept_as(cls, name): one.default for name, one in inspect.signature(cls).parameters.items()}
    state = {name: value for name, value in defaults.items() if value is not inspect.Parameter.empty} | state
    if lacking := [name for name in defaults if name not in state]:
        raise ValueError(f"it is damaged: its {cls.__name__} lacks {', '.join(lacking)}")
    if shadows := [name for name in state if _does(cls, name)]:
        raise ValueError(f"its {cls.__name__} would replace what the class itself does: {', '.join(shadows)}")
    thing = cls.__new__(cls)
    vars(thing).update(state)
    return thing


def _kept_as(cls: type, parameter: str) -> str:
    """Where a thing keeps a parameter; behind a property it is underscored."""
    return f"_{parameter}" if isinstance(inspect.getattr_static(cls, parameter, None), property) else parameter


def _does(cls: type, name: str) -> bool:
    """Whether a class has something of this name that can be called, or that works a value out."""
    found = inspect.getattr_static(cls, name, None)
    return callable(found) or hasattr(found, "__get__")


# -------------------------------------------------------------------------------------------------------------- writing


class _Writer:
    """Values to nodes; arrays are put aside under a number, each once."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._kept: dict[int, tuple[str, Any]] = {}  # by identity, beside the array, which so cannot be forgotten

    def node(self, value: Any, where: str) -> Any:
        """The node of a value; ``where`` is how a sentence calls it."""
        if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, np.generic)):
            return value
        if isinstance(value, list):
            return [self.node(one, where) for one in value]
        for name, kind in KINDS.items():
            if kind.fits(value):
                return {"kind": name, **kind.write(self, value, where)}
        raise TypeError(
            f"{where} is a {type(value).__name__}, which a model file cannot hold; it takes arrays, plain values and "
            "fiedler's own objects"
        )

    def nodes(self, values: dict[str, Any], where: str) -> dict[str, Any]:
        """The nodes of a thing's state."""
        return {name: self.node(value, f"{where}.{name}") for name, value in values.items()}

    def keep(self, array: Any) -> str:
        """The name under which an array is put aside."""
        if id(array) not in self._kept:
            name = f"a{len(self.arrays)}"
            self.arrays[name] = to_numpy(array)
            self._kept[id(array)] = (name, array)
        return self._kept[id(array)][0]


class _Reader:
    """Nodes to values, none of them trusted."""

    def __init__(self, file: Any) -> None:
        self.file, self._read = file, dict[str, np.ndarray]()

    def array(self, name: str) -> np.ndarray:
        """An array of the file; the same one for everybody who asks."""
        if name not in self._read:
            self._read[name] = self.file[name]
        return self._read[name]

    def value(self, node: Any) -> Any:
        """The value of a node."""
        if isinstance(node, list):
            return [self.value(one) for one in node]
        if not isinstance(node, dict):
            return node
        if node.get("kind") not in KINDS:
            raise ValueError(f"it holds something of the unknown kind {node.get('kind')!r}")
        return KINDS[node["kind"]].read(self, node)

    def values(self, nodes: dict[str, Any]) -> dict[str, Any]:
        """The values of a thing's state."""
        return {name: self.value(node) for name, node in nodes.items()}


# ---------------------------------------------------------------------------------------------------------- the kinds


class Kind(NamedTuple):
    """How one kind of value is recognised, written and read."""

    fits: Callable[[Any], bool]
    write: Callable[[_Writer, Any, str], dict[str, Any]]
    read: Callable[[_Reader, dict[str, Any]], Any]


def _is_strings(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object and all(isinstance(one, str) for one in value.flat)


def _read_strings(reader: _Reader, node: dict[str, Any]) -> np.ndarray:
    return np.array([str(one) for one in node["items"]], dtype=object).reshape(node["shape"])


def _is_array(value: Any) -> bool:
    return (isinstance(value, np.ndarray) and value.dtype != object) or (is_foreign(value) and not is_sparse(value))


def _write_array(writer: _Writer, value: Any, where: str) -> dict[str, Any]:
    # A graph's arrays are not to be written to: neither are they when they are read.
    frozen = isinstance(value, np.ndarray) and not value.flags.writeable
    return {"array": writer.keep(value), **({"frozen": True} if frozen else {})}


def _read_array(reader: _Reader, node: dict[str, Any]) -> np.ndarray:
    array = reader.array(node["array"])
    if node.get("frozen"):
        array.flags.writeable = False
    return array


def _write_sparse(writer: _Writer, value: Any, where: str) -> dict[str, Any]:
    matrix = to_scipy(value)
    parts = {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}
    return {"shape": list(matrix.shape), **{name: _write_array(writer, part, where) for name, part in parts.items()}}


def _read_sparse(reader: _Reader, node: dict[str, Any]) -> sp.csr_array:
    parts = [_read_array(reader, node[name]) for name in ("data", "indices", "indptr")]
    matrix = sp.csr_array(tuple(parts), shape=tuple(int(size) for size in node["shape"]))
    matrix.check_format(full_check=True)  # an index out of bounds would be followed by compiled code
    return matrix


def _write_thing(writer: _Writer, value: Any, where: str) -> dict[str, Any]:
    return {"class": type(value).__name__, "state": writer.nodes(_state(value), where)}


def _read_thing(reader: _Reader, node: dict[str, Any]) -> Any:
    name, state = node["class"], reader.values(node["state"])
    if name in SOUND and not SOUND[name](state):
        raise ValueError(f"it holds a {name} that is at odds with itself")
    return _revived(_class(name), state)


def _sound_terms(state: dict[str, Any]) -> bool:
    """Texts are texts and not names of files, and every term has a column of its own."""
    columns = list(state.get("vocabulary_", {}).values())
    return state.get("input") == "content" and sorted(columns) == list(range(len(columns)))


def _sound_factors(state: dict[str, Any]) -> bool:
    found = state.get("components_")
    sizes = [state.get(name) for name in ("_n_components", "n_components_", "n_features_in_")]
    return found is None or (found.ndim == 2 and sizes == [found.shape[0], found.shape[0], found.shape[1]])


# What compiled code of scikit-learn believes without a check of its own.
SOUND: dict[str, Callable[[dict[str, Any]], bool]] = {
    "CountVectorizer": _sound_terms,
    "HashingVectorizer": _sound_terms,
    "NMF": _sound_factors,
}


def _is_known(value: Any) -> bool:
    name = type(value).__name__
    return name in storable_classes() and type(value) is _class(name)


def _write_pipeline(writer: _Writer, value: Any, where: str) -> dict[str, Any]:
    """Its steps alone: a cache of its own would be a folder of pickles."""
    return {"steps": [[name, writer.node(step, f"{where}.{name}")] for name, step in value.steps]}


def _read_pipeline(reader: _Reader, node: dict[str, Any]) -> Any:
    return Pipeline([(str(name), reader.value(step)) for name, step in node["steps"]])


KINDS: dict[str, Kind] = {
    "dtype": Kind(
        lambda value: isinstance(value, type) and issubclass(value, np.generic),
        lambda writer, value, where: {"name": np.dtype(value).name},
        lambda reader, node: np.dtype(str(node["name"])).type,
    ),
    "strings": Kind(
        _is_strings,
        lambda writer, value, where: {"items": value.ravel().tolist(), "shape": list(value.shape)},
        _read_strings,
    ),
    "array": Kind(_is_array, _write_array, _read_array),
    "scalar": Kind(
        lambda value: isinstance(value, np.generic),
        lambda writer, value, where: {"array": writer.keep(np.asarray(value))},
        lambda reader, node: reader.array(node["array"])[()],
    ),
    "sparse": Kind(is_sparse, _write_sparse, _read_sparse),
    "pipeline": Kind(lambda value: type(value) is Pipeline, _write_pipeline, _read_pipeline),
    "thing": Kind(_is_known, _write_thing, _read_thing),
    "random_state": Kind(
        lambda value: isinstance(value, np.random.RandomState),
        lambda writer, value, where: {"state": writer.node(value.get_state(), where)},
        lambda reader, node: _random_state(reader.value(node["state"])),
    ),
    "tuple": Kind(
        lambda value: type(value) is tuple,
        lambda writer, value, where: {"items": writer.node(list(value), where)},
        lambda reader, node: tuple(reader.value(node["items"])),
    ),
    "set": Kind(
        lambda value: isinstance(value, set | frozenset),
        lambda writer, value, where: {"items": writer.node(sorted(value, key=repr), where)},
        lambda reader, node: set(reader.value(node["items"])),
    ),
    "dict": Kind(
        lambda value: type(value) is dict,
        lambda writer, value, where: {"items": [[writer.node(part, where) for part in pair] for pair in value.items()]},
        lambda reader, node: {reader.value(key): reader.value(value) for key, value in node["items"]},
    ),
}


def _random_state(state: Any) -> np.random.RandomState:
    if not 0 <= state[2] <= len(state[1]):
        raise ValueError("it holds a generator of random numbers that points beyond its state")
    found = np.random.RandomState()
    found.set_state(state)
    return found
