"""What a query may be: sizes of texts and uploads. What is refused is refused in a sentence."""

import threading
from pathlib import Path

import numpy as np

from halo_search.errors import InputError
from halo_search.server.sent_pictures import Decoders

MAX_BYTES = 10 * 2**20
MAX_CHARACTERS = 400
MAX_WORDS = 60
MAX_PHOTOS = 200
DECODERS = Decoders()
_TURN = threading.Lock()  # each picture takes much memory while it is resized


class RefusedError(ValueError):
    """A query that is not answered; the message is a sentence for whoever asked."""


def text(value):
    """A caption, on one line.

    Raises:
        RefusedError: if it is empty, too long or no text.
    """
    if not isinstance(value, str):
        raise RefusedError("A caption has to be text.")
    value = " ".join("".join(c if c.isprintable() else " " for c in value).split())
    if not any(c.isalnum() for c in value):
        raise RefusedError("Type a caption first: there is nothing to search for.")
    if len(value) > MAX_CHARACTERS or len(value.split()) > MAX_WORDS:
        raise RefusedError(
            f"That is too long for a caption: {len(value)} characters, {len(value.split())} words. "
            f"At most {MAX_CHARACTERS} characters and {MAX_WORDS} words are read."
        )
    return value


def picture(path, read=np.asarray):
    """What `read` makes of the pixels of an uploaded picture; one at a time, as in `serve`.

    Raises:
        RefusedError: if the upload is not a picture, is damaged, or is too large.
    """
    if path is None:
        raise RefusedError("Choose an image first.")
    path = Path(path)
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise RefusedError(
            f"The image has {size / 2**20:.1f} MB; at most {MAX_BYTES // 2**20} MB are taken."
        )
    try:
        contents = path.read_bytes()
    except OSError:
        raise RefusedError("That file cannot be read.") from None
    try:
        pixels = DECODERS.decoded(contents)
    except InputError as error:
        raise RefusedError(f"That image cannot be used: {error}.") from None
    with _TURN:
        return read(pixels)


def whole(value, name, least, most):
    """A whole number of a range.

    Raises:
        RefusedError: if it is none.
    """
    number = between(value, name, least, most)
    if number != int(number):
        raise RefusedError(f"{name} has to be a whole number.")
    return int(number)


def between(value, name, least, most):
    """A number of a range.

    Raises:
        RefusedError: if it is none.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise RefusedError(f"{name} has to be a number.") from None
    if not least <= number <= most:
        raise RefusedError(f"{name} has to be from {least} to {most}.")
    return number
