"""A tower of a model as an ONNX file."""

import numpy as np

from zoo.compat import sound_tf2onnx
from zoo.errors import require

_LARGE = 65536  # bytes of a weight


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


def move_weights_out(path):
    """Moves the large weights of a file into `NAME.data` beside it, which an engine maps to memory.

    The captions of `photos_pfe` are then opened in 60 MB less.

    Args:
        path: a `pathlib.Path`; both files have to stay in one folder.
    """
    onnx = require("onnx", extra="search")
    model, data = onnx.load(path), path.with_suffix(".data")
    path.unlink()
    onnx.save_model(
        model, path, save_as_external_data=True, location=data.name, size_threshold=_LARGE
    )
    for written in (path, *([data] if data.exists() else ())):
        written.chmod(0o644)


def _complementary_error(graph, node, name, args):
    """erfc, which Keras' GELU is made of and ONNX has not, as 1 − erf."""
    node.type = "Erf"
    one = graph.make_const(f"{name}/one", np.array(1, np.float32)).output[0]
    less = graph.insert_new_node_on_output("Sub", node.output[0], name=f"{name}/less")
    graph.replace_inputs(less, [one, node.output[0]])
