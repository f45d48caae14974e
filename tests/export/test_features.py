"""Models over precomputed regions are served by their features, bytes of pictures being no use."""

import json

import numpy as np
import pytest
import tensorflow as tf

import zoo
from export import export_model
from zoo.data.text.captions import WordTokenizer

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "builder",
    [
        "vsepp",
        "sgraf",
    ],
)
def test_regions_go_in_as_features(builder, tmp_path):
    words = WordTokenizer(["a", "red", "bird"], max_words=5)
    model = getattr(zoo.models, builder)((6, 7), tokenizer=words, dim=8, word_dim=6)
    folder = export_model(model, tmp_path / builder)
    facts = json.loads((folder / "export.json").read_text())
    assert "encode_features" in facts["signatures"]
    assert not {"encode_images", "encode_pixels"} & set(facts["signatures"])
    # Cross-attention has no vectors to search by.
    indexed = {"index_images", "index_captions"} & set(facts["signatures"])
    assert len(indexed) == (0 if builder == "sgraf" else 2)
    same = facts["largest_errors"].pop("match/same_best_image")
    assert same == 1.0
    assert max(facts["largest_errors"].values()) <= 1e-5
    # Padded regions change nothing, in the export either.
    regions = np.random.default_rng(0).random((3, 6, 7)).astype("float32")
    regions[:, 4:] = 0
    served = tf.saved_model.load(str(folder)).signatures["encode_features"]
    found = served(features=tf.constant(regions))
    expected = model.image_encoder(regions)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5)
