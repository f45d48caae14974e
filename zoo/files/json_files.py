"""JSON files: written whole, read with one clear error; dataclasses and arrays as their values."""

import base64
import dataclasses
import gzip
import json
import math
import os
import types
import typing
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from zoo.errors import InputError
from zoo.files.atomic import write_text

_WIDTHS = ("<f2", "<f4", "<f8", "<i4", "<i8", "|b1", "|u1", "<u8")


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
            return json.loads(file.read())
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}:{error.lineno}: this is not valid JSON ({error.msg})") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected UTF-8 ({error.reason})") from error
    except (RecursionError, ValueError) as error:  # thousands of brackets, or of digits
        raise InputError(f"{path} is not valid JSON: {error}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error


def read_object(path: str | os.PathLike) -> dict[str, Any]:
    """`read_json` of a file that has to hold an object; an InputError of anything else."""
    value = read_json(path)
    if not isinstance(value, dict):
        raise InputError(f"{path}: expected a JSON object, found {json_kind(value)}")
    return value


def as_json(value: Any) -> Any:
    """A value as it is read back from a file."""
    return json.loads(json.dumps(value, default=_encode))


def json_kind(value: Any) -> str:
    """What a JSON value is, for an error."""
    kinds = {list: "a list", str: "text", bool: "a truth value", type(None): "null"}
    return kinds.get(type(value), "a number")


def pack(value: Any) -> Any:
    """A dataclass, its arrays and what they hold as JSON values."""
    if dataclasses.is_dataclass(value):
        fields = (field.name for field in dataclasses.fields(value) if field.init)
        return {name: pack(getattr(value, name)) for name in fields}
    if isinstance(value, np.ndarray):
        width = value.dtype.newbyteorder("<").str
        if width not in _WIDTHS:
            raise TypeError(f"cannot store an array of {value.dtype}")
        data = base64.b64encode(np.ascontiguousarray(value, width).tobytes()).decode()
        return {"shape": list(value.shape), "type": width, "data": data}
    if isinstance(value, dict):
        return {str(key): pack(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [pack(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def unpack(kind: Any, value: Any, name: str = "value") -> Any:
    """The inverse of `pack` for a dataclass or another type as written at the field `name`. Raises
    ValueError if something is missing, surplus, of another type or not finite."""
    if isinstance(kind, types.UnionType):
        return _one_of(typing.get_args(kind), value, name)
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, value, name)
    if kind is np.ndarray:
        return _array(value, name)
    origin = typing.get_origin(kind) or kind
    if origin in (tuple, dict):
        return _container(origin, typing.get_args(kind), value, name)
    if kind is float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"{name!r} must be a number; found {value!r}")
        if not math.isfinite(value):
            raise ValueError(f"{name!r} must be a finite number; found {value!r}")
        return float(value)
    if kind is type(None):
        if value is not None:
            raise ValueError(f"{name!r} must be null; found {value!r}")
        return None
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{name!r} must be of type {kind.__name__}; found {value!r}")
    return value


def _encode(value):
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no place in a JSON file: {value!r}")


def _one_of(kinds, value, name):
    """A value that may be of several kinds: null, or the dataclass that has these fields."""
    if value is None and type(None) in kinds:
        return None
    kinds = [kind for kind in kinds if kind is not type(None)]
    if len(kinds) > 1 and isinstance(value, dict):
        fitting = [kind for kind in kinds if _fields(kind) == set(value)]
        kinds = fitting or kinds
    return unpack(kinds[0], value, name)


def _fields(kind):
    return {field.name for field in dataclasses.fields(kind) if field.init}


def _dataclass(kind, value, name):
    if not isinstance(value, dict):
        raise ValueError(f"{name!r} must be an object; found {type(value).__name__}")
    expected = _fields(kind)
    for missing in sorted(expected - set(value)):
        raise ValueError(f"{name!r} has no {missing!r}")
    for surplus in sorted(set(value) - expected):
        raise ValueError(f"{name!r} has {surplus!r}, which is not known")
    hints = typing.get_type_hints(kind)
    return kind(**{field: unpack(hints[field], value[field], field) for field in sorted(expected)})


def _container(origin, arguments, value, name):
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{name!r} must be a list; found {type(value).__name__}")
        return (
            tuple(unpack(arguments[0], one, name) for one in value) if arguments else tuple(value)
        )
    if not isinstance(value, dict):
        raise ValueError(f"{name!r} must be an object; found {type(value).__name__}")
    if not arguments:
        return value
    return {key: unpack(arguments[1], one, f"{name}.{key}") for key, one in value.items()}


def _array(value, name):
    if not isinstance(value, dict) or set(value) != {"shape", "type", "data"}:
        raise ValueError(f"{name!r} must be an array; found {type(value).__name__}")
    shape, width = value["shape"], value["type"]
    if width not in _WIDTHS:
        raise ValueError(f"{name!r} must be an array of one of {', '.join(_WIDTHS)}; {width!r}")
    if not isinstance(shape, list) or not all(
        isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 2**31 for size in shape
    ):
        raise ValueError(f"{name!r} must have a shape of whole numbers; found {shape!r}")
    try:
        found = np.frombuffer(base64.b64decode(value["data"], validate=True), width)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name!r} must hold an array in base64: {error}") from error
    if math.prod(shape) != len(found):
        raise ValueError(f"{name!r} must hold {math.prod(shape)} numbers; found {len(found)}")
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise ValueError(f"{name!r} must hold finite numbers")
    return found.reshape(shape).copy()
