"""Pictures of every format and oddity, with the pixels that they plainly hold."""

import io
import zlib

import numpy as np
from PIL import Image

HEIGHT, WIDTH = 31, 43


def files():
    """`{name: (bytes, pixels)}`; of lossy formats, which have no plain pixels, None."""
    rng = np.random.default_rng(0)
    coarse = Image.fromarray(rng.integers(0, 256, (7, 9, 3), dtype=np.uint8))
    photo = coarse.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
    clear = Image.fromarray(rng.integers(0, 256, (HEIGHT, WIDTH), dtype=np.uint8))
    other = photo.rotate(180)
    grey, table, line = photo.convert("L"), photo.quantize(17), photo.convert("1")
    rgba, grey_clear = photo.copy(), grey.copy()
    rgba.putalpha(clear)
    grey_clear.putalpha(clear)
    deep = np.asarray(grey).astype(np.uint16) * 256 + np.asarray(clear)
    plain = {"RGB": photo, "L": grey, "RGBA": rgba, "LA": grey_clear, "P": table, "1": line}
    rgb = {name: np.asarray(picture.convert("RGB")) for name, picture in plain.items()}
    exif = Image.Exif()
    exif[0x0112] = 6
    several = {"save_all": True, "append_images": [other]}

    found = {}
    for mode in ("RGB", "L", "CMYK"):
        for progressive in (False, True):
            picture = photo.convert(mode)
            name = f"{mode}{', progressive' * progressive}.jpg"
            found[name] = _file(picture, "JPEG", progressive=progressive), None
    one, wide = np.asarray(photo)[:1, :1], np.tile(np.asarray(photo)[:2], (1, 465, 1))
    found["one pixel.png"] = _file(Image.fromarray(one), "PNG"), one
    found["20,000 pixels wide.png"] = _file(Image.fromarray(wide), "PNG"), wide
    marked = found["CMYK.jpg"][0]
    found["CMYK without Adobe's marker.jpg"] = _without_adobe(marked), None
    found["YCCK.jpg"] = _ycck(marked), None
    found["no end.jpg"] = found["CMYK.jpg"][0][:-2], None
    found["deep.png"] = _file(Image.fromarray(deep), "PNG"), _grey(deep >> 8)
    fine = np.asarray(photo).astype(np.uint16) * 256 + 77
    found["deep, three colours.png"] = png(fine, 2), rgb["RGB"]
    found["interlaced.png"] = png(np.asarray(photo), 2, interlaced=True), rgb["RGB"]
    found["interlaced, deep.png"] = png(deep, 0, interlaced=True), _grey(deep >> 8)
    found["a clear colour.png"] = png(np.asarray(photo), 2, b"\0\x40\0\x41\0\x42"), rgb["RGB"]
    found["a clear grey.png"] = png(np.asarray(grey), 0, b"\0\x40"), rgb["L"]
    found["table with a clear colour.png"] = _file(table, "PNG", transparency=3), rgb["P"]
    found["moving.png"] = _file(photo, "PNG", **several), rgb["RGB"]
    found["late exif.png"] = _late_exif(photo, exif), _turned(rgb["RGB"])
    found["table with a clear colour.gif"] = _file(table, "GIF", transparency=3), rgb["P"]
    found["moving.gif"] = _file(photo, "GIF", **several), None
    found["small first frame.gif"] = _moved(_file(grey, "GIF")), _beside(rgb["L"])
    for mode in ("RGB", "L", "RGBA", "LA", "P", "1"):
        found[f"{mode}.png"] = _file(plain[mode], "PNG"), rgb[mode]
        found[f"{mode}, exif.png"] = _file(plain[mode], "PNG", exif=exif), _turned(rgb[mode])
    for mode in ("L", "P"):
        found[f"{mode}.gif"] = _file(plain[mode], "GIF"), rgb[mode]
    for mode in ("RGB", "L", "RGBA", "P", "1"):
        found[f"{mode}.bmp"] = _file(plain[mode], "BMP"), rgb[mode]
    for mode in ("RGB", "L", "RGBA"):
        lossless = {"lossless": True, "exact": True}
        found[f"{mode}.webp"] = _file(plain[mode], "WEBP", **lossless), rgb[mode]
        turned = _file(plain[mode], "WEBP", exif=exif, **lossless)
        found[f"{mode}, exif.webp"] = turned, _turned(rgb[mode])
        found[f"{mode}, lossy.webp"] = _file(plain[mode], "WEBP"), None
    found["moving.webp"] = _file(photo, "WEBP", lossless=True, **several), rgb["RGB"]
    for mode in ("RGB", "CMYK"):
        found[f"{mode}, exif.jpg"] = _file(photo.convert(mode), "JPEG", exif=exif), None
    found["two, exif.mpo"] = _file(photo, "MPO", exif=exif, **several), None
    return found


def is_upright(name):
    """Whether a file of `files` needs no turning by its EXIF data."""
    return "exif" not in name


def refused_by_exports(name):
    """Whether an export refuses a file of `files`: it takes whole JPEG and PNG files, and no CMYK
    whose inks may be meant either way."""
    refused = name in ("no end.jpg", "CMYK without Adobe's marker.jpg")
    return refused or not name.endswith((".jpg", ".png", ".mpo"))


def twelve_bits(jpeg):
    """A JPEG whose header says 12 bits a colour."""
    start = jpeg.index(b"\xff\xc0")
    return jpeg[: start + 4] + b"\x0c" + jpeg[start + 5 :]


def _without_adobe(jpeg):
    start = jpeg.index(b"\xff\xee\x00\x0eAdobe")
    return jpeg[:start] + jpeg[start + 16 :]


def _ycck(jpeg):
    """The file of CMYK whose Adobe marker says that its inks are Y, Cb, Cr and K."""
    start = jpeg.index(b"\xff\xee\x00\x0eAdobe")
    return jpeg[: start + 15] + b"\x02" + jpeg[start + 16 :]


_PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2))
_PASSES = (*_PASSES, (1, 0, 2, 1))  # of Adam7: first row and column, and the steps


def png(pixels, colours, clear=b"", interlaced=False):
    """A PNG of `(height, width)` or `(height, width, 3)` of 8 or 16 bits, which Pillow does not
    write interlaced, nor of 16 bits in colours; `clear` is the colour of its tRNS chunk."""
    height, width = pixels.shape[:2]
    steps = _PASSES if interlaced else ((0, 0, 1, 1),)
    rows = []
    for top, left, down, right in steps:
        part = pixels[top::down, left::right].astype(pixels.dtype.newbyteorder(">"))
        rows += [b"\0" + row.tobytes() for row in part] if part.size else []
    depth = 8 * pixels.dtype.itemsize
    header = width.to_bytes(4) + height.to_bytes(4) + bytes([depth, colours, 0, 0, interlaced])
    chunks = [_chunk(b"IHDR", header), _chunk(b"tRNS", clear) if clear else b""]
    chunks += [_chunk(b"IDAT", zlib.compress(b"".join(rows))), _chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _chunk(name, data):
    return len(data).to_bytes(4) + name + data + zlib.crc32(name + data).to_bytes(4)


def _file(picture, kind, **options):
    stream = io.BytesIO()
    picture.save(stream, kind, **options)
    return stream.getvalue()


def _grey(values):
    return np.repeat(values.astype(np.uint8)[..., None], 3, axis=-1)


def _turned(pixels):
    return np.rot90(pixels, -1)


def _late_exif(picture, exif):
    """A PNG whose EXIF chunk stands behind its pixels."""
    data = _file(picture, "PNG", exif=exif)
    start = data.index(b"eXIf") - 4
    stop = start + 12 + int.from_bytes(data[start : start + 4], "big")
    end = data.index(b"IEND") - 4
    return data[:start] + data[stop:end] + data[start:stop] + data[end:]


def _moved(gif):
    """A GIF whose screen is wider than its picture, which lies 5 pixels from the left."""
    screen = (WIDTH + 9).to_bytes(2, "little")
    place = gif.index(b"\x2c\0\0\0\0")
    return gif[:6] + screen + gif[8 : place + 1] + b"\5" + gif[place + 2 :]


def _beside(pixels):
    wide = np.zeros((HEIGHT, WIDTH + 9, 3), np.uint8)
    wide[:, 5 : 5 + WIDTH] = pixels
    return wide
