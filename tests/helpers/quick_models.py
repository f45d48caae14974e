"""Packaged models read once by a process, and towers written once."""

import copy

import keras
import tensorflow as tf

from halo_search import presets as packaged
from zoo.presets import openers

_MODELS, _TOWERS = {}, {}  # what this process has read and written


def read_once(patch):
    """Until `patch` is undone, packaged models share their layers, unless a test changed them."""
    read = openers.read_folder
    folders = set(packaged.folders().values())

    def read_folder(path, compile=False):
        if compile or path not in folders:
            return read(path, compile=compile)
        key = path, keras.config.dtype_policy().name
        if key not in _MODELS or _state(_MODELS[key][0]) != _MODELS[key][1]:
            model = read(path)
            _MODELS[key] = model, _state(model)
        return _MODELS[key][0].with_auxiliaries()

    patch.setattr(openers, "read_folder", read_folder)


def write_once(patch):
    """Until `patch` is undone, the ONNX towers of a model are what was written first for it."""
    from zoo.answering import write_towers

    write = write_towers.write_sides

    def write_sides(folder, model, asking):
        key = model.weights_sha256, repr(sorted(model.resizing.items()))
        if key not in _TOWERS:
            sides = write(folder, model, asking)
            _TOWERS[key] = sides, {path.name: path.read_bytes() for path in folder.iterdir()}
        sides, files = _TOWERS[key]
        for name, content in files.items():
            (folder / name).write_bytes(content)
        return copy.deepcopy(sides)

    patch.setattr(write_towers, "write_sides", write_sides)


def _state(model):
    return [(weight.trainable, float(tf.reduce_sum(weight.value))) for weight in model.weights]
