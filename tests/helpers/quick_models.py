"""Packaged models read once, and towers written once."""

import copy

import keras
import tensorflow as tf

from halo_search import presets as packaged
from zoo.presets import openers


def read_once(patch):
    """Until `patch` is undone, packaged models share their layers, unless a test changed them."""
    read, kept = openers.read_folder, {}
    folders = set(packaged.folders().values())

    def read_folder(path, compile=False):
        if compile or path not in folders:
            return read(path, compile=compile)
        key = path, keras.config.dtype_policy().name
        if key not in kept or _state(kept[key][0]) != kept[key][1]:
            model = read(path)
            kept[key] = model, _state(model)
        return kept[key][0].with_auxiliaries()

    patch.setattr(openers, "read_folder", read_folder)


def write_once(patch):
    """Until `patch` is undone, the ONNX towers of a model are what was written first for it."""
    from zoo.answering import write_towers

    write, kept = write_towers.write_sides, {}

    def write_sides(folder, model, asking):
        key = model.weights_sha256, repr(sorted(model.resizing.items()))
        if key not in kept:
            sides = write(folder, model, asking)
            kept[key] = sides, {path.name: path.read_bytes() for path in folder.iterdir()}
        sides, files = kept[key]
        for name, content in files.items():
            (folder / name).write_bytes(content)
        return copy.deepcopy(sides)

    patch.setattr(write_towers, "write_sides", write_sides)


def _state(model):
    return [(one.trainable, float(tf.reduce_sum(one.value))) for one in model.weights]
