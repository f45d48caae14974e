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
        return {name: pack(getattr(value, name)) for name in sorted(_fields(value))}
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
        kinds = [one for one in typing.get_args(kind) if one is not type(None)]
        if value is None and len(kinds) < len(typing.get_args(kind)):
            return None
        if len(kinds) > 1 and isinstance(value, dict):
            kinds = [one for one in kinds if _fields(one) == set(value)] or kinds
        return unpack(kinds[0], value, name)
    origin, arguments = typing.get_origin(kind) or kind, typing.get_args(kind)
    if dataclasses.is_dataclass(kind) or origin in (dict, np.ndarray):
        _check(isinstance(value, dict), name, "be an object", value)
    if dataclasses.is_dataclass(kind):
        for field in sorted(_fields(kind) ^ set(value)):
            unknown = f"{field!r}, which is not known"
            raise ValueError(f"{name!r} has {unknown if field in value else f'no {field!r}'}")
        hints = typing.get_type_hints(kind)
        return kind(**{field: unpack(hints[field], one, field) for field, one in value.items()})
    if origin is dict and arguments:
        return {key: unpack(arguments[1], one, f"{name}.{key}") for key, one in value.items()}
    if origin is tuple:
        _check(isinstance(value, list), name, "be a list", value)
        return tuple(unpack(arguments[0], one, name) if arguments else one for one in value)
    if kind is np.ndarray:
        return _array(value, name)
    if kind in (int, float):
        is_number = isinstance(value, (kind, int)) and not isinstance(value, bool)
        _check(is_number, name, "be a number", value)
        _check(math.isfinite(value), name, "be a finite number", value)
        return kind(value)
    _check(isinstance(value, origin), name, f"be of type {origin.__name__}", value)
    return value


def _check(holds, name, what, found):
    if not holds:
        raise ValueError(f"{name!r} must {what}; found {found!r}")


def _encode(value):
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no place in a JSON file: {value!r}")


def _fields(kind):
    return {field.name for field in dataclasses.fields(kind) if field.init}


def _array(value, name):
    shape, width = value.get("shape"), value.get("type")
    _check(width in _WIDTHS, name, f"be an array of one of {', '.join(_WIDTHS)}", width)
    is_shape = isinstance(shape, list) and all(type(n) is int and 0 <= n < 2**31 for n in shape)
    _check(is_shape, name, "have a shape of whole numbers", shape)
    try:
        found = np.frombuffer(base64.b64decode(value["data"], validate=True), width)
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{name!r} must hold an array in base64: {error}") from error
    _check(math.prod(shape) == len(found), name, f"hold {math.prod(shape)} numbers", len(found))
    is_finite = found.dtype.kind != "f" or np.isfinite(found).all()
    _check(is_finite, name, "hold finite numbers", "others")
    return found.reshape(shape).copy()
