"""Systems of points, PFE over them, HIB of images alone, PCME with BERT."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import point_models
import zoo
from halo_search.errors import InputError
from point_models import batch, largest_difference, tiny
from zoo import encoders, losses, similarities
from zoo.data.text.captions import WordTokenizer


@pytest.mark.parametrize(("builder", "mining"), [("vse0", "sum"), ("vsepp", "hardest")])
def test_vse_is_that_of_the_paper(builder, mining):
    model = getattr(zoo.models, builder)((2048,), vocabulary_size=10)
    assert model.name == builder
    assert model.image_encoder.output["mean"].shape == (None, 1024)
    assert model.caption_encoder.get_layer("backbone").get_layer("words").output_dim == 300
    assert isinstance(model.similarity, similarities.Cosine)
    config = model.loss.get_config()
    assert (config["margin"], config["mining"], config["reduction"]) == (0.2, mining, "sum")


def test_vsepp_maps_features_of_length_one():
    """As released: `EncoderImageFull` normalises before and after the map, `EncoderImagePrecomp`
    only after it."""
    rng = np.random.default_rng(0)
    maps = rng.normal(size=(3, 2, 2, 5)).astype("float32")
    inputs = keras.Input((2, 2, 5))
    network = keras.Model(inputs, keras.layers.Identity()(inputs), name="backbone")
    vectors = rng.normal(size=(3, 5)).astype("float32")
    for backbone, images, options, lengths in (
        (network, maps, {}, (1.0, 1.0)),
        (network, maps, {"unit_features": False}, (None, 1.0)),
        ((5,), vectors, {}, (None, 1.0)),
    ):
        model = zoo.models.vsepp(backbone, vocabulary_size=9, dim=4, word_dim=3, **options)
        dense = model.image_encoder.get_layer("embedding")
        dense.bias.assign(rng.normal(size=4))  # so that the length before the map counts
        pooled = images.reshape(3, -1, 5).mean(axis=1)
        if lengths[0]:
            pooled /= np.linalg.norm(pooled, axis=1, keepdims=True)
        expected = pooled @ dense.kernel.numpy() + dense.bias.numpy()
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        found = model.image_encoder(images)["mean"]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_vsrn_is_that_of_the_paper():
    model = zoo.models.vsrn(vocabulary_size=10, dim=16)
    assert model.image_encoder.input_shape == (None, 36, 2048)
    assert model.image_encoder.get_layer("reasoning").num_layers == 4
    assert (model.loss.margin, model.loss.mining) == (0.2, "hardest")


@pytest.mark.parametrize(
    ("builder", "regions"),  # the towers of VSE0 are those of VSE++
    [("vsepp", "tiny"), ("vsrn", point_models.REGIONS)],
)
def test_points_have_length_one_and_learn_their_batch(builder, regions, tmp_path):
    model = tiny(builder, regions)
    data = batch(model)
    for embedding in model(data).values():
        np.testing.assert_allclose(np.linalg.norm(embedding["mean"], axis=-1), 1.0, rtol=1e-5)
    model.compile(keras.optimizers.Adam(1e-2), run_eagerly=True)  # tracing takes far longer
    loss = [float(model.train_on_batch(data)) for _ in range(3)]
    assert loss[-1] < loss[0]
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert largest_difference(model(data), loaded(data)) <= 1e-6


@pytest.mark.parametrize("builder", ["vsepp", "vsrn", "gaussian_vsepp", "gaussian_vsrn"])
def test_padded_regions_and_words_change_nothing(builder):
    long = tiny(builder, (9, 7))
    short = tiny(builder, (5, 7), max_words=2)
    short.set_weights(long.get_weights())
    data = batch(short)
    padded = np.zeros((6, 9, 7), "float32")
    padded[:, :5] = data["images"]
    captions = np.pad(data["captions"], ((0, 0), (0, 1)))
    found = long({"images": padded, "captions": captions})
    assert largest_difference(found, short(data)) < 1e-5


def test_one_vector_an_image_is_a_region():
    model = zoo.models.vsepp((7,), vocabulary_size=9, dim=4, word_dim=3)
    assert model.image_encoder(np.ones((2, 7), "float32"))["mean"].shape == (2, 4)
    with pytest.raises(ValueError, match=r"image_backbone.*\(1, 2, 3\)"):
        zoo.models.vsepp((1, 2, 3), vocabulary_size=9)


DIM = 8


@pytest.mark.parametrize(("builder", "image_features"), [("infonce", True), ("vsepp", False)])
def test_points_become_means_and_stay(builder, image_features, tmp_path):
    points = tiny(builder, point_models.REGIONS)
    data = batch(points)
    before = points(data)
    model = zoo.models.pfe(points, image_features=image_features)
    for side in model(data).values():  # pairs start at a squared distance of one between means
        np.testing.assert_allclose(np.exp(side["log_variance"]).sum(axis=1), 0.5, rtol=1e-5)
    model.compile(keras.optimizers.Adam(1e-2), run_eagerly=True)
    for _ in range(2):
        model.train_on_batch(data)
    after = model(data)
    for side in ("images", "captions"):
        np.testing.assert_array_equal(after[side]["mean"], before[side]["mean"])
        assert np.ptp(after[side]["log_variance"], axis=0).max() > 0
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert len(loaded.trainable_variables) == len(model.trainable_variables) == 6
    assert largest_difference(model(data), loaded(data)) <= 1e-6


def test_an_images_variance_reads_its_features():
    points = tiny("infonce", point_models.REGIONS)
    data = batch(points)
    model = zoo.models.pfe(points, image_features=True)
    change = model.image_encoder.get_layer("variance_map")
    change.kernel.assign(np.ones(change.kernel.shape, "float32"))
    regions, _ = points.image_encoder.get_layer("head").input  # and their mask
    read = keras.Model(points.image_encoder.input, regions)
    features = np.asarray(read(data["images"])).mean(1)
    found = np.asarray(model(data)["images"]["log_variance"])
    initial = found.mean() - features.sum(1).mean() / np.sqrt(1.001)  # epsilon of the scale
    np.testing.assert_allclose(
        found, np.broadcast_to(initial + features.sum(1, keepdims=True), found.shape), rtol=1e-2
    )
    with pytest.raises(ValueError, match=r"needs an image encoder with a head.*received no head"):
        zoo.models.pfe(zoo.models.vector_points(DIM), image_features=True)


def test_an_item_with_far_matches_is_uncertain():
    """Items near the first axis are blurred tenfold; the variance has to find that out."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(2000, DIM)).astype("float32")
    vague = rng.random(2000) < 0.5
    truth[vague, 0] += 4
    blur = np.where(vague, 1.0, 0.1)[:, None]
    sides = [truth + blur * rng.normal(size=truth.shape).astype("float32") for _ in range(2)]
    model = zoo.models.pfe(zoo.models.vector_points(DIM))
    model.compile(keras.optimizers.Adam(1e-2))
    labels = np.arange(len(truth))
    data = tf.data.Dataset.from_tensor_slices(
        {
            "images": sides[0].astype("float32"),
            "captions": sides[1].astype("float32"),
            "image_labels": labels,
            "caption_labels": labels,
        }
    )
    model.fit(data.batch(100, drop_remainder=True), epochs=15, verbose=0)
    for encoder in (model.image_encoder, model.caption_encoder):
        spread = np.exp(encoder(sides[0])["log_variance"]).sum(axis=1)
        assert np.median(spread[vague]) > 1.5 * np.median(spread[~vague])


def test_the_penalty_of_the_maps_is_part_of_the_loss():
    points = zoo.models.vector_points(DIM)
    data = {name: np.eye(DIM, dtype="float32") for name in ("images", "captions")}
    data |= {name: np.arange(DIM) for name in ("image_labels", "caption_labels")}
    found = []
    for regularization in (0.0, 1.0):
        model = zoo.models.pfe(points, regularization=regularization)
        for encoder in (model.image_encoder, model.caption_encoder):
            encoder.get_layer("variance_map").kernel.assign(np.full((DIM, DIM), 0.1, "float32"))
        model.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
        found.append(model.train_on_batch(data)[0])
    np.testing.assert_allclose(found[1] - found[0], 2 * DIM**2 * 0.1**2, rtol=1e-4)


RNG = np.random.default_rng(0)
PICTURES = RNG.uniform(0, 255, (6, 16, 16, 3)).astype("float32")
CLASSES = np.array([0, 1, 2, 0, 1, 2], "int32")


def tiny_hib(**options):
    return zoo.models.hib("tiny", **{"dim": 8, "image_size": 16, **options})


def pairs():
    return {
        "images": PICTURES[:3],
        "image_labels": CLASSES[:3],
        "captions": PICTURES[1:],
        "caption_labels": CLASSES[1:],
    }


def test_the_loss_is_the_soft_contrastive_one_between_images():
    """Equations 1 to 3 of PCME on one modality, plus the bottleneck, of the samples themselves."""
    model = tiny_hib(kl_weight=0.01)
    model.image_encoder.trainable = False  # statistics of BatchNorm as in inference
    embeddings = model(pairs())
    same = np.equal.outer(CLASSES[:3], CLASSES[1:])
    assert 0 < same.sum() < same.size
    total = float(model.compute_loss(pairs(), y_pred=embeddings, training=False))
    drawn = [
        np.asarray(model.similarity.samples(embeddings[side], side, training=False)["elements"])
        for side in ("images", "captions")
    ]
    assert drawn[0].shape == (3, 7, 8)
    distances = np.linalg.norm(drawn[0][:, None, :, None] - drawn[1][None, :, None], axis=-1)
    probability = np.mean(1 / (1 + np.exp(10 * distances - 10)), axis=(2, 3))
    expected = -np.log(np.where(same, probability, 1 - probability)).sum()
    kl = sum(np.sum(losses.kl_to_standard_normal(side)) for side in embeddings.values())
    np.testing.assert_allclose(total, expected + 0.01 * kl, rtol=1e-4)


def test_both_sides_are_one_tower():
    model = tiny_hib()
    assert model.caption_encoder is model.image_encoder
    first, second = model.encode_images(PICTURES), model.encode_captions(PICTURES)
    np.testing.assert_array_equal(first.mean(), second.mean())
    encoder, similarity = model.image_encoder, model.similarity
    expected = len(encoder.trainable_variables) + len(similarity.trainable_variables)
    assert len(model.trainable_variables) == expected
    assert model.uncertainty(first).shape == (6,)


TOKENIZER = WordTokenizer(["bird", "red", "blue", "wing", "a", "small"], max_words=6)
SMALL = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8}


def tiny_bert(**options):
    return zoo.models.pcme_bert("tiny", TOKENIZER, dim=8, image_size=16, **options)


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
    backbone = encoders.bert(None, TOKENIZER.vocabulary_size(), 6, **SMALL)
    backbone.get_layer("bert").save_to_preset(str(tmp_path / "preset"))
    model = tiny_bert(caption_backbone=str(tmp_path / "preset"))
    ids = model.tokenize(["a red bird"])
    np.testing.assert_allclose(
        model.caption_encoder.get_layer("backbone")(ids)["features"],
        backbone(ids)["features"],
        atol=1e-6,
    )
    with pytest.raises(InputError, match="no such folder"):
        tiny_bert(caption_backbone=str(tmp_path / "nothing"))


def test_the_log_variance_reads_the_states_in_order():
    """UncertaintyModuleText of the released code: a bidirectional GRU over BERT's states; the mean
    is of their average and of an attention, which know no order."""
    states = np.random.default_rng(0).normal(size=(3, 6, 64)).astype("float32")
    mask = np.arange(6) < np.array([[6], [6], [4]])
    other = states.copy()
    other[:, :4] = states[:, 3::-1]
    for reads, variance_gru in ((True, True), (False, False)):
        head = tiny_bert(variance_gru=variance_gru).caption_encoder.get_layer("head")
        one, two = (head({"features": given, "mask": mask}) for given in (states, other))
        np.testing.assert_allclose(one["mean"], two["mean"], atol=1e-5)
        moved = np.abs(one["log_variance"] - two["log_variance"]).max()
        assert (moved > 1e-3) == reads
    gaussian = tiny_bert().caption_encoder.get_layer("head").get_layer("gaussian")
    assert not gaussian.project_pooled, "the GRU's state is taken as it is"
