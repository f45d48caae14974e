"""A visitor's photos: sent one by one, embedded, searched, and deleted after an hour."""

import dataclasses
import os
import secrets
import shutil
import tempfile
import threading
from pathlib import Path
from time import monotonic

from demo import limits, pictures
from demo.gallery import Gallery
from demo.service import Service
from halo_search.embeddings.arrays import coordinates, joined

SECONDS = 3600
MOST_VISITORS = 100


@dataclasses.dataclass(eq=False)
class _Album:
    """The photos of one visitor."""

    folder: Path
    since: float
    names: list = dataclasses.field(default_factory=list)
    paths: list = dataclasses.field(default_factory=list)
    embeddings: list = dataclasses.field(default_factory=list)  # one part per photo
    service: Service | None = None  # of the photos so far; made when they are asked


class OwnPhotos:
    """The albums of visitors by their secret keys.

    Args:
        gallery: the `Gallery` whose model embeds the photos.
        seconds: how long an album stays, from its first photo on.
    """

    def __init__(self, gallery, seconds=SECONDS):
        self._gallery, self._seconds = gallery, seconds
        self._albums, self._lock = {}, threading.RLock()

    def add(self, key, name, path):
        """Adds an uploaded picture.

        Args:
            key: of an album; one that is unknown, or empty, starts a new album.
            name: what the visitor calls the file.
            path: of the uploaded file, which may go after the call.

        Returns:
            A dict: the `key` of the album and its number of `photos`, the `item` and `name` of the
            photo, and whether it is `unlike` the pictures that the model has learnt from.

        Raises:
            RefusedError: if it is no picture, too large, or the album is full.
        """
        self._expect_room(key)
        kept = {}

        def read(pixels):
            kept["jpeg"] = pictures.shrunk(pixels)
            return self._gallery.pixels(pixels)

        fitted = limits.picture(path, read)
        embedding = self._gallery.of_pixels([fitted])
        with self._lock:  # an album begins with a picture that could be read
            self._expect_room(key)
            key, album = self._album(key)
            item = len(album.names)
            file = album.folder / f"{item}.jpg"
            file.write_bytes(kept["jpeg"])
            stem = Path(name).stem.replace("_", " ").strip()
            album.names.append(stem[:80] or f"Photo {item + 1}")
            album.paths.append(file)
            album.embeddings.append(embedding)
            album.service = None
        return {
            "key": key,
            "item": item,
            "name": album.names[item],
            "photos": len(album.names),
            "unlike": self._unlike(embedding),
        }

    def service(self, key):
        """The `Service` over an album.

        Raises:
            RefusedError: if there is no such album any more.
        """
        self._delete_old()
        with self._lock:
            album = self._albums.get(key)
            if album is None:
                raise limits.RefusedError("These photos are deleted. Add them again.")
            if album.service is None:
                gallery, embeddings = self._gallery, joined(album.embeddings)
                names, paths = list(album.names), list(album.paths)
                own = Gallery(
                    "your photos", gallery.asker, names, paths, [], {"images": embeddings}
                )
                own.model_name = gallery.model_name
                album.service = Service(own)
            return album.service

    def forget(self, key):
        """Deletes an album."""
        with self._lock:
            album = self._albums.pop(key, None)
        if album is not None:
            shutil.rmtree(album.folder, ignore_errors=True)

    def close(self):
        """Deletes all albums."""
        for key in list(self._albums):
            self.forget(key)

    def _expect_room(self, key):
        album = self._albums.get(key)
        if album is not None and len(album.names) >= limits.MAX_PHOTOS:
            raise limits.RefusedError(f"At most {limits.MAX_PHOTOS} photos are taken.")

    def _album(self, key):
        self._delete_old()
        with self._lock:
            if key not in self._albums:
                while len(self._albums) >= MOST_VISITORS:
                    self.forget(min(self._albums, key=lambda one: self._albums[one].since))
                key = secrets.token_urlsafe(24)
                folder = Path(tempfile.mkdtemp(prefix="halo-own-", dir=_private()))
                self._albums[key] = _Album(folder, monotonic())
                timer = threading.Timer(self._seconds, self.forget, (key,))
                timer.daemon = True  # the private folder goes with the process
                timer.start()
            return key, self._albums[key]

    def _delete_old(self):
        before = monotonic() - self._seconds
        with self._lock:
            for key in [key for key, album in self._albums.items() if album.since < before]:
                self.forget(key)

    def _unlike(self, embedding):
        """Whether a photo is unlike those that the model has learnt from."""
        probes = self._gallery.asker.probes
        known = None if probes is None else probes.known.get("i2t")
        return known is not None and bool(known.declined(coordinates(embedding))[0])


def _private():
    """The folder of the process's temporary files, which goes when it ends."""
    return os.environ.get("GRADIO_TEMP_DIR")
