"""Encodes many images or captions into shards on disk, and goes on where it was stopped."""

import hashlib
import json
from collections import Counter
from pathlib import Path

import numpy as np
import tensorflow as tf
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from zoo.data import images
from zoo.data.files import SUFFIXES, check_images, existing_folder, read_lines
from zoo.data.tables import SEPARATORS, read_table
from zoo.errors import InputError
from zoo.files.atomic import atomic, remove_leftovers, write_text
from zoo.search import vectors

JOB = "job.json"
ITEMS = "items.json"


def list_images(source, column="image"):
    """The image files of a folder with all folders below it, or of a table.

    Args:
        source: a folder, or a CSV or TSV file with paths relative to its own folder.
        column: of the paths in a table.

    Returns:
        `(names, paths)`: names relative to the folder, sorted in the case of a folder.

    Raises:
        InputError: if there is none.
    """
    source = Path(source).expanduser()
    if source.suffix in SEPARATORS:
        names = list_captions(source, column)
        return names, [source.parent / name for name in names]
    folder = existing_folder(source, "folder of images, or CSV or TSV file")
    paths = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES and p.is_file())
    if not paths:
        raise InputError(f"{folder}: holds no image ({', '.join(SUFFIXES)})")
    return [path.relative_to(folder).as_posix() for path in paths], paths


def left_out(source):
    """How many files of a folder are no pictures by their suffix: `{suffix: count}`, most first.

    Args:
        source: as of `list_images`; a table leaves out nothing. Hidden files are not counted.
    """
    source = Path(source).expanduser()
    if not source.is_dir():
        return {}
    others = (
        path.suffix.lower() or "no suffix"
        for path in source.rglob("*")
        if path.is_file() and path.suffix.lower() not in SUFFIXES and path.name[0] != "."
    )
    return dict(Counter(others).most_common())


def list_captions(source, column="caption"):
    """The texts of one column of a table, or the lines of a text file.

    Raises:
        InputError: if there is none, or one is empty, with file and line.
    """
    source = Path(source).expanduser()
    if source.suffix in SEPARATORS:
        numbered = [(line, value) for line, (value,) in read_table(source, [column])]
    else:
        numbered = list(enumerate(read_lines(source), start=1))
    for line, value in numbered:
        if not (value or "").strip():
            raise InputError(f"{source}:{line}: expected text as {column!r}, found nothing")
    if not numbered:
        raise InputError(f"{source}: has no rows")
    return [value.strip() for _, value in numbered]


def without_bad(names, paths, skip_bad):
    """Names and paths of the pictures that can be read.

    Raises:
        InputError: for the first that cannot, unless `skip_bad`, or if none is left.
    """
    reasons = check_images(paths)
    bad = [(path, why) for path, why in zip(paths, reasons, strict=True) if why]
    if bad and not skip_bad:
        path, why = bad[0]
        raise InputError(f"{path}: {why} ({len(bad)} of {len(paths)} images cannot be read)")
    good = [i for i, why in enumerate(reasons) if not why]
    if not good:
        raise InputError(f"{paths[0]}: {reasons[0]}; none of the images can be read")
    return [names[i] for i in good], [paths[i] for i in good]


def image_encoder(model, mode="crop", crop_fraction=1.0):
    """A function from image paths to an embedding, for `encode_shards`.

    Args:
        model: a `DualEncoder` of pictures.
        mode, crop_fraction: as in training, see `zoo.data.images.prepare` and
            `zoo.evaluation.resizing_of`.

    Raises:
        InputError: if the model reads no pictures.
    """
    shape = getattr(model.image_encoder, "input_shape", None)
    if shape is not None and (not isinstance(shape, tuple) or len(shape) != 4):
        raise InputError(f"the model reads features of shape {shape}, not pictures")
    size = (shape and shape[1]) or 224

    def encode(paths):
        pixels = [
            images.prepare(tf.io.read_file(str(path)), size, mode, crop_fraction) for path in paths
        ]
        pixels = np.stack(pixels).astype(np.float32)
        return model.encode_images(pixels, batch_size=len(pixels))

    return encode


def encode_shards(items, encode, folder, identity, shard_size=4096, batch_size=64, progress=True):
    """Encodes items into `folder/shard-00000.npz` and so on, each the arrays of an embedding.

    A shard is whole or not there, so a second call goes on behind the last one.

    Args:
        items: a list of whatever `encode` takes.
        encode: from a list of at most `batch_size` items to an embedding.
        folder: of the shards.
        identity: JSON values that say what the shards are of (the model, say). Together with the
            items they tell whether a second call is the same work.
        shard_size: items a shard.
        batch_size: items at once.
        progress: whether to draw a bar.

    Returns:
        The paths of the shards, in the order of the items.

    Raises:
        InputError: if the folder holds shards of other work, or cannot be written.
    """
    folder = Path(folder)
    digest = hashlib.sha256(json.dumps([str(item) for item in items]).encode()).hexdigest()
    job = {**identity, "items": len(items), "items_sha256": digest, "shard_size": shard_size}
    if (folder / JOB).exists():
        before = json.loads((folder / JOB).read_text(encoding="utf-8"))
        other = sorted(key for key in job if before.get(key) != job[key])
        if other:
            raise InputError(
                f"{folder}: holds embeddings of other work ({', '.join(other)} differ); choose "
                "another folder, or delete it"
            )
        remove_leftovers(folder)
    else:
        write_text(folder / JOB, json.dumps(job, indent=2) + "\n")
    paths = [folder / f"shard-{n:05d}.npz" for n in range(-(-len(items) // shard_size))]
    with _progress(progress) as bar:
        task = bar.add_task("encoding", total=len(items))
        for number, path in enumerate(paths):
            own = items[number * shard_size : (number + 1) * shard_size]
            if not path.exists():
                parts = []
                for start in range(0, len(own), batch_size):
                    batch = own[start : start + batch_size]
                    parts.append(vectors.as_arrays(encode(batch)))
                    bar.advance(task, len(batch))
                whole = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
                with atomic(path) as temporary:
                    np.savez(temporary, **whole)
            else:
                bar.advance(task, len(own))
    return paths


def read_shard(path):
    """The embedding in a shard, a dict of arrays.

    Raises:
        InputError: if it cannot be read.
    """
    try:
        with np.load(path) as arrays:
            return dict(arrays)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path}: not a shard of embeddings ({error}); delete it") from error


def _progress(shown):
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        disable=not shown,
    )
