"""Files of fitted models, pipelines and graphs: arrays and plain values in the safetensors format, and no code.

Arrays are the tensors of the file. Everything else is one JSON text in its metadata, with the version of the format and
a SHA-256 checksum of the whole file. In the JSON text, None, booleans, numbers, strings and lists stand for themselves;
any other value is an object with one key, which is a row of :data:`DECODERS`. An instance of a class is the name of the
class, the parameters of its constructor and its other attributes.

Files are not trusted. The safetensors library compares the sizes in the header with that of the file before anything is
allocated, and nothing is decompressed, unpickled or evaluated. Classes are looked up in :mod:`fiedler._registry`; their
constructors take the parameters, and attributes are set without running any code of the class. What compiled code would
use unchecked (the indices of sparse matrices, random states, vocabularies) is checked here, and in the method
``__check_restored__`` of a class that has one.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import scipy.sparse as sp
from safetensors import SafetensorError, safe_open
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from ._files import atomic_write, check_path
from ._registry import storable_classes
from ._validation import is_foreign, validate_parameters
from ._version import __version__, versions
from .core.arrays import to_numpy
from .core.fitting import is_dask_array
from .core.sparse import checked_csr, csr_parts, is_sparse, to_scipy
from .errors import DataNotFoundError, FileFormatError, InputError, InputTypeError, not_enough_memory_to_read

ENDING = ".safetensors"
FORMAT_VERSION = 1  # raised when an older fiedler could not read what a newer one writes
METADATA_KEY = "fiedler"
MAX_HEADER = 100_000_000  # bytes; the safetensors library refuses to read more
MAX_EMPTY_AXIS = 2**20  # of an array without entries, whose shape the size of the file does not limit

# The name of a dtype in a safetensors header.
TENSOR_DTYPES = {"bool": "BOOL"} | {f"float{size}": f"F{size}" for size in (16, 32, 64)}
TENSOR_DTYPES |= {f"{name}{size}": f"{name[0].upper()}{size}" for name in ("int", "uint") for size in (8, 16, 32, 64)}

SCALAR_TYPES = {name: np.dtype(name).type for name in TENSOR_DTYPES}

# How arrays of fixed-length strings are stored: the kind of their node and the type of one character.
TEXT_KINDS: dict[str, tuple[str, type[np.generic]]] = {"U": ("unicode", np.uint32), "S": ("bytes", np.uint8)}

NO_CHECKSUM = "0" * 64  # in place of the checksum while it is computed
CHECKSUM = re.compile(rb'\{"__metadata__": \{"fiedler": "\{\\"sha256\\": \\"([0-9a-f]{64})\\"')

CALLBACK_ATTRIBUTES = ("_skl_callbacks", "_parent_callback_ctx")  # of scikit-learn; not part of a model


class FileKind(NamedTuple):
    """A kind of files, the function that writes them, and the codes of errors about a file and about its content."""

    name: str
    written_by: str
    code: str
    content_code: str


MODEL = FileKind("model", "fiedler.save", "not_a_model_file", "invalid_model")
GRAPH = FileKind("graph", "AffinityGraph.save", "invalid_graph_file", "invalid_graph_file")


# ----------------------------------------------------------------------------------------------------- public functions


def save(model: BaseEstimator, path: str | os.PathLike[str], *, notes: dict[str, Any] | None = None) -> None:
    """Write a fitted model to one ``.safetensors`` file, completely or not at all.

    Parameters
    ----------
    model : estimator
        An estimator of fiedler, or a scikit-learn pipeline that ends in one.
    path : path
        Must end in ``.safetensors``.
    notes : dict, optional
        Plain values (None, bool, numbers, strings, lists of these) to store with it, for :func:`read_notes`.

    Examples
    --------
    >>> import fiedler, tempfile, pathlib
    >>> X, y = fiedler.datasets.two_moons(n_samples=200, random_state=0)
    >>> model = fiedler.SpectralClustering(2, random_state=0).fit(X)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "moons.safetensors"
    >>> fiedler.save(model, path)
    >>> bool((fiedler.load(path).predict(X) == model.predict(X)).all())
    True
    """
    if not isinstance(model, BaseEstimator):
        problem = f"a model file contains an estimator; got {type(model).__name__}"
        raise InputTypeError(problem, code="not_an_estimator", parameter="model")
    if notes is not None and not _are_valid_notes(notes):
        problem = "notes must be a dictionary of plain values"
        hint = "use None, bool, numbers, strings and lists of these"
        raise InputTypeError(problem, hint, code="invalid_notes", parameter="notes")
    write_object(model, path, MODEL, notes)


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
    >>> fiedler.load("nothing.safetensors")
    Traceback (most recent call last):
    ...
    fiedler.errors.DataNotFoundError: there is no model file 'nothing.safetensors'
    """
    return read_object(path, MODEL, BaseEstimator)


def read_notes(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the notes stored with a model, and the versions that wrote the file under ``written_by``.

    Parameters
    ----------
    path : path

    Examples
    --------
    >>> import fiedler, tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "graph.safetensors"
    >>> fiedler.save(fiedler.KNNGraph(5), path, notes={"columns": ["a", "b"]})
    >>> fiedler.persistence.read_notes(path)["columns"]
    ['a', 'b']
    """
    with _open_file(path, MODEL) as (content, _):
        if not _are_valid_notes(notes := content["notes"]):
            raise _invalid(path, "is damaged: its notes are not a dictionary of plain values", "invalid_notes")
        return {**notes, "written_by": content["written_by"]}


def _are_valid_notes(notes: Any) -> bool:
    return isinstance(notes, dict) and all(_is_text(name) and _is_plain(notes[name]) for name in notes)


def _is_plain(value: Any) -> bool:
    is_list = isinstance(value, list) and all(map(_is_plain, value))
    return is_list or value is None or isinstance(value, bool | int | float) or _is_text(value)


def _is_text(value: Any) -> bool:
    """Whether a value is a string that can be printed; one with half of a surrogate pair cannot."""
    return isinstance(value, str) and value == value.encode(errors="ignore").decode()


# ------------------------------------------------------------------------------------------------------------ the file


def write_object(value: Any, path: str | os.PathLike[str], kind: FileKind, notes: dict[str, Any] | None = None) -> None:
    """Write an object to a file, or nothing if writing fails."""
    check_path(path)
    if not str(path).endswith(ENDING):
        problem = f"a {kind.name} file must end in {ENDING}; got {str(path)!r}"
        raise InputError(problem, code="wrong_ending", parameter="path", value=str(path), file=str(path))
    encoder = _Encoder()
    try:
        node = encoder.encode(value, type(value).__name__)
    except ValueError as error:  # which reading the file would raise
        problem = f"the {kind.name} cannot be saved: {error}"
        raise InputTypeError(problem, code="not_storable", parameter=kind.name) from error
    content = {
        "sha256": NO_CHECKSUM,  # first, as CHECKSUM expects it
        "format": f"fiedler {kind.name}",
        "version": FORMAT_VERSION,
        "written_by": ", ".join(f"{name} {number}" for name, number in versions().items()),
        "notes": notes or {},
        "object": node,
    }
    header = _header(content, encoder.arrays)
    if len(header) > MAX_HEADER:
        problem = f"the {kind.name} cannot be saved: all but its arrays takes more than {MAX_HEADER:,} bytes"
        raise InputError(problem, code="not_storable", parameter=kind.name)
    header = len(header).to_bytes(8, "little") + header
    checksum = hashlib.sha256(header)
    buffers = [array.reshape(-1).view(np.uint8).data for array in encoder.arrays.values()]
    for buffer in buffers:
        checksum.update(buffer)
    with atomic_write(path) as draft, open(draft, "wb") as file:
        file.write(header.replace(NO_CHECKSUM.encode(), checksum.hexdigest().encode(), 1))
        for buffer in buffers:
            file.write(buffer)


def _header(content: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """Return the JSON header of a safetensors file, padded to a multiple of eight bytes."""
    entries: dict[str, Any] = {"__metadata__": {METADATA_KEY: json.dumps(content)}}
    start = 0
    for name, array in arrays.items():
        stop = start + array.nbytes
        entries[name] = {"dtype": TENSOR_DTYPES[array.dtype.name], "shape": array.shape, "data_offsets": [start, stop]}
        start = stop
    header = json.dumps(entries).encode()
    return header + b" " * (-len(header) % 8)


def read_object(path: str | os.PathLike[str], kind: FileKind, cls: type) -> Any:
    """Read an object of a class, or of one of its subclasses, from a file."""
    with _open_file(path, kind) as (content, tensors):
        try:
            value = _Decoder(tensors).decode(content["object"])
            if not isinstance(value, cls):
                raise ValueError(f"it contains no {'estimator' if kind is MODEL else kind.name}")
        except MemoryError:
            raise
        except Exception as error:  # a crafted file may lead to any
            reason = " ".join(str(error).split())  # scikit-learn's have several lines
            reason = f"it lacks or does not know {reason}" if isinstance(error, KeyError) else reason
            raise _invalid(path, f"is not a valid {kind.name} file: {reason}", kind.content_code) from error
    return value


@contextmanager
def _open_file(path: str | os.PathLike[str], kind: FileKind) -> Iterator[tuple[dict[str, Any], Any]]:
    """Check a file and yield its JSON text and its tensors; errors name the file."""
    check_path(path)
    name = str(path)
    try:
        with open(path, "rb") as file:
            problem = _problem(file, kind)
        if problem is not None:
            raise _invalid(path, f"is not a {kind.name} file, or it is damaged: {problem}", kind.code)
        with safe_open(path, framework="np") as tensors:
            yield _check_content(tensors, path, kind), tensors
    except FileNotFoundError:
        raise DataNotFoundError(f"there is no {kind.name} file {name!r}", code="file_not_found", file=name) from None
    except MemoryError:
        raise not_enough_memory_to_read(name) from None
    except SafetensorError as error:
        raise _invalid(path, f"is not a {kind.name} file, or it is damaged: {error}", kind.code) from None
    except (IsADirectoryError, PermissionError) as error:  # Windows denies the permission to open a folder
        if not os.path.isdir(path):
            raise
        raise _invalid(path, f"is a folder, not a {kind.name} file", kind.code) from error


def _problem(file: BinaryIO, kind: FileKind) -> str | None:
    """Return what is wrong with the beginning or the checksum of a file, or None."""
    size = os.fstat(file.fileno()).st_size
    start = file.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > min(size - 8, MAX_HEADER):
        return "it is not in the safetensors format"
    header = file.read(length)
    match = CHECKSUM.match(header)
    if match is None:
        return f"it was not written by {kind.written_by}"
    checksum = hashlib.sha256(start + header[: match.start(1)] + NO_CHECKSUM.encode() + header[match.end(1) :])
    while chunk := file.read(2**20):
        checksum.update(chunk)
    return None if checksum.hexdigest().encode() == match[1] else "its checksum is wrong"


def _check_content(tensors: Any, path: str | os.PathLike[str], kind: FileKind) -> dict[str, Any]:
    """Return the JSON text of a file, in which all parts are present; its object is not decoded yet."""
    try:
        content = json.loads(tensors.metadata()[METADATA_KEY])
        version, written_by = content["version"], content["written_by"]
        is_complete = content.keys() >= {"notes", "object"} and _is_text(written_by)
        if content["format"] != f"fiedler {kind.name}" or type(version) is not int or version < 1 or not is_complete:
            raise ValueError
    except (KeyError, TypeError, ValueError, RecursionError):
        raise _invalid(path, f"is not a {kind.name} file: it was not written by {kind.written_by}", kind.code) from None
    if version > FORMAT_VERSION:
        problem = (
            f"{str(path)!r} has format {version}, written by {written_by}, but fiedler {__version__} reads formats up "
            f"to {FORMAT_VERSION}"
        )
        raise FileFormatError(problem, "update fiedler", code="newer_format", file=str(path), version=version)
    return content


def _invalid(path: str | os.PathLike[str], problem: str, code: str) -> FileFormatError:
    return FileFormatError(f"{str(path)!r} {problem}", code=code, file=str(path))


# ---------------------------------------------------------------------------------------------- classes and their state


def _class_by_name(name: Any) -> type:
    module = storable_classes().get(name)
    if module is None:
        raise ValueError(f"it names a class {name!r} that is not allowed in files")
    return getattr(import_module(module), name)


def _split_state(instance: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the constructor parameters and the other attributes of an object.

    Callbacks, cached properties and Dask arrays with all rows are left out.
    """
    cls = type(instance)
    if is_dataclass(instance):
        return {field.name: getattr(instance, field.name) for field in fields(instance)}, {}
    if isinstance(instance, tuple):
        return instance._asdict(), {}  # type: ignore[attr-defined]
    state = {
        name: value
        for name, value in vars(instance).items()
        if not isinstance(getattr(cls, name, None), cached_property)
        and name not in CALLBACK_ATTRIBUTES
        and not (name.endswith("_") and is_dask_array(value))
    }
    places = {name: _attribute_of(cls, name) for name in inspect.signature(cls).parameters}
    return {name: state.pop(place) for name, place in places.items() if place in state}, state


def _attribute_of(cls: type, parameter: str) -> str:
    """Return the attribute that stores a constructor parameter; it is underscored if a property has its name."""
    return f"_{parameter}" if isinstance(inspect.getattr_static(cls, parameter, None), property) else parameter


def _restore(cls: type, parameters: dict[str, Any], attributes: dict[str, Any]) -> Any:
    """Create an object: the constructor takes the parameters, and the attributes are set as they are."""
    instance = cls(**parameters)
    _check_parameters(instance)
    for name in attributes:
        if not name.isidentifier() or name.startswith("__") or _is_method_or_property(cls, name):
            raise ValueError(f"its {cls.__name__} would replace a method or property {name!r}")
    if attributes:
        vars(instance).update(attributes)
    if hasattr(cls, "__check_restored__"):
        instance.__check_restored__()
    if cls.__name__ in ("CountVectorizer", "HashingVectorizer"):
        _check_vectorizer(instance)
    return instance


def _check_parameters(instance: Any) -> None:
    """Let the class check its parameters, as it declares them; classes of scikit-learn do so in a form of their own."""
    validate_parameters(instance)
    if hasattr(instance, "_parameter_constraints"):
        instance._validate_params()


def _check_vectorizer(vectorizer: Any) -> None:
    """Check what scikit-learn's compiled code uses as column numbers, and that documents are no names of files."""
    numbers = sorted(getattr(vectorizer, "vocabulary_", {}).values())
    if vectorizer.input != "content" or numbers != list(range(len(numbers))):
        raise ValueError("its vectorizer does not take texts, or its terms are not numbered 0, 1, ...")


def _is_method_or_property(cls: type, name: str) -> bool:
    attribute = inspect.getattr_static(cls, name, None)
    return callable(attribute) or hasattr(attribute, "__get__")


def checked_steps(steps: Any) -> list[tuple[str, BaseEstimator]]:
    """Return the steps of a pipeline: pairs of a name and an estimator."""
    pairs = [(name, step) for name, step in steps]
    if not all(_is_text(name) and isinstance(step, BaseEstimator) for name, step in pairs):
        raise ValueError("the steps of a pipeline are not estimators with a name each")
    if not pairs or len(dict(pairs)) < len(pairs) or not all(hasattr(step, "transform") for _, step in pairs[:-1]):
        raise ValueError("two steps of a pipeline have one name, or one before the last is not a transformer")
    return pairs


# ------------------------------------------------------------------------------------------------ encoding and decoding


class _Encoder:
    """Convert values to JSON, and collect their arrays, each once, under a number."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        # By id, together with the array itself, so that the id is not reused while writing.
        self._nodes: dict[int, tuple[dict[str, str], Any]] = {}

    def encode(self, value: Any, location: str) -> Any:
        """Return the JSON of a value; error messages name its ``location``, such as ``LapGMM.graph``."""
        if isinstance(value, np.generic) and _is_storable_dtype(value.dtype):
            return {"scalar": self._array(np.asarray(value))}
        if value is None or isinstance(value, bool | int | float) or _is_text(value):
            return value
        if isinstance(value, list):
            return self._items(value, location)
        if isinstance(value, type) and value in SCALAR_TYPES.values():  # before arrays, whose methods it has
            return {"dtype": np.dtype(value).name}
        if isinstance(value, np.ndarray) and value.dtype == object and all(map(_is_text, value.flat)):
            return {"strings": {"items": value.ravel().tolist(), "shape": list(value.shape)}}
        if is_sparse(value):
            matrix = to_scipy(value)
            return {"sparse": {"shape": list(matrix.shape), "parts": [self._array(part) for part in csr_parts(matrix)]}}
        if is_foreign(value) or (isinstance(value, np.ndarray) and _is_storable_dtype(value.dtype)):
            return self._array(value)
        if type(value) is dict:
            return {"dict": [self._items(pair, location) for pair in value.items()]}
        if type(value) is tuple:
            return {"tuple": self._items(value, location)}
        if isinstance(value, set | frozenset):
            return {"set": self._items(sorted(value, key=repr), location)}
        if isinstance(value, np.random.RandomState):
            return {"random_state": self.encode(value.get_state(), location)}
        if type(value) is Pipeline:  # its steps only: its cache would be a folder of pickles
            steps = checked_steps(value.steps)
            return {"pipeline": [[name, self.encode(step, f"{location}.{name}")] for name, step in steps]}
        name = type(value).__name__
        if name in storable_classes() and type(value) is _class_by_name(name):
            parameters, attributes = (
                {key: self.encode(part, f"{location}.{key}") for key, part in state.items()}
                for state in _split_state(value)
            )
            _check_parameters(value)
            return {"object": {"class": name, "parameters": parameters, "attributes": attributes}}
        problem = f"{location} is a {name}, which a model file cannot contain"
        hint = "use arrays, plain values and objects of fiedler"
        raise InputTypeError(problem, hint, code="not_storable", parameter=location, type=name)

    def _items(self, values: Iterable[Any], location: str) -> list[Any]:
        return [self.encode(value, location) for value in values]

    def _array(self, value: Any) -> dict[str, str]:
        """Store an array, copied from a device if necessary, and return its node."""
        if id(value) not in self._nodes:
            array, name, kind = to_numpy(value), f"a{len(self.arrays)}", "array"
            if not _is_storable_dtype(array.dtype):
                raise ValueError(f"it contains an array of type {array.dtype}")
            if array.dtype.kind in TEXT_KINDS:  # the characters of the strings are the last axis
                kind, unit = TEXT_KINDS[array.dtype.kind]
                shape = (*array.shape, array.dtype.itemsize // unit().itemsize)
                array = np.asarray(array, array.dtype.newbyteorder("="), order="C")
                array = array.reshape(-1).view(unit).reshape(shape)
            elif array.flags.f_contiguous and not array.flags.c_contiguous:  # the last digits may depend on it
                kind, array = "fortran", array.T
            self.arrays[name] = np.asarray(array, array.dtype.newbyteorder("<"), order="C")
            self._nodes[id(value)] = ({kind: name}, value)
        return self._nodes[id(value)][0]


def _is_storable_dtype(dtype: np.dtype) -> bool:
    return dtype.name in TENSOR_DTYPES or (dtype.kind in TEXT_KINDS and dtype.itemsize > 0)


class _Decoder:
    """Convert JSON to values; none of it is trusted."""

    def __init__(self, tensors: Any) -> None:
        self._tensors, self._arrays = tensors, dict[str, np.ndarray]()

    def decode(self, node: Any) -> Any:
        """Return the value of a node."""
        if isinstance(node, list):
            return [self.decode(item) for item in node]
        if isinstance(node, str) and not _is_text(node):
            raise ValueError("it contains a string that is not valid Unicode")
        if not isinstance(node, dict):
            return node
        kind = next(iter(node), None)
        if len(node) != 1 or kind not in DECODERS:
            raise ValueError(f"it contains a value of unknown kind {', '.join(node)!r}")
        return DECODERS[kind](self, node[kind])

    def array(self, name: Any) -> np.ndarray:
        """Return an array of the file, the same object on every call."""
        if name not in self._arrays:
            array = self._tensors.get_tensor(name)
            if array.dtype.name not in TENSOR_DTYPES:
                raise ValueError(f"its array {name!r} has the unknown type {array.dtype}")
            if not array.size and max(array.shape) > MAX_EMPTY_AXIS:
                raise ValueError(f"its array {name!r} is empty, but has the shape {array.shape}")
            if array.dtype == bool and array.view(np.uint8).max(initial=0) > 1:
                raise ValueError(f"its array {name!r} has entries that are neither true nor false")
            self._arrays[name] = array
        return self._arrays[name]

    def text(self, name: Any) -> np.ndarray:
        """Return an array of strings of one length, from their code points or bytes."""
        units = self.array(name)
        kind = {unit: kind for kind, (_, unit) in TEXT_KINDS.items()}[units.dtype.type]
        if units.ndim < 1 or units.max(initial=0) > sys.maxunicode:
            raise ValueError(f"its array {name!r} does not consist of strings")
        return units.reshape(-1).view(f"{kind}{units.shape[-1]}").reshape(units.shape[:-1])

    def strings(self, node: Any) -> np.ndarray:
        """Return an array of strings that are objects."""
        array = np.empty(len(node["items"]), dtype=object)
        array[:] = self.decode(node["items"])
        if not all(isinstance(item, str) for item in array):
            raise ValueError("an array of strings contains other values")
        return array.reshape(_shape(node["shape"]))

    def sparse(self, node: Any) -> sp.csr_array:
        """Return a sparse matrix, whose indices are in bounds."""
        data, indices, indptr = self.decode(node["parts"])
        return checked_csr(data, indices, indptr, _shape(node["shape"]))

    def random_state(self, node: Any) -> np.random.RandomState:
        """Return a random state, whose position in its keys is in bounds."""
        name, keys, position, has_gauss, _ = state = self.decode(node)
        is_valid = name == "MT19937" and keys.shape == (624,) and keys.dtype == np.uint32
        if not is_valid or type(position) is not int or not 0 <= position <= 624 or has_gauss not in (0, 1):
            raise ValueError("it contains a random state whose position is out of bounds, or of another generator")
        random_state = np.random.RandomState()
        random_state.set_state(state)
        return random_state

    def object(self, node: Any) -> Any:
        """Return an instance of a class that is allowed."""
        cls = _class_by_name(node["class"])
        parameters, attributes = (
            {name: self.decode(part) for name, part in node[key].items()} for key in ("parameters", "attributes")
        )
        return _restore(cls, parameters, attributes)


def _shape(node: Any) -> tuple[int, ...]:
    if not all(type(size) is int and 0 <= size < 2**63 for size in node):
        raise ValueError("a shape has sizes that are not integers from 0")
    return tuple(node)


DECODERS: dict[str, Callable[[_Decoder, Any], Any]] = {
    "array": _Decoder.array,
    "fortran": lambda decoder, name: decoder.array(name).T,
    "unicode": _Decoder.text,
    "bytes": _Decoder.text,
    "strings": _Decoder.strings,
    "scalar": lambda decoder, node: decoder.decode(node)[()],
    "sparse": _Decoder.sparse,
    "tuple": lambda decoder, node: tuple(decoder.decode(node)),
    "set": lambda decoder, node: set(decoder.decode(node)),
    "dict": lambda decoder, node: dict(decoder.decode(node)),
    "random_state": _Decoder.random_state,
    "dtype": lambda _, name: SCALAR_TYPES[name],
    "pipeline": lambda decoder, node: Pipeline(checked_steps(decoder.decode(node))),
    "object": _Decoder.object,
}
