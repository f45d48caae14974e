"""How common the words of a question are: how many photos of a bank hold them."""

import functools
from importlib import resources

import numpy as np

from zoo.confidence.words import stems

FILE = "caption_bank.npz"


class CaptionBank:
    """Which captioned photos hold which stems: a prior for short questions.

    ```python
    bank = zoo.confidence.caption_bank.packaged_bank()
    bank.count("a dog"), bank.count("a dog on a beach"), bank.size
    ```

    The packaged bank is of MS COCO's val2017 captions (CC BY 4.0, see zoo/photos/CREDITS): no
    caption is in it, only the stems of each photo's captions.

    Args:
        stems: sorted strings.
        starts: `(stems + 1,)`, where the photos of each stem start in `photos`.
        photos: numbers of photos, rising for each stem.
        size: number of photos, n.
    """

    def __init__(self, stems, starts, photos, size):
        self.stems, self.starts, self.photos = stems, np.asarray(starts), np.asarray(photos)
        self.size = int(size)
        self._row = {stem: row for row, stem in enumerate(stems)}

    @classmethod
    def of(cls, captions, photo_of, least=2):
        """The bank of captions.

        Args:
            captions: strings.
            photo_of: the number of each caption's photo, from 0.
            least: stems of fewer photos are left out, such as misspelt words.
        """
        found = {}
        for caption, photo in zip(captions, photo_of, strict=True):
            for stem in stems(caption):
                found.setdefault(stem, set()).add(int(photo))
        kept = sorted(stem for stem, photos in found.items() if len(photos) >= least)
        lists = [np.array(sorted(found[stem]), np.uint16) for stem in kept]
        starts = np.concatenate([[0], np.cumsum([len(one) for one in lists])])
        return cls(kept, starts, np.concatenate(lists), max(photo_of) + 1)

    def photos_with(self, stem):
        """The numbers of the photos whose captions hold a stem."""
        row = self._row.get(stem)
        if row is None:
            return np.empty(0, np.uint16)
        return self.photos[self.starts[row] : self.starts[row + 1]]

    def count(self, text):
        """How many photos hold all the stems of a text; 0 of a text without any."""
        lists = sorted((self.photos_with(stem) for stem in stems(text)), key=len)
        if not lists:
            return 0
        return len(functools.reduce(lambda a, b: np.intersect1d(a, b, True), lists))

    def save(self, path):
        """Writes one file of arrays."""
        np.savez_compressed(
            path,
            stems=np.frombuffer("\n".join(self.stems).encode(), np.uint8),
            starts=self.starts.astype(np.int32),
            photos=self.photos.astype(np.uint16),
            size=self.size,
        )

    @classmethod
    def load(cls, path):
        """Reads what `save` wrote."""
        with np.load(path, allow_pickle=False) as file:
            words = file["stems"].tobytes().decode().split("\n")
            return cls(words, file["starts"], file["photos"], file["size"])


@functools.cache
def packaged_bank() -> CaptionBank:
    """The bank that comes with the package."""
    with resources.as_file(resources.files("zoo.confidence") / FILE) as path:
        return CaptionBank.load(path)
