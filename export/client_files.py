"""What lies beside the towers of an engine: the tokenizer's file, and a client to begin with."""

import numpy as np
import tensorflow as tf

from zoo.data.text.bert_tokenizer import END, START, UNKNOWN, BertTokenizer
from zoo.data.text.captions import WordTokenizer
from zoo.errors import require
from zoo.files.atomic import write_text

TOKENIZER = "tokenizer.json"
_SAMPLES = (
    "a red bird",
    "",
    "Two DOGS, and a cat's toy on the white-sanded beach; un café à Paris ’tis 42!",
    "zzzqx " * 120,
)
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
    run = Interpreter(model_path=f"{side}.tflite").get_signature_runner()
    return lambda inputs: run(**{side: inputs})
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


def tokenizer_of(tokenizer):
    """A `tokenizers.Tokenizer` with the ids of one of ours, or None where there is none.

    It is compared on awkward captions: what gives other ids is not written.
    """
    if not isinstance(tokenizer, (WordTokenizer, BertTokenizer)):
        return None
    made = (_of_words if isinstance(tokenizer, WordTokenizer) else _of_pieces)(tokenizer)
    made.enable_padding(length=tokenizer.max_words, pad_id=0, pad_token="")
    made.enable_truncation(tokenizer.max_words)
    found = np.array([one.ids for one in made.encode_batch(list(_SAMPLES))])
    same = np.array_equal(found, np.asarray(tokenizer(tf.constant(_SAMPLES))))
    return made if same else None


def _of_words(tokenizer):
    tokenizers = require("tokenizers", extra="text")
    words = {str(word): row for row, word in enumerate(tokenizer.get_vocabulary())}
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    normalizers = tokenizers.normalizers
    made.normalizer = normalizers.Sequence(
        [
            normalizers.Lowercase(),
            normalizers.Replace(tokenizers.Regex("['’]"), ""),
            normalizers.Replace(tokenizers.Regex(r"[^\p{L}\p{M}\p{N}]+"), " "),
        ]
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    return made


def _of_pieces(tokenizer):
    tokenizers = require("tokenizers", extra="text")
    pieces = {piece: row for row, piece in enumerate(tokenizer.vocabulary)}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(pieces, unk_token=UNKNOWN))
    made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True, strip_accents=True)
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{START} $0 {END}",
        special_tokens=[(token, pieces[token]) for token in (START, END)],
    )
    return made
