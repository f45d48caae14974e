"""Graphs whose weights are int8 in a preset: they are multiplied by their steps in the graph."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from halo_search.towers.weights import LEVELS, STEPS
from zoo.answering.write_towers import _products

LEVEL = np.array([[3, -5, 7], [100, 2, -9], [1, 0, 4], [-8, 6, 127]], np.int8)
OF_ROWS = np.array([[0.5], [2], [1], [0.25]], np.float32)
OF_COLUMNS = np.array([1, 0.5, 4], np.float32)
ROWS = np.array([2, 0, 3])
MIXING = np.array([[1, 2, 3, 4]], np.float32)


@pytest.mark.parametrize(
    ("users", "steps", "expected"),
    [
        ([("Gather", ["table", "rows"])], OF_ROWS, (LEVEL * OF_ROWS)[ROWS]),
        ([("MatMul", ["mixing", "table"])], OF_ROWS, MIXING @ (LEVEL * OF_ROWS)),
        ([("MatMul", ["mixing", "table"])], OF_COLUMNS, MIXING @ (LEVEL * OF_COLUMNS)),
    ],
)
def test_the_graph_reads_the_product(users, steps, expected):
    arrays = {f"table{LEVELS}": LEVEL, f"table{STEPS}": steps, "rows": ROWS, "mixing": MIXING}
    graph = helper.make_graph(
        [helper.make_node(kind, inputs, ["out"]) for kind, inputs in users],
        "tower",
        [],
        [helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, expected.shape)],
        [numpy_helper.from_array(values, name) for name, values in arrays.items()],
    )
    nodes = [*_products(onnx, graph, "table", LEVEL.shape), *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model)
    (found,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {})
    np.testing.assert_allclose(found, expected)
