"""Hosted models answer without TensorFlow what they answer by Keras, each family."""

import numpy as np
import pytest
from PIL import Image

import memory
import released
import zoo
from halo_search.cli.search import main
from halo_search.index import Index, built
from halo_search.retriever import Retriever
from halo_search.towers.onnx import OnnxTower
from halo_search.towers.onnx_model import TOKENIZER
from halo_search.towers.piece_tokenizer import read_tokenizer
from tiny_hub import siglip_pieces, tiny_hub
from zoo.answering import KerasModel
from zoo.answering.write_towers import write_towers

pytest.importorskip("keras_hub")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_general_photos")]
FAMILIES = ("clip", "siglip", "siglip2", "metaclip2", "prolip", "pcmepp")
QUESTIONS = ["two dogs", "", "a photo of the RED bird's hat, in 2019!", "über alles " * 40]
MOST_SECONDS, MOST_MEGABYTES = 1.5, 350
# As where neither is installed.
ASK = """
import sys, time
for name in ("tensorflow", "keras", "tensorflow_text", "keras_hub"):
    sys.modules[name] = None
import halo_search.cli.main
try:
    halo_search.cli.main.main(["search", "query", sys.argv[1], "two dogs"])
except SystemExit:
    pass
print(time.process_time())
"""


def write(family, folder):
    if family not in ("prolip", "pcmepp"):
        for part in tiny_hub(family):
            part.save_to_preset(folder)
        return folder
    about, shapes, _ = released.described(f"{family}_tiny")
    if family == "pcmepp":
        shapes["token_embedding.weight"][0] = about["text"]["vocab_size"] = 515
        about["config"] = {f"{side}_cfg": about[side] for side in ("vision", "text")}
        about["config"]["embed_dim"] = about["embed_dim"]
    released.write(folder, released.weights(shapes), about["config"])
    if family == "pcmepp":
        (folder / "merges.txt").write_text("header\nd o\n")
    else:
        (folder / "spiece.model").write_bytes(siglip_pieces(["a red bird and two dogs"] * 3))
    return folder


@pytest.mark.parametrize(
    "family",
    [
        pytest.param(name, marks=[] if name == "siglip" else pytest.mark.very_slow)
        for name in FAMILIES
    ],
)
def test_a_question_is_answered_as_by_keras_for_a_fraction(family, tmp_path):
    model, photos = str(write(family, tmp_path / "model")), tmp_path / "photos"
    photos.mkdir()
    for row in range(4):
        pixels = np.random.default_rng(row).integers(0, 255, (20, 24, 3), "uint8")
        Image.fromarray(pixels).save(photos / f"{row}.png")
    main(["build", str(photos), str(tmp_path / "index"), "--model", model])
    plain, keras = Retriever.load(tmp_path / "index"), Retriever.load(tmp_path / "index", model)
    assert isinstance(plain.tower("captions"), OnnxTower)
    for questions in (QUESTIONS, [photos / "2.png"]):
        for found, expected in zip(plain.ask(questions), keras.ask(questions), strict=True):
            assert found.ids.tolist() == expected.ids.tolist()
            np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-4, atol=1e-4)
            assert (found.verdict, found.reason) == (expected.verdict, expected.reason)
    printed, gigabytes = memory.run(ASK, str(tmp_path / "index"))
    assert float(printed.split()[-1]) <= MOST_SECONDS
    assert gigabytes * 1024 <= MOST_MEGABYTES


@pytest.mark.very_slow  # writes the towers of a model three times
def test_the_same_weights_with_another_tokenizer_get_towers_of_their_own(tmp_path):
    backbone, preprocessor = tiny_hub("clip")
    hub, found = preprocessor.tokenizer, []
    for merges in (hub.merges, hub.merges[:3], hub.merges):
        preprocessor.tokenizer = type(hub)(hub.vocabulary, merges, pad_with_end_token=True)
        model = zoo.from_preset(backbone, preprocessor=preprocessor)
        index = Index.build(np.eye(8, dtype="float32"), model.similarity)
        with built.locked(tmp_path) as written:
            name, _ = write_towers(written, KerasModel(model, None, {}), index)
        ids = read_tokenizer((tmp_path / name / TOKENIZER).read_bytes()).encode_batch(["the dog"])
        assert ids[0].ids == np.asarray(model.tokenizer(["the dog"]))[0, : len(ids[0].ids)].tolist()
        found.append((name, ids[0].ids))
    assert found[0] == found[2]
    assert found[0][0] != found[1][0]
