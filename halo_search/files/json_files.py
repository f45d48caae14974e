"""JSON files: written whole, read with one clear error; dataclasses and arrays as their values."""

import base64
import dataclasses
import gzip
import json
import os
import types
import typing
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from halo_search.errors import InputError
from halo_search.files.atomic import write_text


def write_json(path: str | os.PathLike, value: Any) -> None:
    """Writes a value; numbers that are not finite become null, since JSON has no NaN."""
    plain = json.loads(json.dumps(value, default=_encode), parse_constant=lambda _: None)
    write_text(path, json.dumps(plain, indent=2) + "\n")


def read_json(path: str | os.PathLike) -> Any:
    """Reads a value; `.gz` is unpacked. Raises InputError if the file is missing, cannot be read or
    is not JSON, with the line."""
    path = Path(path).expanduser()
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rb") as file:
            contents = file.read()
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    return parsed(path, contents)


def parsed(path: Any, contents: bytes) -> Any:
    """A value of the contents of a file; errors as of `read_json`."""
    try:
        return json.loads(contents)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: this is not valid JSON ({error.msg})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected UTF-8 ({error.reason})") from error
    except (RecursionError, ValueError) as error:  # thousands of brackets, or of digits
        raise InputError(f"{path} is not valid JSON: {error}") from error


def read_object(path: str | os.PathLike) -> dict[str, Any]:
    """`read_json` of a file that has to hold an object; an InputError of anything else."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise InputError(f"{path}: expected a JSON object, found {json_kind(value)}")
    return value


def as_json(value: Any) -> Any:
    """A value, or a dataclass, as it is read back from a file."""
    return json.loads(json.dumps(value, default=_encode))


def json_kind(value: Any) -> str:
    """What a JSON value is, for an error."""
    kinds = {
        dict: "an object",
        list: "a list",
        str: "text",
        bool: "a truth value",
        type(None): "null",
    }
    return kinds.get(type(value), "a number")


def pack(value: Any) -> Any:
    """A dataclass, its arrays and what they hold as JSON values."""
    if dataclasses.is_dataclass(value):
        return {name: pack(getattr(value, name)) for name in sorted(_fields(value))}
    if isinstance(value, np.ndarray):
        value = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        packed = base64.b64encode(zlib.compress(value.tobytes())).decode()
        return {"shape": list(value.shape), "type": value.dtype.str, "deflated": packed}
    if isinstance(value, dict):
        return {str(key): pack(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [pack(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def unpack(kind: Any, value: Any) -> Any:
    """The inverse of `pack` for a dataclass or another type as written at a field, of a file with a
    checksum: a TypeError, KeyError or ValueError of another version's."""
    if value is None:
        return None
    if isinstance(kind, types.UnionType):
        kinds = [item for item in typing.get_args(kind) if item is not type(None)]
        if len(kinds) > 1 and isinstance(value, dict):
            kinds = [item for item in kinds if _fields(item) == set(value)] or kinds
        return unpack(kinds[0], value)
    origin, arguments = typing.get_origin(kind) or kind, typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return kind(**{field: unpack(hints[field], item) for field, item in value.items()})
    if kind is np.ndarray:
        data = base64.b64decode(value.get("deflated") or value["data"])
        data = zlib.decompress(data) if "deflated" in value else data
        return np.frombuffer(data, value["type"]).reshape(value["shape"]).copy()
    if origin is dict and arguments:
        return {key: unpack(arguments[1], item) for key, item in value.items()}
    if origin is tuple:
        return tuple(unpack(arguments[0], item) if arguments else item for item in value)
    return kind(value) if kind in (int, float) else value


def _fields(kind):
    """The names of the fields that a dataclass is made of."""
    return {field.name for field in dataclasses.fields(kind) if field.init}


def _encode(value):
    """What `json` cannot write itself: paths, dataclasses and arrays."""
    if isinstance(value, Path):
        return str(value)
    if dataclasses.is_dataclass(value):
        return dataclasses.asdict(value)
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no place in a JSON file: {value!r}")
