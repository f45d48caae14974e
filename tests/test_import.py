"""What a fresh process finds after `import zoo` alone."""

import json
import os
from pathlib import Path

import pytest

import zoo
from processes import python
from zoo.data.text.bert_tokenizer import SPECIAL, BertTokenizer
from zoo.data.text.captions import WordTokenizer

# What an extra does not bring, and what has to be importable with it alone.
KERAS = ("zoo", "keras", "keras_hub", "tensorflow", "tf2onnx", "matplotlib")
EXTRAS = {
    "": ((*KERAS, "gradio", "fastapi", "lancedb"), ("halo_search.cli.search",)),
    "serve": ((*KERAS, "gradio", "lancedb"), ("halo_search.server.application",)),
    "models": (("gradio", "fastapi", "lancedb"), ("zoo", "zoo.answering", "export.command")),
}
# All but the last extra are tried in forks: Keras is imported once.
CODE = """
import importlib, json, os, sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
failed, extras = [], json.loads(sys.argv[1])
last = list(extras)[-1]
for extra, (absent, modules) in extras.items():
    if extra == last:
        continue
    if os.fork():
        if os.wait()[1]:
            failed.append(extra)
        continue
    for name in modules:
        importlib.import_module(name)
    os._exit(0)
print(failed, flush=True)  # before the next fork
absent, modules = extras[last]
before = sys.meta_path[:]
import halo_search
print(sys.meta_path == before, "keras" in sys.modules)
if os.fork() == 0:
    import halo_search.cli.main
    halo_search.cli.main.main(["report", "nowhere"])
print("ended with", os.waitstatus_to_exitcode(os.wait()[1]))
for name in modules:
    importlib.import_module(name)
import zoo, keras
print(os.environ["TF_CPP_MIN_LOG_LEVEL"])
named = keras.saving.get_registered_object
print(*(named(f"halo>{name}") is not None for name in ("DualEncoder", "AdamP", "WordTokenizer")))
for folder in sys.argv[2:]:
    model = zoo.from_preset(folder)
    print(model.tokenize(["a bird"]).tolist(), model.encode_captions(["a bird"]).event_shape)
"""


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    """The end of a process that lacked extras and has loaded two presets."""
    folder = tmp_path_factory.mktemp("presets")
    words = WordTokenizer(["bird"], max_words=4)
    gru = zoo.models.pcme("tiny", words, dim=4, word_dim=4, image_size=16)
    zoo.save_preset(gru, folder / "words")
    pieces = BertTokenizer([*SPECIAL, "a", "bird"], max_words=5)
    backbone = zoo.encoders.bert(None, 7, 5, num_layers=1, num_heads=2, hidden_dim=8)
    bert = zoo.models.pcme_bert("tiny", pieces, backbone, dim=8, image_size=16)
    zoo.save_preset(bert, folder / "pieces")
    return run(CODE, json.dumps(EXTRAS), str(folder / "words"), str(folder / "pieces"))


@pytest.mark.slow
def test_an_extra_brings_what_its_commands_import(fresh):
    for package in ("gradio", "fastapi", "uvicorn"):
        pytest.importorskip(package)
    assert fresh.stdout.splitlines()[:1] == ["[]"], fresh.stderr[-2000:]


def test_import_alone_is_enough_to_load_models_with_their_tokenizers(fresh):
    done = fresh
    assert done.stdout.splitlines()[1:] == [
        "True False",  # nothing is left in `sys.meta_path`
        "ended with 2",  # a wrong run folder is one line, without Keras
        "3",  # TensorFlow's notices are silent
        "True True True",  # every class is registered with Keras
        "[[1, 2, 0, 0]] (4,)",
        "[[2, 5, 6, 3, 0]] (8,)",
    ], done.stderr[-2000:]
    assert done.stderr.splitlines() == ["error: no such run folder: nowhere"]


def run(program, *arguments, **more):
    hidden = ("TF_CPP_MIN_LOG_LEVEL", "OPENBLAS_THREAD_TIMEOUT")
    environment = {key: value for key, value in os.environ.items() if key not in hidden}
    return python("-c", program, *arguments, cwd=Path(__file__).parents[1], env=environment, **more)


def test_threads_of_numpy_are_set_before_it_is_imported():
    code = "import os, sys, halo_search; print(os.environ[sys.argv[1]])"
    assert run(code, "OPENBLAS_THREAD_TIMEOUT").stdout == "4\n"


def test_a_backend_that_is_not_installed_is_one_line():
    code = "import halo_search.cli.main; halo_search.cli.main.main(['train', 'pcme_cub'])"
    (line,) = run(code, code=2, KERAS_BACKEND="foo").stderr.splitlines()
    assert line.startswith("error: KERAS_BACKEND")
    assert "foo" in line
