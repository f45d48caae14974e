"""The signatures of an export: raw requests in, named embeddings out."""

import functools
import types

import keras
import tensorflow as tf

from export import confidence_signatures, requests
from export.known_queries import KnownQueriesFunction
from export.search_vectors import search_vectors
from export.short_questions import PriorFunction
from export.stored_weights import StoredWeights
from zoo import embeddings
from zoo.confidence.caption_bank import packaged_bank
from zoo.errors import InputError
from zoo.models.frozen import image_inputs


class Signatures(tf.Module):
    """A `DualEncoder` as TensorFlow functions over raw requests, with its weights and tables.

    | signature | takes | gives |
    |---|---|---|
    | `encode_images` | `images`: bytes of pictures `(N,)` | the embedding, `uncertainty` |
    | `encode_pixels` | `pixels`: float32 `(N, size, size, 3)`, 0 … 255 | the same |
    | `encode_captions` | `captions`: strings `(M,)` | the same |
    | `match` | `images`, `captions` | `similarity` `(N, M)` and both sides' embeddings |
    | | | `probability` `(N, M)` of a match, of models that give it |
    | `index_images`, `index_captions` | as the encoders | also `gallery`, `query` (`offset`) |
    | `confidence_i2t`, `confidence_t2i` | scores of a search | `fits`, `number`, `verdict` … |

    A model over features of images has `encode_features` for the first two, and `features` for
    `images` elsewhere. Of a model over vectors of captions `captions` are float32 `(M, dim)`. The
    embedding is `mean`, `mean` and `log_variance`, or `elements`; points have no `uncertainty`.
    `match` names the sides `image_mean`, `caption_mean` and so on, and adds the scalar `pairs`.
    `gallery`, `query`: see `export.search_vectors`. The confidence signatures are those of the
    judges, see `export.confidence_signatures.answer`; a calibration that no probes have made has
    none. Where they read it, the encoders return `reference_score` and, of captions, `prior`.
    Where it is known what training has seen, the encoders and the index signatures of that side
    also give `known_p_value` and `unknown`, see `export.known_queries.KnownQueriesFunction`.

    Args:
        model: a `DualEncoder`.
        image_only: leave out all that takes captions.
        index: whether to have the index signatures.
        batch_size: the one size of a batch, or None for any.
        image_size: height and width, where the image encoder leaves them free.
        storage: see `StoredWeights`.
        resize, crop_fraction: as in training, see `zoo.data.images.resize`.
        max_pixels: see `requests.decoded`.
        judges: by direction, `ServedJudge`s of the gallery that is served, or None.
        known: by direction, `zoo.confidence.KnownQueries`, or None.

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
        judges=None,
        known=None,
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
        hubs = {"i2t": None, "t2i": None}
        hubs |= {direction: served.hubs for direction, served in (judges or {}).items()}

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

        judges = {
            direction: served
            for direction, served in (judges or {}).items()
            if (direction == "i2t" or not image_only)
            and confidence_signatures.readable(served.judge.confidence)
        }
        reads_words = "t2i" in judges and confidence_signatures.reads_words(judges["t2i"].judge)
        self.prior = PriorFunction(packaged_bank()) if reads_words else None
        self.reference = {
            direction: {name: tf.constant(values) for name, values in served.reference.items()}
            for direction, served in judges.items()
            if served.reference is not None and confidence_signatures.reads_reference(served.judge)
        }
        self.known = {
            direction: KnownQueriesFunction(one, None if direction == "i2t" else self.tokenizer)
            for direction, one in (known or {}).items()
            if direction == "i2t" or not image_only
        }

        def encode_query(direction, embedding, texts=None):
            known, outputs = self.known.get(direction), encode(embedding)
            if known is not None:
                outputs |= known(embedding, texts)
            if texts is not None and self.prior is not None:
                outputs["prior"] = self.prior(texts)
            if direction in self.reference:
                outputs["reference_score"] = confidence_signatures.reference_scores(
                    functools.partial(with_weights, model.similarity),
                    direction,
                    self.reference[direction],
                    embedding,
                )
            return outputs

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
            rows = name.startswith("confidence_")
            functions[name] = tf.function(
                lambda *inputs: function(*requests.declared(inputs, specs, rows)),
                input_signature=specs,
                autograph=False,
            )

        if raw is images:
            add("encode_images", lambda x: encode_query("i2t", from_images(x)), raw)
        add(f"encode_{numbers.name}", lambda x: encode_query("i2t", from_numbers(x)), numbers)

        def indexed(direction, embedding, texts=None):
            space = model.similarity.space_for(embeddings.kind(embedding))
            outputs = encode_query(direction, embedding, texts)
            other = "t2i" if direction == "i2t" else "i2t"  # in which such items are the gallery
            return {**outputs, **search_vectors(embedding, space, hubs[other], hubs[direction])}

        if searched:
            add("index_images", lambda x: indexed("i2t", from_images(x)), raw)
        for direction, served in judges.items():
            add(
                f"confidence_{direction}",
                functools.partial(confidence_signatures.answer, served.judge),
                *confidence_signatures.answer_specs(served.judge, batch_size),
            )
        if image_only:
            return

        def of_captions(t):
            return "t2i", embed_captions(t), None if model.reads_caption_vectors else t

        add("encode_captions", lambda t: encode_query(*of_captions(t)), captions)
        add("match", lambda x, t: match(from_images(x), embed_captions(t)), raw, captions)
        if searched:
            add("index_captions", lambda t: indexed(*of_captions(t)), captions)

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
