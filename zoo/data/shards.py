"""Data sets as TFRecord files of equal size, for disks and object stores that like few files."""

import hashlib
import json
import os
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from zoo.cli import verbosity
from zoo.data.reading import images
from zoo.data.records import Records
from zoo.errors import InputError

INDEX = "shards.json"
_BLOCK = 1 << 24


def write(
    records: Records, folder: str | os.PathLike, num_shards: int = 8, verbose: bool = True
) -> Path:
    """Writes the pictures of a split, as they are on disk, with all their captions.

    Images go to the shards in turn, so that these differ by one image at most. The index comes
    last: a folder without it holds nothing whole. Read with `read`.

    Args:
        records: `Records` of pictures.
        folder: to write to, made if it is not there; also `gs://…` or what else TensorFlow opens.
        num_shards: files, at most as many as images.
        verbose: show a progress bar.

    Returns:
        The path of the index, a JSON file with the name, number of images and captions, and the
        SHA-256 of each shard.

    Raises:
        ValueError: if `num_shards` is no number from 1 to that of images.
        InputError: if a picture cannot be read or a shard not be written.
    """
    if not 1 <= num_shards <= records.num_images:
        raise ValueError(
            f"`num_shards` must be from 1 to the number of images, {records.num_images}; "
            f"received {num_shards}"
        )
    order = np.argsort(records.caption_image, kind="stable")
    ends = np.cumsum(np.bincount(records.caption_image, minlength=records.num_images))
    captions_of = np.split(order, ends[:-1])
    progress = keras.utils.Progbar(
        records.num_images, verbose=verbosity(verbose), unit_name="image"
    )
    shards, done = [], 0
    try:
        tf.io.gfile.makedirs(str(folder))
        for shard in range(num_shards):
            name = f"{shard:05d}-of-{num_shards:05d}.tfrecord"
            path = tf.io.gfile.join(str(folder), name)
            own = range(shard, records.num_images, num_shards)
            with tf.io.TFRecordWriter(f"{path}.partial") as file:
                for image in own:
                    file.write(_example(records, image, captions_of[image]))
                    done += 1
                    progress.update(done)
            tf.io.gfile.rename(f"{path}.partial", path, overwrite=True)
            captions = sum(len(captions_of[image]) for image in own)
            counts = {"images": len(own), "captions": captions}
            shards.append({"file": name, **counts, "sha256": _sha256(path)})
        index = tf.io.gfile.join(str(folder), INDEX)
        names = None if records.class_names is None else list(records.class_names)
        content = {"name": records.name, "class_names": names, "shards": shards}
        with tf.io.gfile.GFile(f"{index}.partial", "w") as file:
            file.write(json.dumps(content, indent=1) + "\n")
        tf.io.gfile.rename(f"{index}.partial", index, overwrite=True)
    except tf.errors.OpError as error:
        raise InputError(f"{folder}: {error.message}") from error
    return index


def read(
    folder: str | os.PathLike,
    image_size: int = 224,
    worker: tuple[int, int] = (0, 1),
    seed: int | None = None,
    buffer_size: int = 2048,
    verify: bool = True,
    verbose: bool = True,
) -> tf.data.Dataset:
    """Reads what `write` wrote.

    Args:
        folder: with the index.
        image_size: height and width of the images.
        worker: `(index, count)`: read only every `count`-th shard, so that workers together read
            every pair once. There must be a shard for each worker.
        seed: of the order, a new one each time the dataset is gone through; None: that of the
            files.
        buffer_size: with a seed, how many pairs the next one is drawn from.
        verify: compare the checksums of this worker's shards first.
        verbose: show a progress bar while verifying.

    Returns:
        A `tf.data.Dataset` of pairs, as the loaders give it: `images` float32, `captions` string,
        `image_labels` and `caption_labels` int32.

    Raises:
        ValueError: if `worker` is not (index, count) with index < count.
        InputError: if there is no whole index, a shard is missing or not as it was written, or
            there are fewer shards than workers.
    """
    index, count = worker
    if not 0 <= index < count:
        raise ValueError(f"`worker` must be (index, count) with index < count; received {worker}")
    content = _read_index(folder)
    own = content["shards"][index::count]
    if len(content["shards"]) < count:
        raise InputError(
            f"{folder}: {len(content['shards'])} shards, fewer than the {count} workers"
        )
    paths = [tf.io.gfile.join(str(folder), shard["file"]) for shard in own]
    for path in paths:
        if not tf.io.gfile.exists(path):
            raise InputError(f"{path}: no such shard")
    if verify:
        progress = keras.utils.Progbar(len(paths), verbose=verbosity(verbose), unit_name="shard")
        for number, (path, shard) in enumerate(zip(paths, own, strict=True), start=1):
            if _sha256(path) != shard["sha256"]:
                raise InputError(f"{path}: not as it was written (its SHA-256 is another)")
            progress.update(number)
    files = tf.data.Dataset.from_tensor_slices(paths)
    if seed is not None:
        files = files.shuffle(len(paths), seed=seed)
    pairs = files.interleave(
        tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE
    ).flat_map(_pairs)
    if seed is not None:
        pairs = pairs.shuffle(buffer_size, seed=seed)

    def decode(pair):
        picture = images.prepare(pair["images"], image_size)
        return {**pair, "images": tf.cast(picture, tf.float32)}

    captions = sum(shard["captions"] for shard in own)
    pairs = pairs.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
    return pairs.apply(tf.data.experimental.assert_cardinality(captions))


def _example(records, image, captions):
    path = str(records.image_paths[image])
    with tf.io.gfile.GFile(path, "rb") as file:
        picture = file.read()
    values = {
        "image": tf.train.Feature(bytes_list=tf.train.BytesList(value=[picture])),
        "image_id": _strings([str(records.image_ids[image])]),
        "label": _integers([records.image_labels[image]]),
        "captions": _strings(records.captions[captions]),
    }
    if records.caption_ids is not None:
        values["caption_ids"] = _integers(records.caption_ids[captions])
    if records.caption_boxes is not None:
        boxes = tf.train.FloatList(value=records.caption_boxes[captions].ravel())
        values["caption_boxes"] = tf.train.Feature(float_list=boxes)
    features = tf.train.Features(feature=values)
    return tf.train.Example(features=features).SerializeToString(deterministic=True)


def _strings(values):
    encoded = [str(value).encode() for value in values]
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=encoded))


def _integers(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[int(value) for value in values]))


def _pairs(example):
    """A dataset of one image's pairs, the picture still in its file's bytes."""
    form = {
        "image": tf.io.FixedLenFeature((), tf.string),
        "label": tf.io.FixedLenFeature((), tf.int64),
        "captions": tf.io.VarLenFeature(tf.string),
    }
    row = tf.io.parse_single_example(example, form)
    captions = row["captions"].values
    label = tf.fill(tf.shape(captions), tf.cast(row["label"], tf.int32))
    columns = {
        "captions": captions,
        "image_labels": label,
        "caption_labels": label,
    }
    return tf.data.Dataset.from_tensor_slices(columns).map(
        lambda pair: {"images": row["image"], **pair}
    )


def _read_index(folder):
    path = tf.io.gfile.join(str(folder), INDEX)
    try:
        with tf.io.gfile.GFile(path) as file:
            content = json.loads(file.read())
        # Whatever is used below, so that a wrong file is refused here.
        for shard in content["shards"]:
            shard["file"], shard["sha256"], shard["captions"] + 0
            if "/" in shard["file"] or shard["file"].startswith("."):
                raise InputError(f"{path}: {shard['file']!r} leads out of the folder")
    except tf.errors.OpError as error:
        raise InputError(f"{path}: {error.message}") from error
    except (ValueError, TypeError, KeyError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: not a whole index of shards ({error})") from error
    return content


def _sha256(path):
    digest = hashlib.sha256()
    with tf.io.gfile.GFile(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
