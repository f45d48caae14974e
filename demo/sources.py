"""Where the demo's model and gallery come from: a preset or a run with its data, or a folder."""

import hashlib
import json
from pathlib import Path

import zoo
from demo.encoders import Encoders
from demo.gallery import Gallery
from zoo.data import coco, cub, flickr30k, toy_birds, toy_scenes
from zoo.errors import InputError
from zoo.files import RunFolder
from zoo.models.presets import MODEL_FILE, PACKAGED
from zoo.search import encode

PRESET = "toy_birds_pcme"
DATA = Path("data")
CACHE = DATA / "demo"
_CAPTION_BATCH = 256


def load(run=PRESET, folder=None, captions=None, data_dir=None, cache=CACHE):
    """A model with its gallery, encoded; what was encoded before is read back.

    Args:
        run: a preset's name, or the run folder of a recipe.
        folder: a folder of images to take as the gallery, with all folders below it.
        captions: a text, CSV or TSV file of captions to go with `folder`.
        data_dir: the data set of the run, if it has moved.
        cache: where embeddings are kept.

    Returns:
        `(gallery, metrics)`: metrics is what the run measured, or None.

    Raises:
        InputError: if something is not there or is not what it has to be.
    """
    model = zoo.from_preset(run)
    encoders = Encoders(model)
    packaged = str(run) in zoo.list_presets()
    model_path = (PACKAGED / str(run) if packaged else Path(run)) / MODEL_FILE
    records, metrics = None, None
    if not packaged and (Path(run) / "config.json").exists():
        finished = RunFolder.existing(run)
        metrics = finished.metrics
    if folder is None:
        records = _toy_birds() if packaged else _records(Path(run), encoders.image_size, data_dir)
        names = [Path(path).stem.replace("_", " ") for path in records.image_paths]
        paths = [Path(path) for path in records.image_paths]
        texts, name = list(records.captions), records.name
    else:
        names, paths = encode.list_images(folder)
        listed = len(paths)
        names, paths = encode.without_bad(names, paths, skip_bad=True)
        if listed > len(paths):
            print(f"{folder}: {listed - len(paths)} of {listed} images cannot be read")
        texts = [] if captions is None else encode.list_captions(captions)
        name = Path(folder).name
    identity = {"model": _digest(model_path), "image_size": encoders.image_size}
    embeddings = {"images": _encoded(paths, encoders.files, cache, identity, "images", 64)}
    if texts:
        embeddings["captions"] = _encoded(
            texts, encoders.captions, cache, identity, "captions", _CAPTION_BATCH
        )
    return Gallery(name, encoders, names, paths, texts, embeddings, records), metrics


def _encoded(items, encoder, cache, identity, side, batch_size):
    """The embedding of all items, in shards below the cache, with a progress bar."""
    facts = [str(item) for item in items]
    if side == "images":
        facts = [f"{item} {item.stat().st_size} {item.stat().st_mtime_ns}" for item in items]
    key = hashlib.sha256(json.dumps([identity, side, facts]).encode()).hexdigest()[:16]
    folder = Path(cache) / key
    shards = encode.encode_shards(items, encoder, folder, identity, batch_size=batch_size)
    whole = zoo.embeddings.concatenate([encode.read_shard(shard) for shard in shards])
    return {name: value.numpy() for name, value in whole.items()}


def _digest(path):
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _toy_birds():
    """The unseen classes of Toy Birds; drawn alone unless a recipe has drawn all."""
    whole = DATA / "toy_birds"
    root = whole if whole.exists() else toy_birds.generate(CACHE / "toy_birds", part="test")
    return cub.load(root, split="test", image_size=64, verbose=False).records


def _records(run, image_size, data_dir):
    """The held-out split that a run was evaluated on."""
    if not (run / "config.json").exists():
        raise InputError(f"{run}: knows no data; name a folder of images with --gallery")
    folder = RunFolder.existing(run)
    settings = folder.settings
    root = data_dir or settings.get("data_dir")
    split = settings.get("held_out", "test")
    options = {"image_size": image_size, "skip_bad": True, "verbose": False}
    if root is None:
        if "cub" in folder.config.get("command", ""):
            return _toy_birds() if split == "test" else _cub(toy_birds.generate, split, options)
        root = toy_scenes.generate(DATA / "toy_scenes") / "coco"
    root = Path(root)
    if (root / "classes.txt").exists():
        return cub.load(root, settings.get("captions"), split=_cub_split(split), **options).records
    for name, loader, pictures in (
        ("dataset_coco.json", coco, root),
        ("annotations/dataset_coco.json", coco, root),
        ("dataset_flickr30k.json", flickr30k, root / "flickr30k-images"),
    ):
        if (root / name).exists():
            return loader.load(root / name, pictures, split=split, **options).records
    raise InputError(
        f"{root}: expected the data of {run} (CUB's classes.txt, dataset_coco.json or "
        "dataset_flickr30k.json); name its folder with --data-dir, or any images with --gallery"
    )


def _cub(generate, split, options):
    return cub.load(generate(DATA / "toy_birds"), split=_cub_split(split), **options).records


def _cub_split(split):
    return {"val": "val1"}.get(split, split)
