"""What a fresh process finds after `import zoo` alone."""

import importlib
import os
import subprocess
import sys

import pytest

import zoo
from zoo.data.text.bert_tokenizer import SPECIAL, BertTokenizer
from zoo.data.text.captions import WordTokenizer

CODE = """
import os, sys
known = {name.partition(".")[0] for name in sys.modules}
import zoo
print(sorted({name.partition(".")[0] for name in sys.modules} - known - sys.stdlib_module_names))
print(os.environ["TF_CPP_MIN_LOG_LEVEL"])
import keras
named = keras.saving.get_registered_object
print(*(named(f"halo>{name}") is not None for name in ("DualEncoder", "AdamP", "WordTokenizer")))
for folder in sys.argv[1:]:
    model = zoo.from_preset(folder)
    print(model.tokenize(["a bird"]).tolist(), model.encode_captions(["a bird"]).event_shape)
"""


def test_import_alone_is_enough_to_load_models_with_their_tokenizers(tmp_path):
    words = WordTokenizer(["bird"], max_words=4)
    gru = zoo.models.pcme("tiny", words, dim=4, word_dim=4, image_size=16)
    zoo.save_preset(gru, tmp_path / "words")
    pieces = BertTokenizer([*SPECIAL, "a", "bird"], max_words=5)
    backbone = zoo.encoders.bert(None, 7, 5, num_layers=1, num_heads=2, hidden_dim=8)
    bert = zoo.models.pcme_bert("tiny", pieces, backbone, dim=8, image_size=16)
    zoo.save_preset(bert, tmp_path / "pieces")
    done = subprocess.run(
        [sys.executable, "-c", CODE, str(tmp_path / "words"), str(tmp_path / "pieces")],
        env={k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"},
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "['zoo']",  # heavy libraries wait until a model needs them
        "1",  # TensorFlow's warnings and errors stay
        "True True True",  # every class is registered with Keras, which comes later
        "[[1, 2, 0, 0]] (4,)",
        "[[2, 5, 6, 3, 0]] (8,)",
    ], done.stderr[-2000:]


LATE = """
from zoo.layers import GaussianHead
import keras
named = keras.saving.get_registered_object
print(*(named(f"halo>{name}") is not None for name in ("DualEncoder", "AdamP", "WordTokenizer")))
"""


@pytest.mark.very_slow  # `import zoo` comes first above
def test_every_class_is_registered_where_keras_import_begins_in_a_room():
    done = subprocess.run(
        [sys.executable, "-c", LATE],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.stdout == "True True True\n", done.stderr[-2000:]
    assert done.stderr == ""


def test_public_modules_of_data_are_imported_in_each_way():
    for name in ("coco", "cub", "flickr30k", "regions", "toy_birds", "toy_scenes", "visual_genome"):
        module = importlib.import_module(f"zoo.data.{name}")
        assert module is getattr(zoo.data, name)
        assert callable(module.generate if name.startswith("toy") else module.load)
