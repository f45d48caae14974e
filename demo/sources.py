"""Where the demo's model and gallery come from: a preset or a run with its data, or a folder."""

import hashlib
import json
from pathlib import Path

from demo.gallery import SIDES, Gallery
from halo_search import collection, presets
from halo_search.errors import InputError
from halo_search.files import cache_folder
from halo_search.files.decoding import check_images
from halo_search.files.folders import counted
from halo_search.photos import (
    packaged_captions,
    packaged_photos,
    packaged_vectors,
    photo_credits,
)
from halo_search.retriever import Retriever
from halo_search.retriever.gallery_model import GalleryModel

PRESET = "photos_pfe"


def load(run=PRESET, folder=None, captions=None, data_dir=None, cache=None):
    """A `Gallery` of a model, encoded, or read back from `cache`: of `folder` with `captions`, else
    of the run's data; a preset of photos, and a model of others, ask the packaged photos.

    A packaged preset of photos needs neither Keras nor TensorFlow.
    """
    model = GalleryModel.of(run)
    asker = Retriever(model, None, model.probes())
    if asker.tower("captions").reads == "vectors":
        from demo import records  # which needs `zoo`, and Keras

        return records.of_vectors(run, folder, data_dir)
    _expect_pictures_and_texts(asker)
    found, more = None, {}
    card = presets.card_of(run)
    if card is not None:
        more["model_name"] = str(run)
    if folder is not None:
        names, paths = _readable(folder)
        texts = [] if captions is None else collection.captions(captions).values
        shown = {"image_names": names, "image_paths": paths, "captions": texts}
        shown["name"] = Path(folder).name
    elif _asks_packaged(run, card, data_dir):
        shown = _packaged()
    else:
        from demo import records

        found, shown = records.of_run(run, data_dir)
    cache = cache_folder("demo") if cache is None else cache
    images = packaged_vectors(_checksum(model)) if "credits" in shown else None
    embeddings = _embeddings(asker, shown, cache, images)
    return Gallery(asker=asker, embeddings=embeddings, records=found, **shown, **more)


def by_another(run, gallery, cache=None):
    """The pictures of a `Gallery` encoded by another model, to compare with: a `Gallery`.

    Raises:
        InputError: if the model reads vectors, or the gallery has no pictures.
    """
    if not gallery.image_paths:
        raise InputError(f"--compare {run}: {gallery.name} has no pictures to encode")
    model = GalleryModel.of(run)
    asker = Retriever(model, None, model.probes())
    _expect_pictures_and_texts(asker)
    cache = cache_folder("demo") if cache is None else cache
    names = "name", "image_names", "image_paths", "captions", "noun", "larger", "credits"
    shown = {name: getattr(gallery, name) for name in (*names, "descriptions", "records")}
    return Gallery(
        asker=asker,
        embeddings=_embeddings(asker, shown, cache),
        model_name=Path(run).name,
        **shown,
    )


def _expect_pictures_and_texts(asker):
    asker.tower("images").expect("pictures")
    asker.tower("captions").expect("texts")


def _asks_packaged(run, card, data_dir):
    """Whether a model names no data of its own, or is the preset of photos."""
    if card is not None:
        return card["data"]["loader"] == "pairs"
    from demo import records

    return data_dir is None and not records.is_run(run)


def _packaged():
    """What a Gallery shows of the packaged photos."""
    paths, credit, texts = packaged_photos(), photo_credits(), packaged_captions()
    return {
        "name": f"{len(paths)} photos",
        "image_names": [f"Photo {number}" for number in range(1, len(paths) + 1)],
        "image_paths": paths,
        "captions": [],
        "credits": [credit[path.name] for path in paths],
        "descriptions": [texts[path.name][0] for path in paths],
    }


def _checksum(model):
    """The hash of all weights; stored vectors of packaged photos name that of their model."""
    return model.opened.weights_sha256 if model.onnx is None else model.onnx.checksum


def _embeddings(asker, shown, cache, images=None):
    """The embeddings of a gallery's sides, of which `images` may be known."""
    towers = {side: asker.tower(side) for side in SIDES}
    if images is None:
        images = _encoded(shown["image_paths"], towers["images"], cache)
    if not shown["captions"]:
        return {"images": images}
    return {"images": images, "captions": _encoded(shown["captions"], towers["captions"], cache)}


def _readable(folder):
    """Names and paths of the pictures of a folder that can be read."""
    found = collection.pictures(folder)
    names, paths = found.names, found.values
    reasons = check_images(paths)
    good = [i for i, reason in enumerate(reasons) if reason is None]
    if not good:
        raise InputError(f"{paths[0]}: {reasons[0]}; none of the images can be read")
    bad = {"cannot be read": len(paths) - len(good)} if len(good) < len(paths) else {}
    count = {"seen": found.seen, "taken": len(good), "left": {**found.left, **bad}}
    print(f"{folder}: {counted(count)}")
    return [names[i] for i in good], [Path(paths[i]) for i in good]


def _encoded(items, tower, cache):
    """The embedding of all items, in a folder of the cache, with a progress bar."""
    is_images = tower.side == "images"
    identity = {"model": tower.model_sha256, "image_size": tower.image_size}
    found = (collection.pictures if is_images else collection.captions)(list(map(str, items)))
    whole = ["parts", identity, tower.side, found.names, found.stamps]
    key = hashlib.sha256(json.dumps(whole).encode()).hexdigest()[:16]
    return collection.encode(found, tower, Path(cache) / key, identity).whole().arrays
