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
import math
import os
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache, cached_property, lru_cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from ._archive import Archive, SizeLimit, check_ending, is_storable_dtype, open_archive, write_archive
from ._model_schema import Sizes, check_state, check_steps
from ._registry import storable_classes
from ._validation import is_foreign
from ._version import __version__, versions
from .core.arrays import to_numpy
from .core.fitting import is_dask_array
from .core.sparse import checked_csr, is_sparse, to_scipy
from .errors import FileFormatError, InputTypeError

MODEL_FORMAT = "fiedler model"
FORMAT_VERSION = 1  # raised when an older fiedler could not read what a newer one writes
JSON_MEMBER = "json"  # name of the array with the JSON text


JSON_LIMIT = SizeLimit(10_000_000, 20)  # of the JSON text, in addition to that of the archive
LIMITS = {JSON_MEMBER: JSON_LIMIT}
CONTENT_KEYS = ("format", "version", "written_by", "notes", "model")

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
    check_ending(path, "model file")
    if not isinstance(model, BaseEstimator):
        raise InputTypeError(
            f"a model file contains an estimator; got {type(model).__name__}",
            code="not_an_estimator",
            parameter="model",
        )
    if notes is not None and not _are_valid_notes(notes):
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
    _check_readable(content["model"], writer.arrays)
    arrays: dict[str, Any] = {JSON_MEMBER: np.frombuffer(json.dumps(content).encode(), np.uint8), **writer.arrays}
    write_archive(path, arrays, LIMITS)


def _check_readable(node: Any, arrays: dict[str, np.ndarray]) -> None:
    """Raise an error if :func:`load` would refuse the model, so that no file is written that cannot be read."""
    try:
        _Reader(_Arrays(arrays)).value(node)
    except ValueError as error:
        raise InputTypeError(
            f"the model cannot be saved: {error}", "fit it again", code="not_storable", parameter="model"
        ) from error


class _Arrays(NamedTuple):
    """Arrays in the place of an archive."""

    arrays: dict[str, np.ndarray]

    def read(self, name: str) -> np.ndarray:
        """Return an array."""
        return self.arrays[name]


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
    with open_archive(path, "model file", code="not_a_model_file", limits=LIMITS) as archive:
        return _read_model(archive, path)


def _read_model(archive: Archive, path: str | os.PathLike[str]) -> BaseEstimator:
    """Read the model in an archive; errors name the file ``path``."""
    content = _read_content(archive, path)
    try:
        reader = _Reader(archive)
        model = reader.value(content["model"])
        reader.check_all_read()
        if not isinstance(model, BaseEstimator):
            raise ValueError("it contains no estimator")
    except MemoryError:
        raise
    except Exception as error:  # a crafted node may lead to any
        reason = " ".join(str(error).split())  # scikit-learn's have several lines
        raise _invalid_file(path, f"is not a valid model file: {reason}", code="invalid_model") from error
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
    with open_archive(path, "model file", code="not_a_model_file", limits=LIMITS) as archive:
        content = _read_content(archive, path)
    return {**content["notes"], "written_by": content["written_by"]}


def _invalid_file(path: str | os.PathLike[str], problem: str, *, code: str) -> FileFormatError:
    return FileFormatError(f"{str(path)!r} {problem}", code=code, file=str(path))


def _read_content(archive: Archive, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read and check the JSON text of the file, except for the model in it."""
    try:
        content = _parse_json(archive.read(JSON_MEMBER))
        version, written_by, notes = content["version"], content["written_by"], content["notes"]
        if content["format"] != MODEL_FORMAT or type(version) is not int or version < 1:
            raise ValueError
    except MemoryError:
        raise
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
    if sorted(content) != sorted(CONTENT_KEYS) or not _is_text(written_by):
        raise _invalid_file(path, "is damaged: its JSON text has missing or unknown parts", code="not_a_model_file")
    return content


def _parse_json(text: np.ndarray) -> Any:
    """Parse a JSON text of ASCII characters, in which no object has two values of one name."""
    if text.dtype != np.uint8 or text.ndim != 1:
        raise ValueError("its JSON text is not an array of bytes")
    return json.loads(text.tobytes().decode("ascii"), object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a name in its JSON text occurs twice")
    return content


def _are_valid_notes(notes: Any) -> bool:
    return isinstance(notes, dict) and all(_is_text(name) and _is_plain(notes[name]) for name in notes)


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float) or _is_text(value)


def _is_text(value: Any) -> bool:
    """Whether a value is a string that can be printed; one with half of a surrogate pair cannot."""
    return isinstance(value, str) and value == value.encode(errors="ignore").decode()


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


def _complete(cls: type, state: dict[str, Any]) -> dict[str, Any]:
    """Return a state with the defaults of parameters that were added later; those without a default are required."""
    defaults = _defaults(cls)
    required = [name for name, value in defaults.items() if value is inspect.Parameter.empty]
    if missing := [name for name in required if name not in state]:
        raise ValueError(f"its {cls.__name__} lacks {', '.join(missing)}")
    if _is_record(cls):  # whose constructor adds the defaults
        return state
    if shadowing := [name for name in state if _is_method_or_property(cls, name)]:
        raise ValueError(f"its {cls.__name__} would replace methods or properties: {', '.join(shadowing)}")
    return {name: value for name, value in defaults.items() if name not in required} | state


@cache
def _defaults(cls: type) -> dict[str, Any]:
    """Return the attributes that store constructor parameters, with the defaults of these."""
    parameters = inspect.signature(cls).parameters
    return {_attribute_of(cls, name): parameter.default for name, parameter in parameters.items()}


def _restore(cls: type, state: dict[str, Any]) -> Any:
    """Create an object with a state."""
    if _is_record(cls):
        return cls(**state)
    instance: Any = object.__new__(cls)
    vars(instance).update(state)
    return instance


def _is_record(cls: type) -> bool:
    return is_dataclass(cls) or issubclass(cls, tuple)


def _attribute_of(cls: type, parameter: str) -> str:
    """Return the attribute that stores a constructor parameter; it is underscored if a property has its name."""
    return f"_{parameter}" if isinstance(inspect.getattr_static(cls, parameter, None), property) else parameter


@lru_cache(maxsize=2**12)
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
        is_plain = isinstance(value, bool | int | float) or _is_text(value)
        if value is None or (is_plain and not isinstance(value, np.generic)):
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

    def __init__(self, archive: Any) -> None:
        self.archive, self._arrays = archive, dict[str, np.ndarray]()
        # By id, together with the object itself, so that the id is not reused while reading.
        self._objects: dict[int, tuple[Any, Sizes]] = {}

    def array(self, name: str) -> np.ndarray:
        """Return an array of the file, the same object on every call."""
        if name not in self._arrays:
            self._arrays[name] = self.archive.read(name)
        return self._arrays[name]

    def check_all_read(self) -> None:
        """Raise an error unless the file consists of the JSON text and the arrays to which it refers, in order."""
        if self.archive.names != (JSON_MEMBER, *(f"a{i}" for i in range(len(self._arrays)))):
            raise ValueError("it has arrays that are not part of the model, or in another order")

    def sizes_of(self, instance: Any) -> Sizes:
        """Return the sizes of an object of the file."""
        return self._objects[id(instance)][1]

    def restore(self, cls: type, state: dict[str, Any]) -> Any:
        """Check the state of an object, create the object and note down its sizes."""
        state = _complete(cls, state)
        sizes = check_state(cls, state, self.sizes_of)
        instance = _restore(cls, state)
        self._objects[id(instance)] = (instance, sizes)
        return instance

    def value(self, node: Any) -> Any:
        """Return the value of a node."""
        if isinstance(node, list):
            return [self.value(item) for item in node]
        if not isinstance(node, dict):
            if isinstance(node, str) and not _is_text(node):
                raise ValueError("it contains a string that is not valid Unicode")
            return node
        kind = node.get("kind")
        if not isinstance(kind, str) or kind not in CODECS:
            raise ValueError(f"it contains a value of unknown kind {kind!r}")
        codec, names = CODECS[kind], node.keys() - {"kind"}
        if not set(codec.parts) <= names <= {*codec.parts, *codec.optional_parts}:
            raise ValueError(f"it contains a value of kind {kind!r} with other parts than {', '.join(codec.parts)}")
        return codec.read(self, node)

    def values(self, nodes: Any) -> dict[str, Any]:
        """Return the attributes of an object."""
        return {name: self.value(node) for name, node in _expect(nodes, dict, "the state of an object").items()}

    def items(self, nodes: Any) -> list[Any]:
        """Return the values in a list."""
        return [self.value(node) for node in _expect(nodes, list, "the items of a collection")]


def _expect(node: Any, cls: type, what: str) -> Any:
    """Return a node of the JSON text that must be of a class."""
    if type(node) is not cls:
        raise ValueError(f"{what} must be a {cls.__name__}, not {type(node).__name__}")
    return node


class Codec(NamedTuple):
    """How one kind of value is recognised, written and read, and the parts of its node."""

    matches: Callable[[Any], bool]
    write: Callable[[_Writer, Any, str], dict[str, Any]]
    read: Callable[[_Reader, dict[str, Any]], Any]
    parts: tuple[str, ...]
    optional_parts: tuple[str, ...] = ()


def _is_string_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype == object and all(map(_is_text, value.flat))


def _read_string_array(reader: _Reader, node: dict[str, Any]) -> np.ndarray:
    items, shape = reader.items(node["items"]), _read_shape(node["shape"])
    if math.prod(shape) != len(items) or not all(isinstance(item, str) for item in items):
        raise ValueError(f"an array of {len(items)} strings has the shape {shape}")
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array.reshape(shape)


def _read_shape(node: Any) -> tuple[int, ...]:
    shape = tuple(_expect(node, list, "a shape"))
    if not all(type(size) is int and 0 <= size < 2**63 for size in shape):
        raise ValueError("a shape has sizes that are not integers from 0")
    return shape


def _is_array(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return is_storable_dtype(value.dtype)
    return is_foreign(value) and not is_sparse(value)


def _write_array(writer: _Writer, value: Any, location: str) -> dict[str, Any]:
    # The arrays of a graph are read-only, and stay so when they are read.
    read_only = isinstance(value, np.ndarray) and not value.flags.writeable
    return {"array": writer.store(value), **({"read_only": True} if read_only else {})}


def _read_array(reader: _Reader, node: dict[str, Any]) -> np.ndarray:
    array = reader.array(_expect(node["array"], str, "the name of an array"))
    if node.get("read_only", True) is not True:
        raise ValueError("an array that is not read-only has no such part")
    if "read_only" in node:
        array.flags.writeable = False
    return array


def _read_scalar(reader: _Reader, node: dict[str, Any]) -> Any:
    array = reader.array(_expect(node["array"], str, "the name of an array"))
    if array.ndim:
        raise ValueError(f"a scalar has the shape {array.shape}")
    return array[()]


def _write_sparse(writer: _Writer, value: Any, location: str) -> dict[str, Any]:
    matrix = to_scipy(value)
    parts = {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}
    return {"shape": list(matrix.shape), **{name: _write_array(writer, part, location) for name, part in parts.items()}}


def _read_sparse(reader: _Reader, node: dict[str, Any]) -> sp.csr_array:
    parts = [
        reader.value({"kind": "array"} | _expect(node[name], dict, name)) for name in ("data", "indices", "indptr")
    ]
    return checked_csr(parts[0], parts[1], parts[2], _read_shape(node["shape"]))


def _is_storable(value: Any) -> bool:
    name = type(value).__name__
    return name in storable_classes() and type(value) is _class_by_name(name)


def _write_object(writer: _Writer, value: Any, location: str) -> dict[str, Any]:
    return {"class": type(value).__name__, "state": writer.nodes(_state(value), location)}


def _read_object(reader: _Reader, node: dict[str, Any]) -> Any:
    cls = _class_by_name(_expect(node["class"], str, "the name of a class"))
    return reader.restore(cls, reader.values(node["state"]))


def _write_pipeline(writer: _Writer, value: Any, location: str) -> dict[str, Any]:
    """Return the steps only: the cache of a pipeline would be a folder of pickles."""
    return {"steps": [[name, writer.node(step, f"{location}.{name}")] for name, step in value.steps]}


def _read_pipeline(reader: _Reader, node: dict[str, Any]) -> Any:
    steps = [tuple(reader.items(step)) for step in _expect(node["steps"], list, "the steps of a pipeline")]
    names = [step[0] for step in steps if len(step) == 2 and isinstance(step[0], str)]
    if not steps or len(set(names)) < len(steps) or not all(isinstance(step, BaseEstimator) for _, step in steps):
        raise ValueError("the steps of a pipeline are not estimators with a name each")
    if not all(hasattr(step, "transform") for _, step in steps[:-1]):
        raise ValueError("a step of a pipeline before the last one is not a transformer")
    check_steps([step for _, step in steps], reader.sizes_of)
    return Pipeline(steps)


def _read_random_state(reader: _Reader, node: dict[str, Any]) -> np.random.RandomState:
    state = reader.value(node["state"])
    if not isinstance(state, tuple) or len(state) != 5:
        raise ValueError("it contains a random state that does not have five parts")
    name, keys, position, has_gauss, _ = state
    is_valid = name == "MT19937" and isinstance(keys, np.ndarray) and keys.shape == (624,) and keys.dtype == np.uint32
    if not is_valid or type(position) is not int or not 0 <= position <= 624 or has_gauss not in (0, 1):
        raise ValueError("it contains a random state whose position is out of bounds, or of another generator")
    random_state = np.random.RandomState()
    random_state.set_state(state)
    return random_state


def _read_dtype(reader: _Reader, node: dict[str, Any]) -> type:
    if node["name"] not in DTYPE_NAMES:
        raise ValueError(f"it contains an unknown dtype {node['name']!r}")
    return np.dtype(node["name"]).type


def _read_dict(reader: _Reader, node: dict[str, Any]) -> dict[Any, Any]:
    pairs = [tuple(reader.items(pair)) for pair in _expect(node["items"], list, "the items of a dict")]
    content = {key: value for key, value in pairs}  # noqa: C416  # unlike dict(), of pairs only
    if len(content) < len(pairs):
        raise ValueError("a key of a dict occurs twice")
    return content


def _read_set(reader: _Reader, node: dict[str, Any]) -> set[Any]:
    items = reader.items(node["items"])
    if len(set(items)) < len(items):
        raise ValueError("an item of a set occurs twice")
    return set(items)


NUMBERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64")
DTYPE_NAMES = ("bool", *NUMBERS)

CODECS: dict[str, Codec] = {
    "dtype": Codec(
        lambda value: isinstance(value, type) and issubclass(value, np.generic) and np.dtype(value).name in DTYPE_NAMES,
        lambda writer, value, location: {"name": np.dtype(value).name},
        _read_dtype,
        ("name",),
    ),
    "strings": Codec(
        _is_string_array,
        lambda writer, value, location: {"items": value.ravel().tolist(), "shape": list(value.shape)},
        _read_string_array,
        ("items", "shape"),
    ),
    "array": Codec(_is_array, _write_array, _read_array, ("array",), ("read_only",)),
    "scalar": Codec(
        lambda value: isinstance(value, np.generic) and is_storable_dtype(value.dtype),
        lambda writer, value, location: {"array": writer.store(np.asarray(value))},
        _read_scalar,
        ("array",),
    ),
    "sparse": Codec(is_sparse, _write_sparse, _read_sparse, ("shape", "data", "indices", "indptr")),
    "pipeline": Codec(lambda value: type(value) is Pipeline, _write_pipeline, _read_pipeline, ("steps",)),
    "object": Codec(_is_storable, _write_object, _read_object, ("class", "state")),
    "random_state": Codec(
        lambda value: isinstance(value, np.random.RandomState),
        lambda writer, value, location: {"state": writer.node(value.get_state(), location)},
        _read_random_state,
        ("state",),
    ),
    "tuple": Codec(
        lambda value: type(value) is tuple,
        lambda writer, value, location: {"items": writer.node(list(value), location)},
        lambda reader, node: tuple(reader.items(node["items"])),
        ("items",),
    ),
    "set": Codec(
        lambda value: isinstance(value, set | frozenset),
        lambda writer, value, location: {"items": writer.node(sorted(value, key=repr), location)},
        _read_set,
        ("items",),
    ),
    "dict": Codec(
        lambda value: type(value) is dict,
        lambda writer, value, location: {
            "items": [[writer.node(part, location) for part in pair] for pair in value.items()]
        },
        _read_dict,
        ("items",),
    ),
}
