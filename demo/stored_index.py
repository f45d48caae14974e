"""The gallery of an index that `halo search build` wrote: nothing is encoded, and Keras is lazy."""

import functools
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from demo.gallery import Gallery
from demo.limits import RefusedError
from halo_search.collection import Collection
from halo_search.collection.parts import read_names
from halo_search.collection.sources import stamp_of
from halo_search.embeddings.arrays import take
from halo_search.errors import InputError
from halo_search.files.tables import SEPARATORS
from halo_search.files.text_files import existing_folder, safe_relative
from halo_search.index import built
from halo_search.retriever import Retriever

_READS = {"images": "pictures", "captions": "texts"}
_LOOKED_FOR = 100  # photos
_NO_CAPTIONS = "This index holds photos and no captions, so there is nothing for a picture to find."
_NO_PHOTOS = (
    "This index holds captions and no photos: press the camera to choose a picture, and see which "
    "of them describe it."
)
_NO_EMBEDDINGS = (
    "There is no map: it needs what each item was encoded to, which an index of “halo search "
    "build” keeps and this one does not."
)
_MOVED = (
    "The photos of this index are not where they were when it was built, or have changed: their "
    "names stand for them. Start the demo with --photos DIR to show those of a folder."
)
_NOWHERE = Path(os.devnull)  # no picture
_AGAIN = "This index has been built again. Start the demo again to see it as it is now."


def load(folder, photos=None):
    """The gallery of an index, by its stored towers where it has them, else by its model.

    Args:
        folder: what `halo search build` or `zoo.Retriever.save` wrote.
        photos: where its photos are now, if they have moved.

    Raises:
        InputError: if it is of another version, damaged, or its model reads vectors.
    """
    folder, setup, retriever = Path(folder), None, None
    while setup != built.read_setup(folder):  # one that is built again meanwhile
        setup = built.read_setup(folder)
        retriever = Retriever.load(folder)
    for side, wanted in _READS.items():
        found = retriever.tower(side).reads
        if found == "vectors":
            raise InputError(
                f"{folder}: its model reads vectors, so nothing can be asked; show its run, "
                f"{setup['model']}"
            )
        if found != wanted:
            raise InputError(f"{folder}: its model reads {found} for {side}, not {wanted}")
    ids = np.sort(retriever.index.ids)
    side = retriever.side
    names = retriever.names_of(ids) or [f"{side[:-1].capitalize()} {one}" for one in ids.tolist()]
    embeddings, uncertainties, missing = {}, {}, {}
    parts = None
    if "parts" in setup:
        parts = Collection(folder / setup["parts"]["folder"], setup["parts"]["files"])
        embeddings = _Stored(parts, side, ids)
        uncertainties = {side: parts.uncertainty(ids)}
    else:
        missing["map"] = _NO_EMBEDDINGS
    paths, captions = [], []
    if side == "captions":
        captions, missing["images"] = names, _NO_PHOTOS
    else:
        missing["captions"] = _NO_CAPTIONS
        paths = _paths(setup, names, photos)
        if photos is None:
            paths = _unchanged(paths, parts, ids)
        some = paths[:: -(-len(paths) // _LOOKED_FOR) or 1]
        if some and not any(path.is_file() for path in some):
            missing["photos"] = _MOVED
            print(f"{folder}: no photo is as it was indexed: name their folder, --photos")
    return Gallery(
        folder.resolve().name,
        retriever,
        names if side == "images" else [],
        paths,
        captions,
        embeddings,
        ids=ids,
        uncertainties=uncertainties,
        missing=missing,
        model_name=Path(setup["model"]).name,
    )


class _Stored(Mapping):
    """The embeddings of an index's side, read when they are first asked for."""

    def __init__(self, parts, side, ids):
        self._parts, self._side, self._ids = parts, side, ids

    def __getitem__(self, side):
        if side != self._side:
            raise KeyError(side)
        return self._read

    def __iter__(self):
        return iter([self._side])

    def __len__(self):
        return 1

    @functools.cached_property
    def _read(self):
        try:
            return take(self._parts.whole(self._ids).arrays, slice(None))
        except InputError:
            raise RefusedError(_AGAIN) from None


def _unchanged(paths, parts, ids):
    """The paths of files that are unchanged since they were indexed, and `_NOWHERE` for others.
    Nobody can guess the stamp of a file, so an index from somebody else shows no file of this
    machine."""
    if parts is None:
        return [_NOWHERE] * len(paths)
    files = (f"{parts.folder}/{part['file']}" for part in parts.parts)
    stamps = [stamp for file in files for stamp in read_names(file)[1]]
    pairs = zip(paths, ids.tolist(), strict=True)
    return [
        path if stamps[one] and stamps[one] == stamp_of(path) else _NOWHERE for path, one in pairs
    ]


def _paths(setup, names, photos):
    """Where the photos are that were indexed: relative to the folder, or to that of the table."""
    source = (setup.get("build") or {}).get("source", "")
    if photos is not None:
        root = existing_folder(photos, "folder of the index's photos")
    elif Path(source).suffix in SEPARATORS:
        root = Path(source).parent
    else:
        root = Path(source)
    return [root / name if safe_relative(name) else _NOWHERE for name in names]
