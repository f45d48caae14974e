import numpy as np
import pytest

import zoo
from zoo import encoders
from zoo.data.text.captions import WordTokenizer
from zoo.errors import InputError

WORDS = WordTokenizer(["bird", "red", "blue", "wing", "a", "small"], max_words=6)
SMALL = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8}


def tiny(**options):
    return zoo.models.pcme_bert("tiny", WORDS, dim=8, image_size=16, **options)


def test_the_defaults_are_those_of_the_paper():
    backbone = encoders.bert(None, 10, 6, **SMALL)
    model = zoo.models.pcme_bert("tiny", caption_backbone=backbone, image_size=16)
    assert model.name == "pcme_bert"
    assert model.image_encoder.output["mean"].shape == (None, 1024)
    similarity = model.similarity
    assert (similarity.num_samples, float(similarity.scale), float(similarity.shift)) == (5, 30, 30)
    assert {term.name: term.weight for term in model.auxiliaries} == {"kl": 1e-5}
    assert model.loss.get_config()["reduction"] == "sum"


def test_a_folder_with_weights_is_read(tmp_path):
    backbone = encoders.bert(None, WORDS.vocabulary_size(), 6, **SMALL)
    backbone.get_layer("bert").save_to_preset(str(tmp_path / "preset"))
    model = tiny(caption_backbone=str(tmp_path / "preset"))
    ids = model.tokenize(["a red bird"])
    np.testing.assert_allclose(
        model.caption_encoder.get_layer("backbone")(ids)["features"],
        backbone(ids)["features"],
        atol=1e-6,
    )
    with pytest.raises(InputError, match="no such folder"):
        tiny(caption_backbone=str(tmp_path / "nothing"))


def test_the_log_variance_reads_the_states_in_order():
    """UncertaintyModuleText of the released code: a bidirectional GRU over BERT's states; the mean
    is of their average and of an attention, which know no order."""
    states = np.random.default_rng(0).normal(size=(3, 6, 64)).astype("float32")
    mask = np.arange(6) < np.array([[6], [6], [4]])
    other = states.copy()
    other[:, :4] = states[:, 3::-1]
    for reads, variance_gru in ((True, True), (False, False)):
        head = tiny(variance_gru=variance_gru).caption_encoder.get_layer("head")
        one, two = (head({"features": given, "mask": mask}) for given in (states, other))
        np.testing.assert_allclose(one["mean"], two["mean"], atol=1e-5)
        moved = np.abs(one["log_variance"] - two["log_variance"]).max()
        assert (moved > 1e-3) == reads
    gaussian = tiny().caption_encoder.get_layer("head").get_layer("gaussian")
    assert not gaussian.project_pooled, "the GRU's state is taken as it is"
