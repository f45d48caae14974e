"""Pictures of a gallery as JPEG: thumbnails, large ones, and sheets of tiles for the map."""

import functools
import io
from pathlib import Path
from urllib.parse import quote

import numpy as np
from PIL import Image, ImageDraw

from halo_search.files.decoding import decoded, opened

THUMBNAIL, LARGE = 400, 1600  # pixels of the longer side
TILE, COLUMNS, ROWS = 64, 16, 16  # pixels of a tile; tiles of a sheet
_GREY = (128, 134, 145)
_TRANSPOSED = (5, 6, 7, 8)  # values of the EXIF orientation that swap width and height
_ORIENTATION = 0x0112
_IN_ADDRESSES = ":/?#[]@!$&()*+,;=%~"  # no quotes and no angles, so it stays inside an attribute
_UNREADABLE = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)


class Pictures:
    """The pictures of a gallery by row; a file that cannot be read has a grey placeholder.

    Args:
        paths: the files; `Path`s of stored vectors may be addresses, which a browser fetches.
        larger: function from a path to a Pillow image to show instead of the file, or None.
        has_addresses: whether paths may be addresses.
    """

    def __init__(self, paths, larger=None, has_addresses=False):
        self.paths, self._larger = paths, larger
        self._has_addresses = has_addresses

    def __len__(self):
        return len(self.paths)

    def address(self, row):
        """The address that a browser fetches a picture from, or None: this machine serves it."""
        path = str(self.paths[row])
        if self._has_addresses and path.startswith(("http://", "https://")):
            return quote(path, safe=_IN_ADDRESSES)
        return None

    @functools.lru_cache(maxsize=2048)  # noqa: B019 -- a gallery lives as long as its pictures
    def thumbnail(self, row):
        """JPEG bytes of at most 400 pixels a side."""
        return jpeg(self._picture(row, THUMBNAIL))

    @functools.lru_cache(maxsize=32)  # noqa: B019 -- as above
    def large(self, row):
        """JPEG bytes of at most 1,600 pixels a side, without the file's metadata."""
        return jpeg(self._picture(row, LARGE), quality=92)

    @functools.lru_cache(maxsize=8192)  # noqa: B019 -- as above
    def ratio(self, row):
        """Width over height, from the header of the file; 1 where that cannot be read."""
        if self._larger is not None or self.address(row) is not None:
            return 1.0
        try:
            picture = opened(Path(self.paths[row]).read_bytes())
            width, height = picture.size
            if picture.getexif().get(_ORIENTATION) in _TRANSPOSED:
                width, height = height, width
            return width / height
        except _UNREADABLE:
            return 1.0

    @property
    def sheets(self):
        """How many sheets of tiles there are."""
        return -(-len(self.paths) // (COLUMNS * ROWS))

    @functools.lru_cache(maxsize=64)  # noqa: B019 -- as above
    def sheet(self, number):
        """JPEG bytes of 256 square tiles, row by row, from row `256 * number` on."""
        sheet = Image.new("RGB", (COLUMNS * TILE, ROWS * TILE), _GREY)
        start = number * COLUMNS * ROWS
        for place, row in enumerate(range(start, min(start + COLUMNS * ROWS, len(self.paths)))):
            tile = _square(self._picture(row, 2 * TILE), TILE)
            sheet.paste(tile, (place % COLUMNS * TILE, place // COLUMNS * TILE))
        return jpeg(sheet, quality=82)

    def is_there(self, row):
        """Whether the picture's file can be opened."""
        try:
            opened(Path(self.paths[row]).read_bytes())
        except _UNREADABLE:
            return False
        return True

    def _picture(self, row, size):
        """A Pillow image of at most `size` pixels a side."""
        try:
            if self.address(row) is not None:
                return _placeholder()
            path = self.paths[row]
            if self._larger is not None:
                picture = self._larger(path)
            else:
                picture = opened(Path(path).read_bytes())
                picture.draft("RGB", (size, size))
                picture = Image.fromarray(decoded(picture))
        except _UNREADABLE:
            return _placeholder()
        picture.thumbnail((size, size))
        return picture.convert("RGB")


def shrunk(pixels, size=LARGE):
    """JPEG bytes of decoded pixels `(height, width, 3)`, at most `size` a side."""
    picture = Image.fromarray(np.asarray(pixels))
    picture.thumbnail((size, size))
    return jpeg(picture, quality=90)


def _square(picture, size):
    side = min(picture.size)
    left, top = (picture.width - side) // 2, (picture.height - side) // 2
    box = (left, top, left + side, top + side)
    return picture.resize((size, size), Image.Resampling.BILINEAR, box)


@functools.cache
def _placeholder():
    """A grey ground with an empty frame."""
    picture = Image.new("RGB", (320, 320), (226, 228, 233))
    ImageDraw.Draw(picture).rounded_rectangle((110, 120, 210, 200), 10, outline=_GREY, width=4)
    return picture


def jpeg(picture, quality=85):
    """JPEG bytes of a Pillow image."""
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()
