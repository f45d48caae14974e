"""The signatures of an export: raw requests in, named embeddings out."""

import types

import keras
import tensorflow as tf

from export import requests
from export.search_vectors import search_vectors
from export.stored_weights import StoredWeights
from halo_search.errors import InputError
from zoo import embeddings
from zoo.models.frozen import image_inputs


class Signatures(tf.Module):
    """A `DualEncoder` as TensorFlow functions over raw requests, with its weights and tables.

    | signature | takes | gives |
    |---|---|---|
    | `encode_images` | `images`: bytes of pictures `(N,)` | the embedding, `uncertainty` |
    | `encode_pixels` | `pixels`: float32 `(N, size, size, 3)`, 0 … 255 | the same |
    | `encode_captions` | `captions`: strings `(M,)` | the same |
    | `match` | `images`, `captions` | `similarity` `(N, M)` and both sides' embeddings |
    | | | `probability` `(N, M)` of a match, if the model has one |
    | `index_images`, `index_captions` | as the encoders | also `gallery`, `query` (`offset`) |

    A model over features of images has `encode_features` for the first two, and `features` for
    `images` elsewhere. A model over vectors of captions takes `captions` as float32 `(M, dim)`. The
    embedding is `mean`, `mean` and `log_variance`, or `elements`; points have no `uncertainty`.
    `match` names the sides `image_mean`, `caption_mean` and so on, and adds the scalar `pairs`.
    `gallery`, `query`: see `export.search_vectors`.

    Args:
        model: a `DualEncoder`.
        image_only: leave out all that takes captions.
        index: whether to have the index signatures.
        batch_size: the one size of a batch, or None for any.
        image_size: height and width, where the image encoder leaves them free.
        storage: see `StoredWeights`.
        resize, crop_fraction: as in training, see `zoo.data.images.resize`.
        max_pixels: see `requests.decoded`.

    Raises:
        InputError: if the model has no tokenizer, or its input is not what can be served.
    """

    def __init__(
        self,
        model,
        image_only=False,
        index=True,
        batch_size=None,
        image_size=None,
        storage="float32",
        resize="crop",
        crop_fraction=1.0,
        max_pixels=requests.MAX_PIXELS,
    ):
        super().__init__(name="signatures")
        if not image_only and model.tokenizer is None and not model.reads_caption_vectors:
            raise InputError("this model has no tokenizer to serve captions with; use --image-only")
        towers = [model.image_encoder]
        if not image_only:
            towers += [model.caption_encoder, model.similarity]
        weights = list({id(w): w for tower in towers for w in tower.weights}.values())
        self.stored_weights = StoredWeights(weights, storage)
        self.tokenizer = None if image_only else model.tokenizer  # its tables are saved with us
        searched = index and model.similarity.space is not None

        def with_weights(function, *arguments):
            # Inside, every Keras variable is what is stored, and a state that a layer changes (of
            # a random generator) is changed for this call alone: calls share nothing.
            pairs = zip(weights, self.stored_weights.values(), strict=True)
            with keras.StatelessScope(state_mapping=list(pairs)):
                return function(*arguments, training=False)

        @tf.function(autograph=False)
        def embed_images(inputs):
            return _embedding(with_weights(model.image_encoder, inputs))

        @tf.function(autograph=False)
        def embed_captions(captions):
            if model.reads_caption_vectors:
                vectors = requests.features(captions, "captions")
                return _embedding(with_weights(model.caption_encoder, vectors))
            ids = tf.convert_to_tensor(model.tokenizer(requests.text(captions)))
            return _embedding(with_weights(model.caption_encoder, ids))

        def encode(embedding):
            return {**embedding, **_uncertainty(model, embedding)}

        def match(images, captions):
            similarity = with_weights(model.similarity, images, captions)
            sides = {
                f"{side}_{key}": value
                for side, embedding in (("image", images), ("caption", captions))
                for key, value in encode(embedding).items()
            }
            # Servers that merge requests split outputs by their first dimension. A matrix cannot
            # be merged so; this scalar makes them say so instead of returning a wrong part of it.
            outputs = {"similarity": similarity, **sides, "pairs": tf.size(similarity)}
            if model.gives_match_probability:
                outputs["probability"] = tf.sigmoid(similarity)
            return outputs

        numbers, side = image_inputs(model.image_encoder, batch_size, image_size)
        strings = tf.TensorSpec((batch_size,), tf.string)
        images = tf.TensorSpec(strings.shape, tf.string, name="images")
        captions = tf.TensorSpec(strings.shape, tf.string, name="captions")
        if not image_only and model.reads_caption_vectors:
            shape = (batch_size, *model.caption_encoder.input_shape[1:])
            captions = tf.TensorSpec(shape, tf.float32, name="captions")

        def from_numbers(values):
            check = requests.pixels if numbers.name == "pixels" else requests.features
            return embed_images(check(values))

        @tf.function(autograph=False)  # one function of the graph, which every signature calls
        def from_images(values):
            if numbers.name == "features":
                return from_numbers(values)
            bytes_of = requests.decoded(values, side, resize, crop_fraction, max_pixels)
            return embed_images(tf.cast(bytes_of, tf.float32))

        raw = images if numbers.name == "pixels" else numbers
        functions = {}
        # Not a dict, which would be saved with us: every function would be traced once more.
        self.functions = types.MappingProxyType(functions)

        def add(name, function, *specs):
            functions[name] = tf.function(
                lambda *inputs: function(*requests.declared(inputs, specs)),
                input_signature=specs,
                autograph=False,
            )

        if raw is images:
            add("encode_images", lambda x: encode(from_images(x)), raw)
        add(f"encode_{numbers.name}", lambda x: encode(from_numbers(x)), numbers)

        def indexed(embedding):
            space = model.similarity.space_for(embeddings.kind(embedding))
            return {**encode(embedding), **search_vectors(embedding, space)}

        if searched:
            add("index_images", lambda x: indexed(from_images(x)), raw)
        if image_only:
            return

        add("encode_captions", lambda t: encode(embed_captions(t)), captions)
        add("match", lambda x, t: match(from_images(x), embed_captions(t)), raw, captions)
        if searched:
            add("index_captions", lambda t: indexed(embed_captions(t)), captions)

    def concrete(self):
        """`{name: concrete function}`, and `serving_default`, which is the first of them."""
        signatures = {name: f.get_concrete_function() for name, f in self.functions.items()}
        return {"serving_default": next(iter(signatures.values())), **signatures}


def _embedding(embedding):
    embedding = {
        key: value if value.dtype == tf.bool else tf.cast(value, tf.float32)
        for key, value in embedding.items()
        if value is not None
    }
    return requests.finite(embedding)


def _uncertainty(model, embedding):
    if not embeddings.has_uncertainty(embedding):
        return {}
    return {"uncertainty": model.uncertainty(embedding)}
