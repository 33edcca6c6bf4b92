"""Save fitted models to one file that contains arrays and plain values, and nothing that can be executed.

The file is an ``.npz`` archive: the arrays of the model, numbered, and one more array of bytes with a JSON text that
says where each of them belongs. Reading it never unpickles and never imports what the file names: classes are looked up
in :mod:`fiedler._registry`, and sparse matrices are checked entry by entry before compiled code uses them. Arrays of
torch and CuPy are copied to the host; a model that was fitted on a device is a NumPy model when it is read.

A node of the JSON text is a plain value (None, bool, number, string), a list, or an object with a ``kind``, which is a
key of :data:`CODECS`.
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
from .core.block_versions import is_dask_array
from .core.sparse import is_sparse, to_scipy
from .errors import DataNotFoundError, FileFormatError, InputError, InputTypeError, unreadable_for_lack_of_memory

MODEL_FORMAT = "fiedler model"
FORMAT_VERSION = 1  # raised when an older fiedler could not read what a newer one writes
JSON_MEMBER = "json"  # name of the array with the JSON text


class SizeLimit(NamedTuple):
    """Largest decompressed size that is read: ``n_bytes``, or ``ratio`` times the size of the file if that is more."""

    n_bytes: int
    ratio: int


# A file that decompresses to more is refused unread, in case it was crafted to exhaust the memory.
JSON_LIMIT = SizeLimit(10_000_000, 20)
TOTAL_LIMIT = SizeLimit(100_000_000, 100)

CALLBACK_ATTRIBUTES = ("_skl_callbacks", "_parent_callback_ctx")  # of scikit-learn; not part of a model


# ----------------------------------------------------------------------------------------------------- public functions


def save(model: BaseEstimator, path: str | os.PathLike[str], *, notes: dict[str, Any] | None = None) -> None:
    """Write a fitted model to one ``.npz`` file, completely or not at all.

    Parameters
    ----------
    model : estimator
        An estimator of fiedler, or a scikit-learn pipeline that ends in one.
    path : path
        Must end in ``.npz``.
    notes : dict, optional
        Plain values (None, bool, numbers, strings, lists of these) to store with it, for :func:`read_notes`.

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
        raise InputError(
            f"a model file must end in .npz; got {str(path)!r}",
            code="wrong_ending",
            parameter="path",
            value=str(path),
            file=str(path),
        )
    if not isinstance(model, BaseEstimator):
        raise InputTypeError(
            f"a model file contains an estimator; got {type(model).__name__}",
            code="not_an_estimator",
            parameter="model",
        )
    if not _are_valid_notes(notes or {}):
        raise InputTypeError(
            "notes must be a dictionary of plain values",
            "use None, bool, numbers, strings and lists of these",
            code="invalid_notes",
            parameter="notes",
        )
    writer = _Writer()
    content = {
        "format": MODEL_FORMAT,
        "version": FORMAT_VERSION,
        "written_by": ", ".join(f"{name} {number}" for name, number in versions().items()),
        "notes": notes or {},
        "model": writer.node(model, type(model).__name__),
    }
    arrays: dict[str, Any] = {JSON_MEMBER: np.frombuffer(json.dumps(content).encode(), np.uint8), **writer.arrays}
    with atomic_write(path) as draft:
        np.savez_compressed(draft, **arrays)
        with zipfile.ZipFile(draft) as archive:
            exceeds_limit = _exceeds_size_limit(draft, archive.infolist())
        if exceeds_limit:  # such as many zeros: stored without compression, so that `load` accepts the file
            np.savez(draft, **arrays)


def load(path: str | os.PathLike[str]) -> BaseEstimator:
    """Read a model from a file written by :func:`save`; no code from the file is executed.

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
    fiedler.errors.DataNotFoundError: there is no model file 'nothing.npz'
    """
    with _open(path) as file:
        content = _read_content(file, path)
        try:
            model = _Reader(file).value(content["model"])
        except MemoryError:
            raise unreadable_for_lack_of_memory(str(path)) from None
        except Exception as error:  # a crafted node may lead to any
            raise _invalid_file(path, f"is not a valid model file: {error}", code="invalid_model") from error
    if not isinstance(model, BaseEstimator):
        raise _invalid_file(path, "is not a valid model file: it contains no estimator", code="invalid_model")
    return model


def read_notes(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the notes stored with a model, and the versions that wrote the file under ``written_by``.

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
    with _open(path) as file:
        content = _read_content(file, path)
    return {**content["notes"], "written_by": content["written_by"]}


def _invalid_file(path: str | os.PathLike[str], problem: str, *, code: str) -> FileFormatError:
    return FileFormatError(f"{str(path)!r} {problem}", code=code, file=str(path))


def _open(path: str | os.PathLike[str]) -> Any:
    """Open the archive; arrays are read on access, and arrays of objects, which could run code, never are."""
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError
    except FileNotFoundError:
        raise DataNotFoundError(
            f"there is no model file {str(path)!r}", code="file_not_found", file=str(path)
        ) from None
    except (IsADirectoryError, PermissionError) as error:  # Windows denies the permission to open a folder
        if not os.path.isdir(path):
            raise
        raise _invalid_file(path, "is a folder, not a model file", code="not_a_model_file") from error
    except MemoryError:
        raise unreadable_for_lack_of_memory(str(path)) from None
    except Exception as error:  # a damaged archive fails in many ways, and NumPy then suggests to unpickle it
        raise _invalid_file(path, "is not a model file, or it is damaged", code="not_a_model_file") from error
    if file.zip is not None and _exceeds_size_limit(path, file.zip.infolist()):
        file.close()
        raise _invalid_file(path, "is not a valid model file: decompressed size exceeds the limit", code="size_limit")
    return file


def _exceeds_size_limit(path: str | os.PathLike[str], members: Iterable[zipfile.ZipInfo]) -> bool:
    """Whether an archive decompresses to more than the limits; no member is ever read beyond the size it states."""
    file_size = os.path.getsize(path)
    sizes = [(member.filename.removesuffix(".npy"), member.file_size) for member in members]
    json_size, total_size = sum(size for name, size in sizes if name == JSON_MEMBER), sum(size for _, size in sizes)
    return any(
        size > max(limit.n_bytes, limit.ratio * file_size)
        for size, limit in ((json_size, JSON_LIMIT), (total_size, TOTAL_LIMIT))
    )


def _read_content(file: Any, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read and check the JSON text of the file, except for the model in it."""
    try:
        content = json.loads(file[JSON_MEMBER].astype(np.uint8, casting="safe").tobytes())
        version, written_by = content["version"], str(content["written_by"])
        if content["format"] != MODEL_FORMAT or type(version) is not int or version < 1:
            raise ValueError
        notes, _ = content["notes"], content["model"]
    except MemoryError:
        raise unreadable_for_lack_of_memory(str(path)) from None
    except Exception:  # no such array, no JSON, or not of this format
        raise _invalid_file(
            path, "is not a model file: it was not written by fiedler.save", code="not_a_model_file"
        ) from None
    if version > FORMAT_VERSION:
        raise FileFormatError(
            f"{str(path)!r} has format {version}, written by {written_by}, but fiedler {__version__} reads formats up "
            f"to {FORMAT_VERSION}",
            "update fiedler",
            code="newer_format",
            file=str(path),
            version=version,
        )
    if not _are_valid_notes(notes):
        raise _invalid_file(path, "is damaged: its notes are not a dictionary of plain values", code="invalid_notes")
    return content


def _are_valid_notes(notes: Any) -> bool:
    return isinstance(notes, dict) and all(isinstance(name, str) and _is_plain(notes[name]) for name in notes)


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str)


# ---------------------------------------------------------------------------------------------- classes and their state
#
# A ValueError raised from here on is about one part of a file; `load` adds the name of the file.


def _class_by_name(name: str) -> type:
    module = storable_classes().get(name)
    if module is None:
        raise ValueError(f"it names a class {name!r} that is not allowed in model files")
    return getattr(import_module(module), name)


def _state(instance: Any) -> dict[str, Any]:
    """Return the attributes of an object, except callbacks, cached properties, and Dask arrays with all rows."""
    if is_dataclass(instance):
        return {field.name: getattr(instance, field.name) for field in fields(instance)}
    if isinstance(instance, tuple):
        return instance._asdict()  # type: ignore[attr-defined]
    cls = type(instance)
    return {
        name: value
        for name, value in vars(instance).items()
        if not isinstance(getattr(cls, name, None), cached_property)
        and name not in CALLBACK_ATTRIBUTES
        and not (name.endswith("_") and is_dask_array(value))
    }


def _restore(cls: type, state: dict[str, Any]) -> Any:
    """Create an object with a state; records are created by their constructors, which check the names of fields.

    Parameters missing in the state, because they were added later, take their defaults; those without a default are
    required. The state must not shadow methods or properties of the class.
    """
    if is_dataclass(cls) or issubclass(cls, tuple):
        return cls(**state)
    parameters = inspect.signature(cls).parameters
    defaults = {_attribute_of(cls, name): parameter.default for name, parameter in parameters.items()}
    state = {name: value for name, value in defaults.items() if value is not inspect.Parameter.empty} | state
    if missing := [name for name in defaults if name not in state]:
        raise ValueError(f"its {cls.__name__} lacks {', '.join(missing)}")
    if shadowing := [name for name in state if _is_method_or_property(cls, name)]:
        raise ValueError(f"its {cls.__name__} would replace methods or properties: {', '.join(shadowing)}")
    instance = cls.__new__(cls)
    vars(instance).update(state)
    return instance


def _attribute_of(cls: type, parameter: str) -> str:
    """Return the attribute that stores a constructor parameter; it is underscored if a property has its name."""
    return f"_{parameter}" if isinstance(inspect.getattr_static(cls, parameter, None), property) else parameter


def _is_method_or_property(cls: type, name: str) -> bool:
    attribute = inspect.getattr_static(cls, name, None)
    return callable(attribute) or hasattr(attribute, "__get__")


# ---------------------------------------------------------------------------------------------------- values and nodes


class _Writer:
    """Convert values to nodes, and collect their arrays, each once, under a number."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        # By id, together with the array itself, so that the id is not reused while writing.
        self._stored: dict[int, tuple[str, Any]] = {}

    def node(self, value: Any, location: str) -> Any:
        """Return the node of a value; error messages name its ``location``, such as ``LapGMM.graph``."""
        if value is None or (isinstance(value, bool | int | float | str) and not isinstance(value, np.generic)):
            return value
        if isinstance(value, list):
            return [self.node(item, location) for item in value]
        for kind, codec in CODECS.items():
            if codec.matches(value):
                return {"kind": kind, **codec.write(self, value, location)}
        raise InputTypeError(
            f"{location} is a {type(value).__name__}, which a model file cannot contain",
            "use arrays, plain values and objects of fiedler",
            code="not_storable",
            parameter=location,
            type=type(value).__name__,
        )

    def nodes(self, values: dict[str, Any], location: str) -> dict[str, Any]:
        """Return the nodes of the attributes of an object."""
        return {name: self.node(value, f"{location}.{name}") for name, value in values.items()}

    def store(self, array: Any) -> str:
        """Store an array and return its name in the file."""
        if id(array) not in self._stored:
            name = f"a{len(self.arrays)}"
            self.arrays[name] = to_numpy(array)
            self._stored[id(array)] = (name, array)
        return self._stored[id(array)][0]


class _Reader:
    """Convert nodes to values; none of them is trusted."""

    def __init__(self, file: Any) -> None:
        self.file, self._arrays = file, dict[str, np.ndarray]()

    def array(self, name: str) -> np.ndarray:
        """Return an array of the file, the same object on every call."""
        if name not in self._arrays:
            self._arrays[name] = self.file[name]
        return self._arrays[name]

    def value(self, node: Any) -> Any:
        """Return the value of a node."""
        if isinstance(node, list):
            return [self.value(item) for item in node]
        if not isinstance(node, dict):
            return node
        if node.get("kind") not in CODECS:
            raise ValueError(f"it contains a value of unknown kind {node.get('kind')!r}")
        return CODECS[node["kind"]].read(self, node)

    def values(self, nodes: dict[str, Any]) -> dict[str, Any]:
        """Return the attributes of an object."""
        return {name: self.value(node) for name, node in nodes.items()}


class Codec(NamedTuple):
    """How one kind of value is recognised, written and read."""

    matches: Callable[[Any], bool]
    write: Callable[[_Writer, Any, str], dict[str, Any]]
    read: Callable[[_Reader, dict[str, Any]], Any]


def _is_string_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object and all(isinstance(item, str) for item in value.flat)


def _read_string_array(reader: _Reader, node: dict[str, Any]) -> np.ndarray:
    return np.array([str(item) for item in node["items"]], dtype=object).reshape(node["shape"])


def _is_array(value: Any) -> bool:
    return (isinstance(value, np.ndarray) and value.dtype != object) or (is_foreign(value) and not is_sparse(value))


def _write_array(writer: _Writer, value: Any, location: str) -> dict[str, Any]:
    # The arrays of a graph are read-only, and stay so when they are read.
    read_only = isinstance(value, np.ndarray) and not value.flags.writeable
    return {"array": writer.store(value), **({"read_only": True} if read_only else {})}


def _read_array(reader: _Reader, node: dict[str, Any]) -> np.ndarray:
    array = reader.array(node["array"])
    if node.get("read_only"):
        array.flags.writeable = False
    return array


def _write_sparse(writer: _Writer, value: Any, location: str) -> dict[str, Any]:
    matrix = to_scipy(value)
    parts = {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}
    return {"shape": list(matrix.shape), **{name: _write_array(writer, part, location) for name, part in parts.items()}}


def _read_sparse(reader: _Reader, node: dict[str, Any]) -> sp.csr_array:
    parts = [_read_array(reader, node[name]) for name in ("data", "indices", "indptr")]
    matrix = sp.csr_array(tuple(parts), shape=tuple(int(size) for size in node["shape"]))
    matrix.check_format(full_check=True)  # compiled code would follow an index that is out of bounds
    return matrix


def _is_storable(value: Any) -> bool:
    name = type(value).__name__
    return name in storable_classes() and type(value) is _class_by_name(name)


def _write_object(writer: _Writer, value: Any, location: str) -> dict[str, Any]:
    return {"class": type(value).__name__, "state": writer.nodes(_state(value), location)}


def _read_object(reader: _Reader, node: dict[str, Any]) -> Any:
    name, state = node["class"], reader.values(node["state"])
    if name in STATE_CHECKS and not STATE_CHECKS[name](state):
        raise ValueError(f"the state of its {name} is inconsistent")
    return _restore(_class_by_name(name), state)


def _is_valid_vectorizer(state: dict[str, Any]) -> bool:
    """Whether documents are texts, not names of files, and the terms are numbered 0, 1, ..., each once."""
    columns = list(state.get("vocabulary_", {}).values())
    return state.get("input") == "content" and sorted(columns) == list(range(len(columns)))


def _is_valid_nmf(state: dict[str, Any]) -> bool:
    components = state.get("components_")
    sizes = [state.get(name) for name in ("_n_components", "n_components_", "n_features_in_")]
    return components is None or (
        components.ndim == 2 and sizes == [components.shape[0], components.shape[0], components.shape[1]]
    )


# State that compiled code of scikit-learn uses without a check.
STATE_CHECKS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "CountVectorizer": _is_valid_vectorizer,
    "HashingVectorizer": _is_valid_vectorizer,
    "NMF": _is_valid_nmf,
}


def _write_pipeline(writer: _Writer, value: Any, location: str) -> dict[str, Any]:
    """Return the steps only: the cache of a pipeline would be a folder of pickles."""
    return {"steps": [[name, writer.node(step, f"{location}.{name}")] for name, step in value.steps]}


def _read_pipeline(reader: _Reader, node: dict[str, Any]) -> Any:
    return Pipeline([(str(name), reader.value(step)) for name, step in node["steps"]])


def _read_random_state(reader: _Reader, node: dict[str, Any]) -> np.random.RandomState:
    state = reader.value(node["state"])
    if not 0 <= state[2] <= len(state[1]):
        raise ValueError("it contains a random state whose position is out of bounds")
    random_state = np.random.RandomState()
    random_state.set_state(state)
    return random_state


CODECS: dict[str, Codec] = {
    "dtype": Codec(
        lambda value: isinstance(value, type) and issubclass(value, np.generic),
        lambda writer, value, location: {"name": np.dtype(value).name},
        lambda reader, node: np.dtype(str(node["name"])).type,
    ),
    "strings": Codec(
        _is_string_array,
        lambda writer, value, location: {"items": value.ravel().tolist(), "shape": list(value.shape)},
        _read_string_array,
    ),
    "array": Codec(_is_array, _write_array, _read_array),
    "scalar": Codec(
        lambda value: isinstance(value, np.generic),
        lambda writer, value, location: {"array": writer.store(np.asarray(value))},
        lambda reader, node: reader.array(node["array"])[()],
    ),
    "sparse": Codec(is_sparse, _write_sparse, _read_sparse),
    "pipeline": Codec(lambda value: type(value) is Pipeline, _write_pipeline, _read_pipeline),
    "object": Codec(_is_storable, _write_object, _read_object),
    "random_state": Codec(
        lambda value: isinstance(value, np.random.RandomState),
        lambda writer, value, location: {"state": writer.node(value.get_state(), location)},
        _read_random_state,
    ),
    "tuple": Codec(
        lambda value: type(value) is tuple,
        lambda writer, value, location: {"items": writer.node(list(value), location)},
        lambda reader, node: tuple(reader.value(node["items"])),
    ),
    "set": Codec(
        lambda value: isinstance(value, set | frozenset),
        lambda writer, value, location: {"items": writer.node(sorted(value, key=repr), location)},
        lambda reader, node: set(reader.value(node["items"])),
    ),
    "dict": Codec(
        lambda value: type(value) is dict,
        lambda writer, value, location: {
            "items": [[writer.node(part, location) for part in pair] for pair in value.items()]
        },
        lambda reader, node: {reader.value(key): reader.value(value) for key, value in node["items"]},
    ),
}
