"""One decoder of pictures for training, evaluation, search, the server and the demo, and those
pixels as an encoder is shown them. Pillow opens the formats of `FORMATS` and no other."""

import contextlib
import io
import math
import os
import re
import resource
import signal
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from halo_search.errors import InputError

FORMATS = ("JPEG", "MPO", "PNG", "GIF", "BMP", "WEBP")
SUFFIXES = (".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".png", ".apng", ".gif", ".bmp", ".webp")
MAX_PIXELS, MAX_SIDE = 64_000_000, 32_767  # it takes long to resize longer ones
# Encoders write ten scans of a progressive JPEG, each of which may visit every pixel; and parts
# before the pixels of some hundred bytes and more.
MAX_SCANS, MAX_EXIF, MAX_PARTS = 100, 2, {"JPEG": 20_000, "PNG": 20_000, "GIF": 2_000}
MAX_RUNS = 2**20  # bytes of a compressed BMP, which Pillow decodes by Python
IMAGENET_MEAN = (123.675, 116.28, 103.53)  # in 0 … 255; zero once an encoder has normalised it
_OPENERS = tuple(kind for kind in FORMATS if kind != "MPO")  # Pillow's JPEG plugin opens MPO
_JPEG, _PNG = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"
_MARKER = re.compile(rb"\xff([^\x00\x01\xff\xd0-\xd7])")  # not one within a scan
_ORIENTATION = 0x0112  # the EXIF tag
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_CHANNELS = (1, 3, 4)
# Formats that people have and that are named when refused, by bytes at the start or four later.
_OTHERS = {
    "TIFF": (b"II*\0", b"MM\0*"),
    "HEIC": (b"ftyphe", b"ftypmsf1", b"ftypmif1"),
    "AVIF": (b"ftypavif",),
    "PDF": (b"%PDF",),
}
_MEMORY = 2**30  # bytes of a process that decodes for strangers
RESIZING = {"resize": "crop", "crop_fraction": 1.0}  # options of all pictures, their defaults


def decoded(picture: Any, max_pixels: int = MAX_PIXELS) -> np.ndarray:
    """The pixels uint8 `(height, width, 3)` of a file's path or bytes, a Pillow image or an array.

    Grey and CMYK become RGB, colour tables are looked up, of 16 bits the upper 8 are kept, an alpha
    channel is dropped, and of an animation the first frame is read, black where it is free. EXIF's
    orientation is applied. Arrays are grey `(h, w)`, channels last or first, of 0 … 255, of 16
    bits, or floats of 0 … 1. An InputError if it cannot be read or has more than `max_pixels`.
    """
    if isinstance(picture, (bytes, bytearray, memoryview)):
        return _of_pillow(opened(bytes(picture), max_pixels), max_pixels)
    if isinstance(picture, (str, os.PathLike)):
        try:
            return decoded(Path(picture).read_bytes(), max_pixels)
        except OSError as error:
            raise InputError(f"{picture}: {error.strerror}") from error
        except InputError as error:
            raise InputError(f"{picture}: {error}") from error
    if isinstance(picture, Image.Image):
        return _of_pillow(picture, max_pixels)
    return _of_array(picture, max_pixels)


def opened(contents: bytes, max_pixels: int = MAX_PIXELS) -> Image.Image:
    """The Pillow image of a file's bytes, not yet decoded; an InputError if it is of another format
    than `FORMATS`, or has more pixels, scans or parts."""
    if not contents:
        raise InputError("an empty file")
    _check_work(contents)
    try:
        image = Image.open(io.BytesIO(contents), formats=_OPENERS)
    except Image.DecompressionBombError as error:
        raise InputError(f"more than the {max_pixels:,} pixels allowed") from error
    except Image.UnidentifiedImageError as error:
        for other, marks in _OTHERS.items():
            if contents.startswith(marks) or contents.startswith(marks, 4):
                expected = f"expected one of {', '.join(FORMATS)}, found {other}"
                raise InputError(expected) from error
        raise InputError("not an image") from error
    except Exception as error:  # Pillow's plugins raise whatever damage leads them to
        raise InputError("a damaged image") from error
    _bounded(image.size, max_pixels)
    return image


def check_images(paths: Sequence[str | os.PathLike]) -> list[str | None]:
    """For each path None, or why it cannot be used: every picture is decoded as training would."""
    with ThreadPoolExecutor(max(2, os.cpu_count() or 1)) as pool:
        return list(pool.map(_why_unreadable, paths))


def fit(picture: np.ndarray, size: int, mode: str = "crop", crop_fraction: float = 1.0):
    """A decoded picture to what an image encoder is fed, uint8 `(size, size, 3)`, without
    TensorFlow. A pixel may be rounded otherwise than by `zoo.data.images.fit`."""
    if mode == "crop":
        height, width = picture.shape[:2]
        side = np.float32(min(height, width)) * np.float32(crop_fraction)
        side = max(int(np.rint(side)), 1)
        top, left = (height - side) // 2, (width - side) // 2
        picture = picture[top : top + side, left : left + side]
    # Of float32 Pillow rounds nothing, and it weighs pixels as TensorFlow's antialiasing does.
    planes = (Image.fromarray(plane.astype(np.float32)) for plane in np.moveaxis(picture, 2, 0))
    sized = [np.asarray(plane.resize((size, size), Image.Resampling.BILINEAR)) for plane in planes]
    return np.rint(np.clip(np.stack(sized, axis=2), 0.0, 255.0)).astype(np.uint8)


def resizing(description: Mapping[str, Any]) -> dict[str, Any]:
    """How the pictures of a description become squares, `{"mode", "crop_fraction"}`."""
    given = {**RESIZING, **{name: description[name] for name in RESIZING if name in description}}
    return {"mode": given["resize"], "crop_fraction": given["crop_fraction"]}


def _why_unreadable(path):
    """None, or why a picture cannot be decoded."""
    try:
        image = opened(Path(path).read_bytes())
        image.draft("RGB", (1, 1))  # a JPEG at an eighth of the size: it finds the same errors
        _of_pillow(image, MAX_PIXELS)
    except OSError as error:
        return error.strerror
    except InputError as error:
        return str(error)


def _of_pillow(image, max_pixels):
    """The pixels of a Pillow image, upright, uint8 `(height, width, 3)`."""
    _bounded(image.size, max_pixels)
    kind = getattr(image, "format", None)
    if kind is not None and kind not in FORMATS:
        raise InputError(
            f"expected a picture of {', '.join(FORMATS)}, found {kind}; pass `image.convert('RGB')`"
        )
    try:
        image.load()
    except Exception as error:  # Pillow's plugins raise whatever damage leads them to
        raise InputError("a damaged image") from error
    return _upright(_rgb(image), image.info.get("exif"))


def _check_work(contents):
    """Refuses a file whose parts cost far more time than its pixels; damage ends the count."""
    is_packed = contents.startswith(b"BM") and contents[30:31] in (b"\1", b"\2")
    if is_packed and len(contents) > MAX_RUNS:
        raise InputError(f"a compressed BMP of more than {MAX_RUNS:,} bytes")
    kind, parts = "JPEG", _segments(contents)
    if not contents.startswith(_JPEG):
        is_png = contents.startswith(_PNG)
        kind, parts = ("PNG", _chunks(contents)) if is_png else ("GIF", _gif_blocks(contents))
    most = {"parts": MAX_PARTS[kind], "scans": MAX_SCANS, "EXIF blocks": MAX_EXIF}
    count = Counter()
    for name in parts:
        count[name] += 1
        if count[name] > most[name]:
            raise InputError(f"a {kind} of more than {most[name]:,} {name}")


def _segments(contents):
    """Yields what each segment of a JPEG counts as; what is between two counts byte by byte."""
    at, is_scan = 2, False
    while (marker := _MARKER.search(contents, at)) and marker[1] != b"\xd9":
        if not is_scan:  # Pillow passes over what is between two segments byte by byte
            yield from ["parts"] * min(marker.start() - at, MAX_PARTS["JPEG"] + 1)
        at, is_scan = marker.end(), marker[1] == b"\xda"
        yield "parts"
        if is_scan:
            yield "scans"
            continue
        if marker[1] == b"\xe1" and contents.startswith(b"Exif", at + 2):
            yield "EXIF blocks"
        at += int.from_bytes(contents[at : at + 2], "big")


def _chunks(contents):
    """Yields what each chunk of a PNG counts as."""
    at = len(_PNG)
    while at < len(contents):
        yield "parts"
        at += 12 + int.from_bytes(contents[at : at + 4], "big")


def _gif_blocks(contents):
    """Yields the blocks of the extensions before the first frame."""
    if not contents.startswith(b"GIF8") or len(contents) < 13:
        return
    at = 13 + (3 << (contents[10] & 7) + 1) * (contents[10] >> 7)
    while contents[at : at + 1] == b"!":
        at += 2
        while at < len(contents) and contents[at]:
            yield "parts"
            at += 1 + contents[at]
        at += 1


def _rgb(image):
    """The pixels as stored, uint8 `(height, width, 3)`."""
    if image.mode == "CMYK":  # by TensorFlow's formula, which exports have; Pillow's differs by 1
        inks = 255 - np.asarray(image).astype(np.uint16)
        return (inks[..., :3] * inks[..., 3:] // 255).astype(np.uint8)
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        return _three((np.asarray(image).astype(np.uint32) >> 8).astype(np.uint8))
    if image.mode in ("I", "F", "La", "RGBa"):
        raise InputError(
            f"expected a picture of 8 or 16 bits per channel, received Pillow's mode "
            f"{image.mode!r}; pass an array of 0 … 255"
        )
    pixels = np.asarray(image if image.mode == "RGB" else image.convert("RGB"))  # a copy less
    # Pillow fills what the first frame of an animation leaves free with any colour of its table.
    if image.format == "GIF" and image.tell() == 0:
        left, top, right, bottom = image.dispose_extent
        if (left, top, right, bottom) != (0, 0, *image.size):
            inside = np.zeros_like(pixels)
            inside[top:bottom, left:right] = pixels[top:bottom, left:right]
            pixels = inside
    return pixels


def _of_array(values, max_pixels):
    """The pixels of an array `(height, width)` or `(height, width, channels)`, uint8."""
    try:
        values = np.asarray(values)
    except Exception as error:  # ragged lists, tensors on a device, foreign objects
        raise InputError(f"a picture must be an array; received {type(values).__name__}") from error
    received = f"received shape {values.shape} of {values.dtype}"
    if values.dtype.kind not in "uif":
        raise InputError(f"a picture must be an array of numbers; {received}")
    if values.ndim == 3 and values.shape[-1] not in _CHANNELS and values.shape[0] in _CHANNELS:
        values = np.moveaxis(values, 0, -1)
    if values.ndim == 2:
        values = values[..., None]
    if values.ndim != 3 or values.shape[-1] not in _CHANNELS or not values.size:
        raise InputError(
            "a picture must be an array (height, width), (height, width, 3) or "
            f"(3, height, width), with 1 or 4 channels alike; {received}"
        )
    _bounded((values.shape[1], values.shape[0]), max_pixels)
    values = values[..., :3]
    low, high = values.min(), values.max()
    if not (low >= 0 and high <= (65_535 if values.dtype == np.uint16 else 255)):  # nor is NaN
        raise InputError(
            f"a picture must be of numbers from 0 to 255, or floats from 0 to 1; received "
            f"{low:.4g} to {high:.4g}"
        )
    if values.dtype.kind == "f":
        values = np.rint(values * (255 if high <= 1 else 1))
    elif high > 255:
        values = values >> 8
    return _three(values.astype(np.uint8, copy=False))


def _three(grey_or_rgb):
    """Grey or RGB pixels as three channels."""
    pixels = grey_or_rgb if grey_or_rgb.ndim == 3 else grey_or_rgb[..., None]
    return np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3)))


def _bounded(size, max_pixels):
    """Raises InputError for a picture of more pixels than are decoded."""
    width, height = size
    if width * height > max_pixels:
        raise InputError(f"{width} x {height} pixels, more than the {max_pixels:,} allowed")
    if max(size) > MAX_SIDE:
        raise InputError(f"{width} x {height} pixels, more than {MAX_SIDE:,} on a side")


def _upright(pixels, data):
    """Turned by EXIF alone, as browsers do; Pillow's own reading asks XMP data as well."""
    exif, turn = Image.Exif(), None
    with contextlib.suppress(Exception):  # damaged EXIF data say nothing
        exif.load(data)
        value = exif.get(_ORIENTATION)
        turn = _TURNS.get(value) if isinstance(value, int) else None  # a rational is not one
    return pixels if turn is None else np.asarray(Image.fromarray(pixels).transpose(turn))


def _is_quick(image, contents):
    """Whether it is a JPEG as cameras write them, of which 16 million pixels take 0.15 s."""
    is_jpeg = image.format in ("JPEG", "MPO") and image.mode in ("RGB", "L")
    return is_jpeg and "progressive" not in image.info and contents.count(b"\xff\xda") < 5


def decode_for(
    connection: int, max_pixels: int, seconds: float, more: float, most: int, nice: int
) -> None:
    """Decodes what the parent process sends by a `Connection`. A picture of more processor time
    than `seconds`, and `more` per pixel, ends this process; the answer to one of more than `most`
    pixels is empty unless it is as cameras write them."""
    # The system does, and nothing of Python is asked, so it works inside of Pillow too.
    from multiprocessing.connection import Connection

    parent = Connection(connection)
    os.nice(nice)
    with contextlib.suppress(ValueError, OSError):  # a system without it
        held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + _MEMORY, held + _MEMORY))
    with contextlib.suppress(EOFError, OSError):  # the parent has ended
        while True:
            contents = parent.recv_bytes()
            signal.setitimer(signal.ITIMER_PROF, seconds)
            try:
                image, reply = opened(contents, max_pixels), (b"", b"")
                if (size := math.prod(image.size)) <= most or _is_quick(image, contents):
                    signal.setitimer(signal.ITIMER_PROF, seconds + more * size)
                    pixels = decoded(image, max_pixels)
                    reply = np.array(pixels.shape).tobytes(), np.ravel(pixels)
            except (InputError, MemoryError) as error:
                reply = b"", (str(error) or "it takes too much memory").encode()
            signal.setitimer(signal.ITIMER_PROF, 0)
            for part in reply:
                parent.send_bytes(part)
            contents = image = pixels = reply = part = None
