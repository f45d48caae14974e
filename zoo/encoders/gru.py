"""The recurrent caption encoder: token ids to words, their states and a sentence."""

import keras
from keras import ops

from zoo.embeddings import Tensor
from zoo.layers.sentence_gru import SentenceGRU

PADDING = 0


def gru(
    vocabulary_size: int,
    dim: int,
    word_dim: int = 300,
    bidirectional: bool = True,
    merge: str = "concat",
    word_vectors: Tensor | None = None,
    max_length: int | None = None,
    dropout: float = 0.0,
    seed: int | None = None,
    at_last_word: bool = False,
) -> keras.Model:
    """Word embeddings and a GRU over them.

    Args:
        vocabulary_size: number of token ids, of which 0 is padding.
        dim: dimension of the states and of the sentence (D).
        word_dim: dimension of the word embeddings.
        bidirectional, merge, at_last_word: as in `SentenceGRU`.
        word_vectors: initial word embeddings `(vocabulary_size, word_dim)`, such as GloVe's, or
            None for random ones. They are trained; `model.get_layer("words").trainable = False`
            freezes them.
        max_length: length of all captions where it is known, or None.
        dropout: share of the word embeddings' numbers that a training step zeroes.
        seed: of that.

    Returns:
        A Functional `keras.Model` named `"backbone"` from ids `(batch, length)` int32 to a dict:
        `"words"` the embeddings `(batch, length, word_dim)`, `"states"` the GRU's outputs
        `(batch, length, dim)`, `"sentence"` `(batch, dim)`, `"mask"` bool `(batch, length)`, True
        where there is a word.

    Raises:
        ValueError: if `word_vectors` has another shape.
    """
    if word_vectors is not None and tuple(word_vectors.shape) != (vocabulary_size, word_dim):
        raise ValueError(
            f"`word_vectors` must have shape ({vocabulary_size}, {word_dim}) "
            f"(vocabulary_size, word_dim); received {tuple(word_vectors.shape)}"
        )
    ids = keras.Input((max_length,), dtype="int32", name="captions")
    embed = keras.layers.Embedding(
        vocabulary_size,
        word_dim,
        embeddings_initializer=keras.initializers.RandomUniform(-0.1, 0.1),  # that of VSE++
        weights=word_vectors,
        name="words",
    )
    words, mask = embed(ids), ops.not_equal(ids, PADDING)
    if dropout:
        words = keras.layers.Dropout(dropout, seed=seed, name="dropout")(words)
    reader = SentenceGRU(dim, bidirectional, merge, at_last_word, name="gru")
    states, sentence = reader(words, mask=mask)
    outputs = {"words": words, "states": states, "sentence": sentence, "mask": mask}
    return keras.Model(ids, outputs, name="backbone")
