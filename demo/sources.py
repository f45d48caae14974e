"""Where the demo's model and gallery come from: a preset or a run with its data, or a folder."""

import hashlib
import json
import re
from pathlib import Path

import zoo
from demo.gallery import Gallery
from demo.stored_captions import labels_of
from halo_search import collection
from halo_search.errors import InputError
from halo_search.files import cache_folder
from halo_search.files.decoding import check_images
from halo_search.files.folders import counted
from halo_search.photos import packaged_vectors
from halo_search.retriever import Retriever
from zoo import evaluation
from zoo.data import batches, datasets, packaged_photos, photo_credits, toy_birds
from zoo.data.text.prompts import spoken
from zoo.data.toy.birds import MANIFEST
from zoo.models.run_folder import RunFolder
from zoo.models.tower import SIDES, weights_sha256
from zoo.presets import shown_pictures

PRESET = "photos_pfe"
_BIRDS = ("cub", "toy_birds", "few_classes")  # loaders of pictures that each show a bird


def load(run=PRESET, folder=None, captions=None, data_dir=None, cache=None):
    """A `Gallery` of a model, encoded, or read back from `cache`: of `folder` with `captions`, else
    of the run's data; a preset of photos, and a model of others, ask the packaged photos."""
    model = zoo.from_preset(run)
    if model.reads_caption_vectors:
        return _of_vectors(run, folder, data_dir)
    card = zoo.list_presets().get(str(run))
    if card is None:
        has_photos = folder is not None or data_dir is not None or RunFolder(run).is_run
        asks_packaged = not has_photos  # a model of others, which names no data
    else:
        asks_packaged = folder is None and card["data"]["loader"] == "pairs"
    records = _records(run, data_dir) if folder is None and not asks_packaged else None
    resizing = shown_pictures(model, run)
    asker = Retriever(model, None, evaluation.probes_of(run), resizing=resizing)
    towers = {side: asker.tower(side) for side in SIDES}
    towers["images"].expect("pictures")
    towers["captions"].expect("texts")
    more = {}
    if card is not None and "trained_on" in card:
        what, *_ = re.split("[:;,] ", card["trained_on"])
        more["trained_on"] = f"The model was trained on {what}."
    if asks_packaged:
        paths, credit = packaged_photos(), photo_credits()
        names = [f"Photo {number}" for number in range(1, len(paths) + 1)]
        texts, name = [], f"{len(paths)} photos"
        more |= {"credits": [credit[path.name] for path in paths]}
    elif folder is None:
        paths = [Path(path) for path in records.image_paths]
        names = _names(records, paths)
        texts, name = list(records.captions), records.name
        if evaluation.data_of(run)["loader"] in _BIRDS:
            more["noun"] = "bird"
        # Toy Birds are folder/images/class/file; a photo of one's own has fewer folders above it.
        if any(root.joinpath(MANIFEST).is_file() for root in list(paths[0].parents)[2:3]):
            more["larger"] = toy_birds.draw_again
    else:
        names, paths = _readable(folder)
        texts = [] if captions is None else collection.captions(captions).values
        name = Path(folder).name
    cache = cache_folder("demo") if cache is None else cache
    identity = {
        "model": weights_sha256(model),
        "image_size": towers["images"].image_size,
        **resizing,
    }
    images = packaged_vectors(identity["model"]) if asks_packaged else None
    if images is None:
        images = _encoded(paths, towers["images"], cache, identity)
    embeddings = {"images": images}
    if texts:
        embeddings["captions"] = _encoded(texts, towers["captions"], cache, identity)
    return Gallery(name, asker, names, paths, texts, embeddings, records, **more)


def _of_vectors(run, folder, data_dir):
    """The gallery of a run on stored vectors: those of its test split."""
    if folder is not None:
        raise InputError(f"{run}: reads vectors, and --photos is of pictures; leave it out")
    model, split = evaluation.open_run(run, data_dir)
    records, asker = split.records, Retriever(model, None, evaluation.probes_of(run))
    if records.caption_vectors is None:
        raise InputError("the model reads vectors of captions, and this gallery has words")
    images = batches.image_batches(records, split.source).map(lambda batch: batch["images"])
    captions = batches.caption_batches(records, None).map(lambda batch: batch["captions"])
    embeddings = {
        "images": asker.tower("images").of_arrays(images),
        "captions": asker.tower("captions").of_arrays(captions),
    }
    paths = list(records.image_paths)
    names = _names(records, [Path(path) for path in paths])
    labels = labels_of(records.captions, records.caption_ids)
    return Gallery(records.name, asker, names, paths, labels, embeddings, records)


def _names(records, paths):
    """What a person would call each image: its class, or the name of its file."""
    if records.class_names is None:
        return [path.stem.replace("_", " ") for path in paths]
    return [spoken(records.class_names[label]).capitalize() for label in records.image_labels]


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


def _encoded(items, tower, cache, identity):
    """The embedding of all items, in a folder of the cache, with a progress bar."""
    is_images = tower.side == "images"
    found = (collection.pictures if is_images else collection.captions)(list(map(str, items)))
    whole = ["parts", identity, tower.side, found.names, found.stamps]
    key = hashlib.sha256(json.dumps(whole).encode()).hexdigest()[:16]
    return collection.encode(found, tower, Path(cache) / key, identity).whole().arrays


def _records(run, data_dir):
    """The split that a run or a preset was evaluated on."""
    if str(run) not in zoo.list_presets() and not RunFolder(run).is_run:
        raise InputError(f"{run}: knows no data; name a folder of images with --photos")
    data = {**evaluation.data_of(run), "skip_bad": True}
    if data_dir is not None:
        data["root"] = str(data_dir)
    try:
        return datasets.open(data, "test").records
    except InputError as error:
        raise InputError(
            f"{error}; name its folder with --data-dir, or any images with --photos"
        ) from error
