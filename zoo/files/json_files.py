"""JSON files: written whole, with plain values, and read with one clear error."""

import gzip
import json
import os
import zlib
from pathlib import Path
from typing import Any

from zoo.errors import InputError
from zoo.files.atomic import write_text

MOST_BYTES = 2**31  # of an unpacked file; Visual Genome's largest has 0.7 GB


def write_json(path: str | os.PathLike, value: Any) -> None:
    """Writes a value; numbers that are not finite become null, since JSON has no NaN."""
    plain = json.loads(json.dumps(value, default=_encode), parse_constant=lambda _: None)
    write_text(path, json.dumps(plain, indent=2) + "\n")


def read_json(path: str | os.PathLike) -> Any:
    """Reads a value; `.gz` is unpacked.

    Raises:
        InputError: if the file is missing, cannot be read or is not JSON, with the line.
    """
    path = Path(path).expanduser()
    try:
        return json.loads(_unpacked(path) if path.suffix == ".gz" else path.read_bytes())
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


def _unpacked(path):
    with gzip.open(path) as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"it unpacks to more than {MOST_BYTES:,} bytes")
    return data


def read_object(path: str | os.PathLike) -> dict[str, Any]:
    """`read_json` of a file that has to hold an object.

    Raises:
        InputError: as `read_json`, and if it holds something else.
    """
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


def _encode(value):
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return value.tolist()
    raise TypeError(f"{type(value).__name__} has no place in a JSON file: {value!r}")
