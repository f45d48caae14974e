"""A tower of a model as an ONNX file."""

import numpy as np

from zoo.compat import sound_tf2onnx


def write_onnx(function, tower, path):
    """Writes a file.

    Args:
        function: of `zoo.models.frozen.frozen`.
        tower: the `FrozenTower` that it is of.
        path: of the file.

    Raises:
        MissingPackageError: if tf2onnx is not installed.
    """
    handlers = {"Erfc": (_complementary_error, [])}
    with sound_tf2onnx(optimised=tower.is_recurrent) as tf2onnx:
        tf2onnx.convert.from_function(
            function, [tower.spec], output_path=str(path), custom_op_handlers=handlers
        )


def _complementary_error(graph, node, name, args):
    """erfc, which Keras' GELU is made of and ONNX has not, as 1 − erf."""
    node.type = "Erf"
    one = graph.make_const(f"{name}/one", np.array(1, np.float32)).output[0]
    less = graph.insert_new_node_on_output("Sub", node.output[0], name=f"{name}/less")
    graph.replace_inputs(less, [one, node.output[0]])
