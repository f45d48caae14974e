"""The dual encoder: two towers, a similarity, a loss. The only `keras.Model` subclass here."""

import functools
import os
from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from zoo import embeddings, losses
from zoo.embeddings import Embedding, EmbeddingLike, Tensor
from zoo.layers.compat import compiled_metrics
from zoo.losses.base import reduced, single_loss
from zoo.models import global_batch, stored
from zoo.models import inputs as checked
from zoo.models.stored import flat_model
from zoo.models.tower import Tower

_COMPARED = "compared"  # (matches, logits), for the metrics


@keras.saving.register_keras_serializable(package="halo")
class DualEncoder(keras.Model):
    """An image encoder and a caption encoder, trained together and used apart.

    Every system of the zoo is one of these: the encoders say what an embedding is (a point, a
    Gaussian, a set), the similarity compares two batches of them, the loss reads the matrix of
    similarities. `fit`, `predict`, callbacks, `.keras` files and mixed precision are Keras' own.

    ```python
    model = zoo.models.pcme("mobilenet_v2", tokenizer)
    model.compile(optimizer=zoo.training.AdamP(1e-4))  # the paper's loss is the default
    model.fit(batches)
    images = model.encode_images(photos)  # a MultivariateNormalDiag
    captions = model.encode_captions(["a small bird with a red crown"])
    model.similarity(images, captions)  # (len(photos), 1)
    ```

    Args:
        image_encoder: a Keras model or layer from images `(batch, height, width, 3)`, 0…255, to
            an embedding (a dict, see `zoo.embeddings`).
        caption_encoder: a Keras model or layer from token ids `(batch, length)`, or from stored
            vectors `(batch, dim)`, to an embedding of the same kind. It may be the image encoder
            itself, for one modality on both sides.
        similarity: a layer of `zoo.similarities`. May be replaced after training, to rank by
            another similarity than the trained one.
        loss: a `keras.losses.Loss` over `(matches, logits)`, both `(images, captions)`.
            `compile(loss=…)` replaces it for the training. It is this one that is saved with the
            model; that of `compile` is saved with the optimizer.
        auxiliaries: terms `(image_embedding, caption_embedding) -> scalar` with a `name` and a
            `weight`. The weighted sum joins the loss; each is logged unweighted under its name.
        tokenizer: a layer from strings to token ids. Without one, captions must be what the
            caption encoder takes.
        uncertainty_measure: the default of `uncertainty`, see `zoo.embeddings.uncertainty`.
        trained_as_log_odds: whether the similarity was trained by `MatchingCrossentropy`; None: as
            the loss is. A file has it where `compile` replaced the loss.

    Attributes:
        origin: the name or path by which `zoo.from_preset` found the model, else None.
        origin_weights: the `zoo.presets.openers.weights_mark` of then.
    Output: called with `"images"`, `"captions"` (token ids or vectors) or both, a dict with the
        embeddings under the same keys.

    A training batch is a dict with `"images"` (N of them), `"captions"` (M of them),
    `"image_labels"` `(N,)` and `"caption_labels"` `(M,)`: an image and a caption match where their
    labels are equal, so several captions of an image are never each other's negatives. A batch
    may bring `"matches"` `(N, M)` in [0, 1] instead, and `"semantic"` `(N, M)` for the terms that
    rank by it. Nothing else is read: `y`, `sample_weight` and `loss_weights` are refused.
    """

    def __init__(
        self,
        image_encoder: keras.layers.Layer,
        caption_encoder: keras.layers.Layer,
        similarity: keras.layers.Layer,
        loss: keras.losses.Loss | None = None,
        auxiliaries: Sequence[keras.layers.Layer] = (),
        tokenizer: keras.layers.Layer | None = None,
        uncertainty_measure: str | None = None,
        trained_as_log_odds: bool | None = None,
        **kwargs: Any,
    ):
        super().__init__(**kwargs)
        self.image_encoder = image_encoder
        self.caption_encoder = caption_encoder
        self.similarity = similarity
        self.loss = self._own_loss = loss
        self.trained_as_log_odds = trained_as_log_odds
        self.origin = self.origin_weights = None
        self.auxiliaries = list(auxiliaries)
        self.tokenizer = tokenizer
        self.uncertainty_measure = uncertainty_measure
        self.trackers = {term.name: keras.metrics.Mean(term.name) for term in self.auxiliaries}
        # The encoders arrive built. Nothing is left for Keras to build from a first batch.
        self.built = True

    def compile(
        self, optimizer="rmsprop", loss=None, loss_weights=None, metrics=None, **kwargs: Any
    ) -> None:
        """Keras' `compile`, for one loss over `(matches, logits)`, both `(images, captions)`: a
        `keras.losses.Loss`, a function or a name, reduced as Keras does, in place of the model's
        own. Metrics are functions of the same two.

        Raises:
            ValueError: if `loss_weights` are given (auxiliary terms have their own `weight`), there
                are several losses, or Keras knows no such loss.
        """
        if loss_weights is not None:
            raise ValueError(
                "`loss_weights` must be None: the model has one loss, and each auxiliary term has "
                f"its own `weight`; received {loss_weights!r}"
            )
        if loss is not None:
            single_loss(loss)
            self.trained_as_log_odds = None
        super().compile(optimizer=optimizer, loss=loss, metrics=metrics, **kwargs)

    def compile_from_config(self, config: dict[str, Any]) -> None:
        # Keras leaves out models with a `compile` of their own, whose arguments may be others.
        config = keras.saving.deserialize_keras_object(config)
        config.pop("loss_weights", None)  # of a file from when they were not looked at
        self.compile(**config)
        if self.optimizer is not None:
            self.optimizer.build(self.trainable_variables)

    def __call__(self, inputs, *args, **kwargs):
        # Outside of `call`, whose errors Keras buries in a report of the call.
        checked.check_no_strings(inputs, self.tokenizer is not None)
        return super().__call__(inputs, *args, **kwargs)

    def call(self, inputs: dict[str, Tensor], training: bool | None = None) -> dict[str, Embedding]:
        outputs, embed = {}, global_batch.embed
        if "images" in inputs:
            outputs["images"] = embed(self.image_encoder, inputs["images"], training)
        if "captions" in inputs:
            outputs["captions"] = embed(self.caption_encoder, inputs["captions"], training)
        return outputs

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        """The loss of the global batch plus the weighted auxiliary terms and the layers' penalties;
        each replica returns its share."""
        if self.loss is None:
            raise ValueError("`loss` must be given to the model or to `compile`; received None")
        checked.check_nothing_else(y, sample_weight)
        x, images, captions = global_batch.gather(x, y_pred["images"], y_pred["captions"])
        logits = self.similarity(images, captions, training=training)
        matches = match_matrix(x)
        if compiled_metrics(self) is not None:
            # A step hands the same dict to `compute_metrics`, and each replica has its own.
            y_pred[_COMPARED] = matches, logits
        total = reduced(self.loss, matches, logits)
        known = {"ids": x["captions"], "matches": matches, "logits": logits}
        known["semantic"] = x.get("semantic")
        for term in self.auxiliaries:
            value = term(images, captions, **{name: known[name] for name in term.reads})
            # Keras weighs the loss of a batch, too; the last one is often smaller.
            self.trackers[term.name].update_state(value, ops.shape(x["captions"])[0])
            total = total + term.weight * value
        for penalty in self.losses:  # of layers' regularizers
            total = total + penalty
        return global_batch.share(total)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        """Compiled metrics compare all pairs of the global batch, `(images, captions)`."""
        if compiled_metrics(self) is None:
            return self.get_metrics_result()
        if _COMPARED not in y_pred:
            x, images, captions = global_batch.gather(x, y_pred["images"], y_pred["captions"])
            y_pred = {_COMPARED: (match_matrix(x), self.similarity(images, captions))}
        matches, logits = y_pred[_COMPARED]
        return super().compute_metrics(None, matches, logits)

    def train_step(self, data):
        checked.check_training_batch(data)
        return global_batch.one_value_a_replica(super().train_step(data))

    def test_step(self, data):
        checked.check_training_batch(data)
        return global_batch.one_value_a_replica(super().test_step(data))

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Builds the optimizer and the metrics without a batch."""
        # Keras would build from a batch, which it cannot reduce over workers. Only the optimizer
        # and the metrics are left to build, and their variables must be there before the replicas
        # run.
        matrix, metrics = keras.KerasTensor((None, None), dtype="float32"), compiled_metrics(self)
        if metrics is not None and not metrics.built:
            with self.distribute_strategy.scope():
                metrics.build(matrix, matrix)
        if self.optimizer is not None and not self.optimizer.built:
            with self.distribute_strategy.scope():
                self.optimizer.build(self.trainable_variables)

    def tower(self, side: str) -> Tower:
        """The `zoo.Tower` of a side, `"images"` or `"captions"`, compiled once for this model."""
        if side not in self._towers:
            self._towers[side] = Tower(self, side)
        return self._towers[side]

    @functools.cached_property
    def _towers(self):
        return {}

    def encode_images(self, images: Tensor, batch_size: int = 128) -> EmbeddingLike:
        """Embeds images as the user sees them.

        Args:
            images: an array `(N, height, width, 3)` of the model's own height and width, 0…255,
                see `zoo.data.images.prepare`; or a `tf.data.Dataset` of batches of that.
            batch_size: how many at once, for arrays.

        Returns:
            A `tfp.distributions.MultivariateNormalDiag` for Gaussian models, a `(N, K, dim)` tensor
            for sets, a `(N, dim)` tensor for points.

        Raises:
            ValueError: if these are no pictures, or not of the size that the model takes.
            UserWarning: a warning, where pictures are floats of at most 1.
        """
        images = checked.image_array(images, _input_shape(self.image_encoder))
        return self._view(self.tower("images").of_arrays(images, batch_size))

    def encode_captions(
        self, captions: Sequence[str] | Tensor, batch_size: int = 256
    ) -> EmbeddingLike:
        """Embeds captions as the user sees them, as `encode_images`.

        Args:
            captions: strings; an array of token ids `(M, length)`, of a model of stored vectors
                of these `(M, dim)`; or a `tf.data.Dataset` of batches of such arrays.
            batch_size: how many at once, for arrays.

        Raises:
            ValueError: if strings are given and the model has no tokenizer, if only some are
                strings, or if token ids have another shape than the model takes.
        """
        ids = checked.caption_array(
            self.tokenize(captions), _input_shape(self.caption_encoder), self.tokenizer is not None
        )
        return self._view(self.tower("captions").of_arrays(ids, batch_size))

    def _view(self, embedding):
        """An embedding as `encode_*` returns it: a distribution of Gaussians, a tensor of points or
        elements, the dict of token sequences."""
        if "tokens" in embedding:
            return embedding
        if "elements" in embedding:
            return ops.convert_to_tensor(embedding["elements"])
        if "log_variance" in embedding:
            return embeddings.distribution(embedding)
        return ops.convert_to_tensor(embedding["mean"])

    def tokenize(self, captions: Sequence[str] | Tensor) -> Tensor:
        """Token ids `(M, length)` of strings; anything else is returned as it is. Raises ValueError
        if strings are given and the model has no tokenizer, or if only some are strings."""
        strings = [captions] if isinstance(captions, (str, bytes)) else captions
        if not checked.is_text(strings):
            return captions
        if self.tokenizer is None:
            wanted = "vectors" if self.reads_caption_vectors else "token ids"
            raise ValueError(
                f"`captions` must be {wanted}, since this model has no tokenizer; received strings"
            )
        return ops.convert_to_numpy(self.tokenizer(list(strings)))

    def uncertainty(self, embedding: EmbeddingLike, measure: str | None = None) -> Tensor:
        """`zoo.embeddings.uncertainty` with this system's own measure as the default."""
        return embeddings.uncertainty(embedding, measure or self.uncertainty_measure)

    @property
    def reads_caption_vectors(self) -> bool:
        """Whether captions are stored vectors `(M, dim)` to this model, and not words."""
        shape, inputs = _input_shape(self.caption_encoder), self.caption_encoder
        is_vector = shape is not None and len(shape) == 2 and "float" in inputs.input.dtype
        return self.tokenizer is None and is_vector

    @property
    def gives_match_probability(self) -> bool:
        """Whether the sigmoid of this model's similarity is the probability of a match.

        It is where the similarity is a log-odds (`Similarity.is_log_odds`) whose scale and shift
        were trained as such, by `MatchingCrossentropy`. Another similarity put in place of the
        trained one ranks, and its scale and shift mean nothing.
        """
        trained = self.trained_as_log_odds
        if trained is None:
            trained = isinstance(self.loss, losses.MatchingCrossentropy)
        return trained and getattr(self.similarity, "is_log_odds", False)

    def with_image_encoder(self, image_encoder: keras.layers.Layer) -> "DualEncoder":
        """This model with another image encoder, sharing everything else, weights included.

        With the encoder's head alone it trains on stored features of a frozen backbone. Where one
        encoder serves both sides, both get the other one.
        """
        return self._with(image_encoder=image_encoder)

    def with_caption_encoder(self, caption_encoder: keras.layers.Layer) -> "DualEncoder":
        """This model with another caption encoder, sharing everything else, weights included."""
        return self._with(caption_encoder=caption_encoder)

    def with_auxiliaries(self, *terms: keras.layers.Layer) -> "DualEncoder":
        """This model with further auxiliary terms, sharing everything else, weights included."""
        return self._with(auxiliaries=[*self.auxiliaries, *terms])

    def _with(self, image_encoder=None, auxiliaries=None, caption_encoder=None):
        """The model with some parts replaced, which shares all other weights."""
        image_encoder = image_encoder or self.image_encoder
        if caption_encoder is None:
            caption_encoder = image_encoder if self._has_one_encoder else self.caption_encoder
        model = DualEncoder(
            image_encoder,
            caption_encoder,
            self.similarity,
            loss=self._own_loss,
            auxiliaries=self.auxiliaries if auxiliaries is None else auxiliaries,
            tokenizer=self.tokenizer,
            uncertainty_measure=self.uncertainty_measure,
            trained_as_log_odds=self.trained_as_log_odds,
            name=self.name,
        )
        model.loss = self.loss
        return model

    def export(self, filepath: str, format: str = "tf_saved_model", **kwargs: Any) -> None:
        """Keras' `export`: a program from images and token ids to their embeddings.

        Its inputs are `"images"` and `"captions"`, its outputs `"images_mean"`,
        `"captions_mean"` and so on: programs have no dicts in dicts. `python -m export` writes
        signatures of strings and of image files, and the similarity too. Raises ValueError if an
        encoder does not say what it takes.
        """
        flat_model(self).export(filepath, format=format, **kwargs)

    @property
    def _has_one_encoder(self):
        """Whether images and captions share one encoder."""
        return self.caption_encoder is self.image_encoder

    @classmethod
    def from_preset(cls, preset: str | os.PathLike, **kwargs: Any) -> "DualEncoder":
        """`zoo.from_preset`, by the name that KerasHub gives it."""
        from zoo.presets import from_preset  # which makes these models

        return from_preset(preset, **kwargs)

    def save_to_preset(self, preset_dir: str | os.PathLike, **kwargs: Any) -> None:
        """`zoo.save_preset`, by the name that KerasHub gives it: a preset there is replaced."""
        from zoo.presets import save_preset  # which makes these models

        save_preset(self, preset_dir, **{"overwrite": True, **kwargs})

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **stored.parts(self, self._own_loss)}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> "DualEncoder":
        return cls(**stored.arguments(config, custom_objects))


def match_matrix(batch: dict[str, Tensor]) -> Tensor:
    """Which image matches which caption, float32 `(images, captions)`."""
    if "matches" in batch:
        return ops.cast(batch["matches"], "float32")
    equal = ops.equal(batch["image_labels"][:, None], batch["caption_labels"][None, :])
    return ops.cast(equal, "float32")


def _input_shape(encoder):
    """The shape that an encoder is known to take, `(None, …)`, or None of a layer that is no
    model of one input."""
    shape = getattr(encoder, "input_shape", None)
    return shape if isinstance(shape, tuple) and shape and not isinstance(shape[0], tuple) else None
