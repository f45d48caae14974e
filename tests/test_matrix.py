"""Every builder with each of its options: saved and loaded, searched, reported, asked, exported."""

import inspect
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf

import tiny_models
from export.signatures import Signatures
from halo_search.errors import InputError
from halo_search.index import Index
from relative import difference
from zoo import data, embeddings, models, similarities
from zoo.data import captions, toy_birds
from zoo.embeddings import GAUSSIAN, TOKENS

pytestmark = pytest.mark.usefixtures("unoptimized_graphs")


def _choices(name, values):
    return [{name: value} for value in values]


ON_GAUSSIANS = similarities.names(lambda cls: GAUSSIAN in cls.embeddings)
# `{}` is a builder's defaults. Sizes, weights and rates change no kind and no similarity.
VARIANTS = {
    "dive": _choices("similarity", models.SET_SIMILARITIES),
    "gaussian_vsepp": [
        {},
        *_choices("covariance", ("spherical_mean", "spherical_one")),
        *_choices("similarity", ON_GAUSSIANS),
    ],
    "gaussian_vsrn": [{}],
    "infonce": [{}],
    "pcme": [{}, {"method": "moment_matched"}, {"covariance": None}],
    "pcme_bert": [{}],
    "pcmepp": [
        *_choices("distance", similarities.names(lambda cls: cls.is_log_odds)),
        {"pooling": "mean"},
    ],
    "pvse": [{}],
    "sgraf": _choices("module", ("both", "saf", "sgr")),
    "vse0": [{}],
    "vse_infinity": [{}],
    "vsepp": [{}],
    "vsrn": [{}],
}


# A point, a Gaussian, samples of one, a set and a token sequence.
QUICK = ("infonce", "gaussian_vsepp", "pcme", "dive", "sgraf")


def _param(name, options):
    """Of one builder a kind `make test` asks the first variant."""
    is_quick = name in QUICK and options is VARIANTS[name][0]
    return pytest.param(
        (name, options),
        marks=[] if is_quick else pytest.mark.very_slow,
        id="-".join([name, *map(str, itertools.chain(*options.items()))]),
    )


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """Sixteen drawn birds, ten captions each."""
    root = tmp_path_factory.mktemp("matrix") / "birds"
    toy_birds.generate(root, num_classes=16, images_per_class=4, image_size=48)
    return data.open({"loader": "cub", "root": str(root), "image_size": tiny_models.SIZE})


class System:
    """One builder with one of its options, and what it makes of the split.

    Attributes:
        is_new: whether no earlier one has this builder and kind, so that the model is saved whole.
    """

    def __init__(self, builder, options, split, towers):
        self.texts = list(split.records.captions)
        if builder == "gaussian_vsepp" and "similarity" in options:  # any layer for Gaussians
            own = towers.get(builder) or System(builder, {}, split, towers)
            similarity = similarities.get(options["similarity"])
            self.pixels, self.images, self.captions = own.pixels, own.images, own.captions
            self.model = models.DualEncoder(
                own.model.image_encoder,
                own.model.caption_encoder,
                similarity,
                loss=own.model.loss,
                tokenizer=own.model.tokenizer,
                uncertainty_measure=own.model.uncertainty_measure,
            )
        else:
            tokenizer = captions.word_tokenizer(self.texts, max_words=5)
            self.model = tiny_models.tiny(builder, tokenizer, **options)
            for weight in self.model.weights:  # as if trained: none has its initial value
                if "float" in weight.dtype:
                    weight.assign(
                        weight + 0.01 * np.cos(np.arange(weight.numpy().size)).reshape(weight.shape)
                    )
            pixels = next(iter(split.source.in_order(split.records.num_images)))
            self.pixels = tf.cast(pixels, "float32")
            self.images = self.model.image_encoder(self.pixels, training=False)
            self.captions = self.model.caption_encoder(tokenizer(self.texts), training=False)
            towers.setdefault(builder, self)
        self.kind = embeddings.kind(self.model.image_encoder.output)
        self.is_new = towers.setdefault((builder, self.kind), self) is self
        self.similarity = self.model.similarity
        self.logits = np.asarray(self.similarity(self.images, self.captions))


@pytest.fixture(scope="module")
def towers():
    return {}


SYSTEMS = [_param(name, options) for name, variants in VARIANTS.items() for options in variants]


@pytest.fixture(scope="module", params=SYSTEMS)
def system(request, split, towers):
    return System(*request.param, split, towers)


def test_every_builder_and_option_is_here():
    assert set(VARIANTS) == set(tiny_models.BUILDERS)
    others = {"hib", "gaussian", "with_captioning"}
    # Of stored vectors: tests/recipes/test_own_vectors.py. `pfe` is over any points there are.
    others |= {"pfe", "vector_points"}
    functions = {name for name in models.__all__ if inspect.isfunction(getattr(models, name))}
    assert functions == others | set(VARIANTS)
    for name, variants in VARIANTS.items():
        known = inspect.signature(getattr(models, name)).parameters
        takes_all = any(one.kind is one.VAR_KEYWORD for one in known.values())
        assert takes_all or all(options.keys() <= known.keys() for options in variants)


def test_saved_and_loaded_it_says_the_same(system, tmp_path):
    if not system.is_new:  # to save time
        layer = system.similarity
        loaded = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
        loaded.set_weights(layer.get_weights())
        values = loaded(system.images, system.captions)
        np.testing.assert_allclose(values, system.logits, atol=1e-4)
        return
    system.model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for found, expected in zip(loaded.weights, system.model.weights, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert loaded.gives_match_probability == system.model.gives_match_probability
    assert loaded.similarity.identifier == system.similarity.identifier
    images = loaded.image_encoder(system.pixels, training=False)
    texts = loaded.caption_encoder(loaded.tokenizer(system.texts), training=False)
    for found, expected in ((images, system.images), (texts, system.captions)):
        for name, values in expected.items():
            np.testing.assert_allclose(found[name], values, atol=1e-6)
    np.testing.assert_allclose(loaded.similarity(images, texts), system.logits, atol=1e-4)


def test_an_index_ranks_as_the_similarity(system):
    if system.kind == TOKENS:
        with pytest.raises(ValueError, match="must have vectors to search by; received a token"):
            Index.build(system.images, system.similarity)
        return
    count = len(system.logits)
    candidates = None if system.similarity.from_space else 8 * count
    index = Index.build(system.images, system.similarity, candidates=candidates)
    scores, ids = index.search(system.captions, count)
    found = np.take_along_axis(system.logits.T, ids, axis=1)
    np.testing.assert_allclose(scores, found, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(scores, -np.sort(-system.logits.T), rtol=1e-4, atol=1e-4)


def test_images_alone_are_saved_and_searched_but_not_asked_in_words(split, tmp_path):
    model = models.hib("tiny", dim=8, image_size=tiny_models.SIZE)
    pixels = tf.cast(next(iter(split.source.in_order(split.records.num_images))), "float32")
    images = model.image_encoder(pixels, training=False)
    model.save(tmp_path / "hib.keras")
    loaded = keras.saving.load_model(tmp_path / "hib.keras")
    assert loaded.caption_encoder is loaded.image_encoder
    logits = np.asarray(model.similarity(images, images))
    assert difference(loaded.similarity(images, images), logits) <= 1e-5
    index = Index.build(images, model.similarity, candidates=len(logits))
    scores, _ = index.search(images, 3)
    np.testing.assert_allclose(scores, -np.sort(-logits.T)[:, :3], rtol=1e-4, atol=1e-4)
    assert "index_images" in Signatures(model, image_only=True).functions
    with pytest.raises(InputError, match="no tokenizer to serve captions with; use --image-only"):
        Signatures(model)
    with pytest.raises(InputError, match="no tokenizer, so it cannot be asked in words"):
        model.tower("captions").of_texts(["a bird"])
