import keras
import numpy as np
import pytest
import tensorflow as tf

import zoo
from zoo import losses, similarities, training
from zoo.data.captions import WordTokenizer

WORDS = ["bird", "red", "blue", "wing", "a", "small"]
BUILDERS = {
    "pcmepp": zoo.models.pcmepp,
    "infonce": zoo.models.infonce,
    "vse_infinity": zoo.models.vse_infinity,
}


def tiny(builder="pcmepp", **options):
    options = {"dim": 8, "word_dim": 6, "image_size": 16, **options}
    return BUILDERS[builder]("tiny", WordTokenizer(WORDS, max_words=6), **options)


def batch(pairs=6):
    rng = np.random.default_rng(0)
    labels = np.arange(pairs, dtype="int32")
    return {
        "images": rng.uniform(0, 255, (pairs, 16, 16, 3)).astype("float32"),
        "captions": rng.integers(1, 8, (pairs, 6)).astype("int32"),
        "image_labels": labels,
        "caption_labels": labels,
    }


def test_the_defaults_are_those_of_the_paper():
    model = zoo.models.pcmepp("tiny", vocabulary_size=10, image_size=16)
    assert model.image_encoder.output["mean"].shape == (None, 1024)
    assert isinstance(model.similarity, similarities.ClosedFormSampledDistance)
    assert float(model.similarity.scale) == float(model.similarity.shift) == 5.0
    assert [(term.name, term.weight) for term in model.auxiliaries] == [("kl", 1e-4)]
    assert model.loss.pseudo_positive_weight == 0.1
    assert model.loss.reduction == "mean"
    assert model.image_encoder.get_layer("head").drop_rate == 0.2
    assert model.uncertainty_measure == "total_variance"


def test_the_bottleneck_of_the_released_code():
    (term,) = tiny(kl_reduction="mean_per_dimension").auxiliaries
    assert (term.weight, term.reduction) == (1e-4, "mean_per_dimension")


def test_the_first_logits_are_sane():
    """With a bias of 0 they would be near −10⁴ at this dimension."""
    model = tiny(dim=1024)
    embeddings = model(batch())
    logits = np.array(model.similarity(embeddings["images"], embeddings["captions"]))
    assert -20 < logits.min() <= logits.max() < 10


def test_the_loss_is_that_of_the_paper():
    model, data = tiny(drop_rate=0.0), batch()
    model.compile("sgd")
    model.image_encoder.trainable = False  # statistics of BatchNorm as in inference
    logs = model.evaluate(tf.data.Dataset.from_tensors(data), return_dict=True, verbose=0)
    embeddings = model(data)
    logits = np.asarray(model.similarity(embeddings["images"], embeddings["captions"]))
    matches = np.eye(6, dtype="float32")

    def crossentropy(labels):
        return np.mean(np.logaddexp(0, logits) - labels * logits)

    rows = np.asarray(losses.with_pseudo_positives(matches, logits))
    columns = np.asarray(losses.with_pseudo_positives(matches, logits.T)).T
    expected = crossentropy(matches) + 0.1 * (crossentropy(rows) + crossentropy(columns))
    kl = sum(float(np.mean(losses.kl_to_standard_normal(e))) for e in embeddings.values())
    np.testing.assert_allclose(logs["loss"], expected + 1e-4 * kl, rtol=1e-5)


@pytest.mark.parametrize(
    ("builder", "options"),
    [
        ("pcmepp", {}),
        ("pcmepp", {"distance": "squared_wasserstein_2"}),
        ("pcmepp", {"distance": "match_probability", "scale": 2.0}),
        ("pcmepp", {"distance": "squared_euclidean"}),
        ("pcmepp", {"pooling": "mean", "kl_weight": 0.0, "pseudo_positive_weight": 0.0}),
        ("infonce", {}),
        ("vse_infinity", {"mining": "sum"}),
    ],
)
def test_every_row_of_the_table_learns_its_batch(builder, options):
    model, data = tiny(builder, **options), batch()
    model.compile(keras.optimizers.Adam(1e-2))
    stream = tf.data.Dataset.from_tensors(data).repeat()
    history = model.fit(stream, epochs=2, steps_per_epoch=20, verbose=0).history["loss"]
    assert np.isfinite(history).all()
    assert history[1] < history[0]


@pytest.mark.parametrize("builder", BUILDERS)
def test_saved_and_loaded_it_says_the_same(builder, tmp_path):
    model, data = tiny(builder), batch()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    expected, found = model(data), loaded(data)
    for side in ("images", "captions"):
        for name in expected[side]:
            np.testing.assert_allclose(found[side][name], expected[side][name], atol=1e-6)
    np.testing.assert_allclose(
        loaded.similarity(found["images"], found["captions"]),
        model.similarity(expected["images"], expected["captions"]),
        atol=1e-5,
    )


def test_squared_distances_are_limits_of_each_other():
    rng = np.random.default_rng(0)
    images, captions = (
        {
            "mean": rng.normal(size=(n, 5)).astype("float32"),
            "log_variance": np.full((n, 5), -30.0, "float32"),
        }
        for n in (3, 4)
    )
    logits = similarities.ClosedFormSampledDistance(2.0, 1.0)(images, captions)
    for layer in (similarities.SquaredEuclidean, similarities.SquaredWasserstein2):
        np.testing.assert_allclose(layer(2.0, 1.0)(images, captions), logits, atol=1e-4)
        again = layer.from_config(layer(2.0, 1.0).get_config())
        assert (float(again.scale), float(again.shift)) == (2.0, 1.0)


def test_backbones_learn_slower_than_heads():
    model = tiny()
    rates = training.dual_encoder_rates(model, image_rate=0.01, caption_rate=0.1)
    optimizer = training.LayerwiseAdamP(1e-3, rates=rates)
    model.compile(optimizer)
    optimizer.build(model.trainable_variables)
    by_path = dict(
        zip([v.path for v in model.trainable_variables], optimizer._rate_of, strict=True)
    )
    assert set(by_path.values()) == {0.01, 0.1, 1.0}
    assert all(rate == 1.0 for path, rate in by_path.items() if "head" in path)
    assert by_path[model.similarity.scale.path] == 1.0


def test_the_head_alone_is_the_rest_of_the_encoder():
    model, images = tiny(), batch()["images"]
    encoder = model.image_encoder
    head = zoo.encoders.head_alone(encoder)
    found, expected = head(encoder.get_layer("backbone")(images)), encoder(images)
    for name in ("mean", "log_variance"):
        np.testing.assert_allclose(found[name], expected[name], atol=1e-6)
    heads = model.with_image_encoder(head)
    rates = training.dual_encoder_rates(heads, image_rate=0.01, caption_rate=0.1)
    assert set(rates.values()) == {0.1}, "there is no image backbone left"
    pictures = encoder.input
    two = keras.Model(pictures, {"features": pictures, "variance_features": pictures})
    two.name = "backbone"
    with pytest.raises(ValueError, match="one output"):
        zoo.encoders.head_alone(keras.Sequential([two]))


def test_what_only_the_variance_depends_on():
    model, data = tiny(drop_rate=0.0), batch()
    head, before = model.image_encoder.get_layer("head"), model(data)["images"]
    assert len(head.variance_parts) == 3
    for variable in (v for part in head.variance_parts for v in part.trainable_variables):
        variable.assign(variable + 1.0)
    after = model(data)["images"]
    np.testing.assert_array_equal(after["mean"], before["mean"])
    assert np.abs(np.subtract(after["log_variance"], before["log_variance"])).min() > 0
    assert tiny("infonce").image_encoder.get_layer("head").variance_parts == []


def test_what_is_missing_is_said():
    for distance, message in (
        ("cosine", "`distance` must be one of .*'squared_wasserstein_2'.*received 'cosine'"),
        ("mean", "'mean' is now called 'euclidean'"),
        ("hamming", "must be one of .*received 'hamming'"),
    ):
        with pytest.raises(ValueError, match=message):
            zoo.models.pcmepp("tiny", vocabulary_size=10, distance=distance)
    with pytest.raises(ValueError, match="`caption_backbone`"):
        zoo.models.pcmepp("tiny")
