"""Pictures that come as text: base64, wrapped or not, padded or not, or a data: URL."""

import base64
import binascii
import re

import numpy as np

from zoo.errors import InputError
from zoo.files.decoding import decoded

MAX_PIXELS = 16_000_000  # some 150 MB while it is decoded and resized
_EXPECTED = "image: expected the base64 of a picture's file, or a data: URL of one"
_URL = re.compile(r"\s*data:[^,]{0,200};base64,", re.I)
_URL_SAFE = bytes.maketrans(b"-_", b"+/")


def picture_of(text: str) -> np.ndarray:
    """The pixels of a picture sent as base64, uint8 `(height, width, 3)`, upright; an InputError if
    it is none, or has more than `MAX_PIXELS`, which its header says."""
    contents = bytes_of(text)
    try:
        return decoded(contents, MAX_PIXELS)
    except InputError as error:
        raise InputError(f"image: {error}") from error


def bytes_of(text: str) -> bytes:
    """The bytes of a text of base64 of either alphabet, or a `data:` URL; white space and missing
    padding do not matter. An InputError if it is none, or empty."""
    start = _URL.match(text)
    if start is None and text[:300].strip()[:5].lower() == "data:":
        raise InputError(f"{_EXPECTED}; received a data: URL without ;base64")
    try:
        letters = text[start.end() if start else 0 :].encode("ascii")
        letters = letters.translate(_URL_SAFE, b" \t\r\n\f\v").rstrip(b"=")
        contents = base64.b64decode(letters + b"=" * (-len(letters) % 4), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise InputError(_EXPECTED) from None
    if not contents:
        raise InputError(f"{_EXPECTED}; received nothing")
    return contents
