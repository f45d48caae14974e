"""What each element of a set looks at in a photo: the attention over the image encoder's grid."""

import functools
import threading

import numpy as np
from PIL import Image

from demo.limits import RefusedError
from demo.pictures import jpeg
from halo_search.errors import InputError
from zoo import encoders

SIDE = 448  # pixels of a picture with the attention of an element
_PALE, _GREY = 205, 0.2  # of what an element does not look at
_NONE = "This model does not say what its elements look at."


class Attention:
    """Pictures of a gallery, pale where an element of their set does not look.

    Args:
        gallery: a `Gallery` of sets, whose model Keras has opened.
    """

    def __init__(self, gallery):
        self._gallery, self._lock = gallery, threading.Lock()

    @functools.cached_property
    def _looking(self):
        """The image encoder with its attention, and the grid `(rows, columns)` that it is over."""
        encoder = self._gallery.asker.model.image_encoder
        try:
            looking, grid = encoders.with_attention(encoder), encoders.map_size(encoder)
        except ValueError:
            raise RefusedError(_NONE) from None
        if grid is None:
            raise RefusedError(_NONE)
        return looking, grid

    @functools.lru_cache(maxsize=64)  # noqa: B019 -- a gallery lives as long as its attention
    def maps(self, row):
        """`(pixels, maps)` of a photo: uint8 `(size, size, 3)`, as the encoder is shown it, and
        float32 `(K, rows, columns)`, each element's of which sums to one."""
        try:
            pixels = self._gallery.pixels(self._gallery.image_paths[row])
        except InputError:
            raise RefusedError("This photo cannot be read.") from None
        with self._lock:
            looking, grid = self._looking
            maps = np.asarray(looking.predict_on_batch(pixels[None])["attention"], np.float32)[0]
        return pixels, maps.reshape(len(maps), *grid)

    def picture(self, row, element):
        """JPEG bytes of a photo where one element looks at it; the rest is pale.

        Each picture has its own scale: the cell that has most of an element's attention is as it
        is, one that has none is pale.
        """
        pixels, maps = self.maps(row)
        if not 0 <= element < len(maps):
            raise RefusedError("There is no such element.")
        share = Image.fromarray(maps[element] / max(float(maps[element].max()), 1e-12))
        photo = Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.BILINEAR)
        share = np.asarray(share.resize((SIDE, SIDE), Image.Resampling.BILINEAR))[..., None]
        shown = np.asarray(photo, np.float32)
        pale = _PALE + _GREY * (shown.mean(axis=-1, keepdims=True) - 128)
        mixed = share * shown + (1 - share) * pale
        return jpeg(Image.fromarray(mixed.clip(0, 255).astype(np.uint8)))

    def most(self, row):
        """For every element the largest attention of a cell, as a multiple of an even spread."""
        _, maps = self.maps(row)
        return (maps.max(axis=(1, 2)) * maps[0].size).tolist()
