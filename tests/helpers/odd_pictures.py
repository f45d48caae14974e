"""Pictures of every format and oddity, with the pixels that they plainly hold."""

import io

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
    found["no end.jpg"] = found["CMYK.jpg"][0][:-2], None
    found["deep.png"] = _file(Image.fromarray(deep), "PNG"), _grey(deep >> 8)
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
    """Whether an export refuses a file of `files`: it takes whole JPEG and PNG files."""
    return name == "no end.jpg" or not name.endswith((".jpg", ".png", ".mpo"))


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
