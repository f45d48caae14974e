"""SGRAF: every word attends to an image's regions, and the vectors of similarity are reasoned."""

import keras
from keras import ops

from zoo.embeddings import TOKENS, tokens
from zoo.embeddings.layer import Layer
from zoo.embeddings.numerics import unit
from zoo.similarities.base import Similarity

# Numbers of one intermediate tensor: 64 MiB.
_BLOCK = 2**24


@keras.saving.register_keras_serializable(package="halo")
class AlignmentGraph(Layer):
    """ReLU(W·(E·s)), E = softmax(W_q s · W_k s): each node gathers all others of its pair.
    Alignments are `(N, M, nodes, dim)`; the mask, True for present nodes, broadcasts to them."""

    def __init__(self, dim, **kwargs):
        super().__init__(**kwargs)
        self.dim = dim
        for name in ("query", "key", "gather"):
            layer = keras.layers.Dense(dim, dtype=self.dtype_policy, name=name)
            layer.build((None, dim))
            setattr(self, name, layer)
        self.built = True

    def call(self, alignments, mask):
        queries, keys = self.query(alignments), ops.swapaxes(self.key(alignments), -1, -2)
        scores = ops.where(ops.expand_dims(mask, -2), ops.matmul(queries, keys), -1e30)
        gathered = ops.matmul(ops.softmax(scores, axis=-1), alignments)
        return ops.relu(self.gather(gathered))


@keras.saving.register_keras_serializable(package="halo")
class AlignmentFiltration(Layer):
    """Σ_i g_i s_i of unit length, g = sigmoid(BatchNorm(w·s_i)), which sum to one: `(N, M, dim)` of
    what `AlignmentGraph` takes."""

    def __init__(self, dim, **kwargs):
        super().__init__(**kwargs)
        self.dim = dim
        self.gate = keras.layers.Dense(1, dtype=self.dtype_policy, name="gate")
        self.gate.build((None, dim))
        self.normalize = keras.layers.BatchNormalization(
            momentum=0.9, epsilon=1e-5, dtype=self.dtype_policy, name="normalize"
        )
        self.normalize.build((None, None, None, 1))
        self.built = True

    def call(self, alignments, mask, training=None):
        mask = ops.broadcast_to(mask, ops.shape(alignments)[:3])
        gates = self.normalize(self.gate(alignments), training=training, mask=mask)
        gates = ops.where(ops.expand_dims(mask, -1), ops.sigmoid(gates), 0.0)
        gates = gates / ops.maximum(ops.sum(gates, axis=2, keepdims=True), 1e-8)
        return unit(ops.sum(gates * alignments, axis=2))


def attended_regions(regions, words, region_mask, word_mask, sharpness=9.0):
    """What each word sees of each image, `(N, M, L, dim)`: a mean of its regions, of unit
    length."""
    products = ops.einsum("nrd,mld->nmlr", regions, words)
    products = ops.where(products > 0, products, 0.1 * products)
    products = ops.where(word_mask[None, :, :, None], products, 0.0)
    over_words = ops.sqrt(ops.maximum(ops.sum(ops.square(products), axis=2, keepdims=True), 1e-16))
    scores = ops.where(region_mask[:, None, None], sharpness * products / over_words, -1e30)
    return unit(ops.einsum("nmlr,nrd->nmld", ops.softmax(scores, axis=-1), regions))


class CrossAttention(Similarity):
    """Base of SGRAF's two: alignment vectors of a pair, and one score of them in (0, 1).

    A word's alignment is the unit-length linear map of (attended regions − word)², the pair's
    that of (pooled regions − pooled words)². Subclasses write `_summary(alignments, mask,
    training)`, from `(N, M, 1 + L, similarity_dim)`, the pair's first, to `(N, M,
    similarity_dim)`.

    Args:
        dim: channels of the tokens.
        similarity_dim: channels of an alignment.
        sharpness: λ of the attention.
    Call arguments: token sequences of N images and M captions, see `zoo.embeddings`.
    Output: `(N, M)` float32 in (0, 1): the sigmoid of a linear map. Padding changes nothing.
        Raises ValueError if the embeddings are no token sequences, or of another `dim`.

    Pairs are compared for a block of captions at a time, so that memory is bounded by that of the
    alignments in training, where the rest is computed again, and of one block otherwise.
    """

    embeddings = (TOKENS,)
    needs_model = True

    def __init__(self, dim, similarity_dim=256, sharpness=9.0, **kwargs):
        super().__init__(**kwargs)
        self.dim, self.similarity_dim, self.sharpness = dim, similarity_dim, float(sharpness)
        for name, channels, size in (
            ("local", dim, similarity_dim),
            ("pooled", dim, similarity_dim),
            ("score", similarity_dim, 1),
        ):
            layer = keras.layers.Dense(size, dtype=self.dtype_policy, name=name)
            layer.build((None, channels))
            setattr(self, name, layer)

    def call(self, images, captions, training=None):
        images = self._checked(images, "images")
        captions = self._checked(captions, "captions")
        blocks = list(self._blocks(images, captions))
        if training:
            # BatchNorm's statistics are of the whole batch.
            parts = [self._alignments(images, block, keras.remat) for block in blocks]
            alignments = ops.concatenate(parts, axis=1)
            return self._scores(alignments, captions[1], training)
        parts = [self._scores(self._alignments(images, b), b[1], training) for b in blocks]
        return ops.concatenate(parts, axis=1)

    def _checked(self, embedding, name):
        """`(values (n, length, dim), mask, pooled)` of tokens; a ValueError of other widths."""
        values, mask, pooled = tokens(embedding, name)
        if values.shape[-1] != self.dim:
            raise ValueError(
                f"`{name}` must have tokens of {self.dim} channels; received {values.shape[-1]}"
            )
        return values, mask, pooled

    def _blocks(self, images, captions):
        """The captions in pieces, where sizes are known; else they are one."""
        (count, length, dim), rows = captions[0].shape, images[0].shape[0]
        if None in (count, length, rows):
            size = count or 1
            starts = [slice(None)]
        else:
            size = max(1, _BLOCK // max(1, rows * length * dim))
            starts = [slice(start, start + size) for start in range(0, max(count, 1), size)]
        for chosen in starts:
            yield tuple(part[chosen] for part in captions)

    def _alignments(self, images, captions, wrap=lambda function: function):
        """(images, captions, 1 + words, dim): the global alignment first, then each word with the
        regions that it attends to. `wrap` may compute them again in the gradient."""

        def of_words(regions, region_mask, words, word_mask, kernel, bias):
            masks = region_mask > 0, word_mask > 0
            seen = attended_regions(regions, words, *masks, self.sharpness)
            return unit(ops.matmul(ops.square(seen - words[None]), kernel) + bias)

        regions, region_mask, image = images
        words, word_mask, caption = captions
        weights = self.local.kernel, self.local.bias
        weights = [ops.convert_to_tensor(weight) for weight in weights]
        # What is computed again may not be bool.
        masks = ops.cast(region_mask, "float32"), ops.cast(word_mask, "float32")
        local = wrap(of_words)(regions, masks[0], words, masks[1], *weights)
        pooled = unit(self.pooled(ops.square(image[:, None] - caption[None])))
        return ops.concatenate([ops.expand_dims(pooled, 2), local], axis=2)

    def _scores(self, alignments, word_mask, training):
        """Alignments (images, captions, 1 + words, dim) to similarities (images, captions) in 0 …
        1."""
        mask = ops.pad(word_mask, [[0, 0], [1, 0]], constant_values=True)[None]
        summary = self._summary(alignments, mask, training)
        return ops.sigmoid(ops.squeeze(self.score(summary), -1))

    def _summary(self, alignments, mask, training):
        """Alignments to one vector per pair, (images, captions, dim); subclasses define it."""
        raise NotImplementedError


@keras.saving.register_keras_serializable(package="halo")
class SimilarityReasoning(CrossAttention):
    """SGR: the alignments are a graph, and some steps of it gather them in the pair's.

    ```python
    embedding = {"tokens": np.ones((2, 5, 8)), "mask": np.ones((2, 5)), "pooled": np.ones((2, 8))}
    zoo.similarities.SimilarityReasoning(dim=8, similarity_dim=4)(embedding, embedding)  # (2, 2)
    ```

    Args:
        dim, similarity_dim, sharpness: of `CrossAttention`, as are call arguments and output.
        num_steps: graph convolutions, each with its own weights.
    Reference: SGRAF (Diao et al., "Similarity Reasoning and Filtration for Image-Text Matching",
        AAAI 2021), section 3.2.
    """

    identifier = "sgr"

    def __init__(self, dim, similarity_dim=256, sharpness=9.0, num_steps=3, **kwargs):
        super().__init__(dim, similarity_dim, sharpness, **kwargs)
        self.num_steps = num_steps
        self.steps = [
            AlignmentGraph(similarity_dim, dtype=self.dtype_policy, name=f"step_{number}")
            for number in range(num_steps)
        ]

    def _summary(self, alignments, mask, training):
        """The global alignment after some graph convolutions."""
        for step in self.steps:
            alignments = step(alignments, mask)
        return alignments[:, :, 0]


@keras.saving.register_keras_serializable(package="halo")
class SimilarityFiltration(CrossAttention):
    """SAF: the mean of the alignments by gates that keep what matters and suppress the rest.

    ```python
    embedding = {"tokens": np.ones((2, 5, 8)), "mask": np.ones((2, 5)), "pooled": np.ones((2, 8))}
    zoo.similarities.SimilarityFiltration(dim=8, similarity_dim=4)(embedding, embedding)  # (2, 2)
    ```

    Args:
        dim, similarity_dim, sharpness: of `CrossAttention`, as are call arguments and output.
    Reference: SGRAF (Diao et al., AAAI 2021), section 3.3.
    Released code differs: it normalises the gates of each caption of a batch apart.
    """

    identifier = "saf"

    def __init__(self, dim, similarity_dim=256, sharpness=9.0, **kwargs):
        super().__init__(dim, similarity_dim, sharpness, **kwargs)
        self.filtration = AlignmentFiltration(
            similarity_dim, dtype=self.dtype_policy, name="filtration"
        )

    def _summary(self, alignments, mask, training):
        """The mean of all alignments, weighted by learned gates."""
        return self.filtration(alignments, mask, training=training)
