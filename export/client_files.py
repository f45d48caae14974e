"""What lies beside the towers of an engine: the tokenizer's file, and a client to begin with."""

from zoo.data.text.twin import tokenizer_of
from zoo.files.atomic import write_text

TOKENIZER = "tokenizer.json"
_OPEN = {
    "onnx": """\
import onnxruntime


def tower(side):
    session = onnxruntime.InferenceSession(f"{side}.onnx")
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, {side: inputs})))
""",
    "litert": """\
from ai_edge_litert.interpreter import Interpreter


def tower(side):
    interpreter = Interpreter(model_path=f"{side}.tflite")
    run, rows = interpreter.get_signature_runner(), interpreter.get_input_details()[0]
    rows = int(rows["shape_signature"][0])

    def asked(inputs):
        if rows not in (-1, len(inputs)):
            said = f"{side}.tflite takes {rows} at once; received {len(inputs)}"
            raise ValueError(f"{said}; `halo export --batch-size N` makes another")
        return run(**{side: inputs})

    return asked
""",
    "openvino": """\
import openvino


def tower(side):
    network = openvino.Core().compile_model(f"{side}.xml", "CPU")
    return lambda inputs: {o.get_any_name(): found for o, found in network(inputs).items()}
""",
}
_IDS = """\
from tokenizers import Tokenizer

ids = Tokenizer.from_file("tokenizer.json").encode_batch(["a small bird"])
embedding = tower("captions")(np.array([one.ids for one in ids], "int32"))
"""


def write_client(folder, model, format, towers):
    """Writes `client.py`, and `tokenizer.json` where the package gives the model's own ids.

    Args:
        folder: where to.
        model: a `DualEncoder`.
        format: of the towers.
        towers: of `export.json`.

    Returns:
        The name of the tokenizer's file, or None.
    """
    written = None
    if "captions" in towers and (made := tokenizer_of(model.tokenizer)) is not None:
        made.save(str(folder / TOKENIZER))
        written = TOKENIZER
    shape = [size or 1 for size in towers["images"]["input"]]
    said = "pixels, 0 ... 255" if len(shape) == 4 else "features"
    lines = [
        f'"""Asks the towers of this folder: {said} and token ids in, embeddings out."""\n',
        "import numpy as np",
        _OPEN[format],
        f'pictures = np.zeros({tuple(shape)}, "float32")  # {said}',
        'print({name: part.shape for name, part in tower("images")(pictures).items()})',
    ]
    if written is not None:
        lines += [_IDS + "print({name: part.shape for name, part in embedding.items()})"]
    write_text(folder / "client.py", "\n".join(lines) + "\n")
    return written
