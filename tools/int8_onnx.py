"""Weights of an ONNX file in int8 with their scales, which become float32 when it is loaded.

All is computed in float32, so the numbers are those of the weights that are kept: where these came
out of int8, as of the presets of photos, none is lost again. The file is a quarter as large.
"""

import itertools
import math

import numpy as np

from zoo.errors import require
from zoo.models.small_weights import LEAST, to_int8

FLOAT = 1  # of ONNX


def shrink(path, kernels):
    """Rewrites an ONNX file.

    Of a table of word vectors only the rows that are asked for are widened at each question; all
    other weights once, by whatever folds constants when the file is loaded.

    Args:
        path: of the file.
        kernels: the Keras model's weights as arrays. Scales go by their axes: a converter may
            have turned the heads of an attention, or laid them flat.
    """
    onnx = require("onnx", extra="engines")
    model = onnx.load(str(path))
    graph, new = model.graph, onnx.numpy_helper.from_array
    taken_by = {}
    for node in graph.node:
        for name in node.input:
            taken_by.setdefault(name, []).append(node)
    first = []
    for weight in list(graph.initializer):
        if math.prod(weight.dims) < LEAST or weight.data_type != FLOAT:
            continue
        name, values = weight.name, onnx.numpy_helper.to_array(weight)
        levels, steps = _levels(values, kernels)
        graph.initializer.remove(weight)
        graph.initializer.append(new(levels, f"{name}/levels"))
        graph.initializer.append(new(steps.astype(np.float32), f"{name}/steps"))
        if [node.op_type for node in taken_by[name]] == ["Gather"] and len(steps) > 1:
            _gather(onnx.helper.make_node, graph, taken_by[name][0], name)
            continue
        graph.initializer.append(new(np.array(values.shape, np.int64), f"{name}/shape"))
        first += _widened(onnx.helper.make_node, name)
    for node in reversed(first):
        graph.node.insert(0, node)
    onnx.checker.check_model(model)
    onnx.save(model, str(path))


def _levels(values, kernels):
    """`to_int8` by the axes that a weight has in Keras, laid out as it is here."""
    for kernel in kernels:
        if kernel.size != values.size:
            continue
        for axes in itertools.permutations(range(kernel.ndim)):
            if np.array_equal(kernel.transpose(axes).ravel(), values.ravel()):
                return (part.transpose(axes) for part in to_int8(kernel))
    return to_int8(values.reshape(-1, values.shape[-1]))


def _widened(node, name):
    """The nodes that make float32 of a weight's levels."""
    wide, scaled = f"{name}/wide", f"{name}/scaled"
    return [
        node("Cast", [f"{name}/levels"], [wide], to=FLOAT),
        node("Mul", [wide, f"{name}/steps"], [scaled]),
        node("Reshape", [scaled, f"{name}/shape"], [name]),
    ]


def _gather(node, graph, old, name):
    """Rows of levels, widened, times the rows' steps, in place of rows of a table."""
    place, ids = list(graph.node).index(old), old.input[1]
    rows, wide, steps = (f"{name}/{what}" for what in ("rows", "wide", "row_steps"))
    made = [
        node("Gather", [f"{name}/levels", ids], [rows]),
        node("Cast", [rows], [wide], to=FLOAT),
        node("Gather", [f"{name}/steps", ids], [steps]),
        node("Mul", [wide, steps], [old.output[0]]),
    ]
    graph.node.remove(old)
    for one in reversed(made):
        graph.node.insert(place, one)
