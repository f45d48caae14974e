"""The best items of a fixed gallery as a layer, which is saved and exported with its gallery."""

from typing import Any

import keras
import numpy as np
from keras import ops

from zoo.embeddings import Embedding, Tensor


@keras.saving.register_keras_serializable(package="halo")
class BruteForceRetrieval(keras.layers.Layer):
    """The k best items of a gallery for each query, by comparing with all of them.

    ```python
    gallery = {"mean": np.eye(6, 4), "log_variance": np.zeros((6, 4))}  # as encoders give it
    csd = zoo.similarities.ClosedFormSampledDistance()
    retrieval = zoo.layers.BruteForceRetrieval(gallery, k=2, similarity=csd)
    scores, ids = retrieval({name: part[:3] for name, part in gallery.items()})  # (3, 2) each
    ```

    Args:
        candidate_embeddings: of the N items: an array `(N, dim)`, or an embedding as the encoders
            give it, a dict of arrays. None to give them by `update_candidates`, before the layer
            is called.
        candidate_ids: N integers; None counts from 0.
        k: how many items, at most N.
        return_scores: whether `(scores, ids)` is returned, or the ids alone.
        similarity: a layer of `zoo.similarities`, higher is better; None for the inner product.
        query_side: what the queries are, `"captions"` or `"images"`, for similarities that tell
            their sides apart.

    Call arguments:
        inputs: queries `(Q, dim)`, or a dict like the candidates.
        k: in place of the layer's own.

    Output: float32 scores and ids `(Q, k)`, best first; of equal scores the lower id first. Scores
    are float32 under every dtype policy.

    Raises:
        ValueError: if k is not in 1 … N, ids and candidates differ in number, or a candidate is not
            finite. A score that is not a number ranks last.

    Relations: the signature of keras-rs' `BruteForceRetrieval`, whose score is the inner product.
        `zoo.search.Index` grows, is approximate where wanted, and is for galleries of millions.
    """

    def __init__(
        self,
        candidate_embeddings: Any = None,
        candidate_ids: Any = None,
        k: int = 10,
        return_scores: bool = True,
        similarity: keras.layers.Layer | None = None,
        query_side: str = "captions",
        **kwargs: Any,
    ):
        # In half precision a gallery and its scores would be rounded; autocasting would do so.
        super().__init__(**{**kwargs, "trainable": False, "dtype": "float32", "autocast": False})
        if k != int(k) or k < 1:
            raise ValueError(f"`k` must be a whole number of at least 1; received {k}")
        if query_side not in ("captions", "images"):
            raise ValueError(
                f"`query_side` must be 'captions' or 'images'; received {query_side!r}"
            )
        self.k, self.return_scores, self.query_side = int(k), return_scores, query_side
        self.similarity = similarity
        self._parts, self._ids, self._is_dict = {}, None, False
        if candidate_embeddings is not None:
            self.update_candidates(candidate_embeddings, candidate_ids)
        elif candidate_ids is not None:
            raise ValueError("`candidate_ids` are given without `candidate_embeddings`")

    def update_candidates(self, candidate_embeddings: Any, candidate_ids: Any = None) -> None:
        """Replaces the gallery, by one of the same shapes once there is one.

        Raises:
            ValueError: if the shapes do not fit.
        """
        is_dict = isinstance(candidate_embeddings, dict)
        given = candidate_embeddings if is_dict else {"mean": candidate_embeddings}
        parts = {
            name: ops.convert_to_numpy(values).astype("float32")
            for name, values in given.items()
            if values is not None
        }
        counts = {len(values) for values in parts.values()}
        count = counts.pop() if len(counts) == 1 else 0
        ids = np.arange(count) if candidate_ids is None else np.asarray(candidate_ids)
        if not count or ids.shape != (count,) or ids.dtype.kind not in "iu":
            shapes = {name: values.shape for name, values in parts.items()}
            raise ValueError(
                "`candidate_embeddings` must hold rows of at least one item and `candidate_ids` as "
                f"many integers; received {shapes} and {ids.dtype} {ids.shape}"
            )
        if self.k > count:
            raise ValueError(f"`k` must be at most the {count} candidates; received {self.k}")
        if self._ids is None:
            self._create({name: values.shape for name, values in parts.items()}, is_dict)
        there = {name: tuple(weight.shape) for name, weight in self._parts.items()}
        if there != {name: values.shape for name, values in parts.items()}:
            raise ValueError(f"`candidate_embeddings` must keep the shapes {there}")
        bad = [name for name, values in parts.items() if not np.isfinite(values).all()]
        if bad:
            raise ValueError(f"`candidate_embeddings` must be finite; {bad[0]!r} is not")
        order = np.argsort(ids, kind="stable")  # `top_k` puts the earlier of equal scores first
        for name, values in parts.items():
            self._parts[name].assign(values[order])
        self._ids.assign(ids[order])

    def call(self, inputs: Embedding | Tensor, k: int | None = None) -> Any:
        if self._ids is None:
            raise ValueError("there is no gallery yet; call `update_candidates` first")
        k, count = self.k if k is None else int(k), self._ids.shape[0]
        if not 1 <= k <= count:
            raise ValueError(f"`k` must be from 1 to the {count} candidates; received {k}")
        scores = self._scores(inputs)
        # Of a query that is not finite; `top_k` would put it anywhere.
        rankable = ops.where(ops.isnan(scores), -np.inf, scores)
        _, rows = ops.top_k(rankable, k)
        scores = ops.take_along_axis(scores, rows, axis=-1)
        ids = ops.take(self._ids, rows)
        return (scores, ids) if self.return_scores else ids

    def _scores(self, queries):
        items = {name: ops.convert_to_tensor(weight) for name, weight in self._parts.items()}
        if self.similarity is None:
            queries = queries["mean"] if isinstance(queries, dict) else queries
            return ops.matmul(ops.cast(queries, "float32"), ops.transpose(items["mean"]))
        if not self._is_dict:
            items = items["mean"]
        if self.query_side == "images":
            return self.similarity(queries, items)
        return ops.transpose(self.similarity(items, queries))

    def build(self, input_shape: Any) -> None:
        self.built = True

    def get_build_config(self) -> dict[str, Any]:
        shapes = {name: list(weight.shape) for name, weight in self._parts.items()}
        return {"candidates": shapes, "is_dict": self._is_dict}

    def build_from_config(self, config: dict[str, Any]) -> None:
        if config.get("candidates") and self._ids is None:
            self._create({k: tuple(v) for k, v in config["candidates"].items()}, config["is_dict"])
        self.built = True

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "k": self.k,
            "return_scores": self.return_scores,
            "similarity": keras.saving.serialize_keras_object(self.similarity),
            "query_side": self.query_side,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "BruteForceRetrieval":
        similarity = keras.saving.deserialize_keras_object(config["similarity"])
        return cls(**{**config, "similarity": similarity})

    def _create(self, shapes, is_dict):
        self._is_dict = is_dict
        for name, shape in sorted(shapes.items()):
            self._parts[name] = self.add_weight(
                shape=shape, dtype="float32", initializer="zeros", trainable=False, name=name
            )
        count = next(iter(shapes.values()))[0]
        self._ids = self.add_weight(
            shape=(count,), dtype="int64", initializer="zeros", trainable=False, name="ids"
        )
