"""The search spaces of `halo_search.index` inside the graph, so that an index needs no Python of
ours."""

import tensorflow as tf


def search_vectors(embedding, space):
    """The vectors that FAISS, or any other search by L2 distance or inner product, indexes.

    Args:
        embedding: a dict of tensors, see `zoo.embeddings`.
        space: a name of `halo_search.index.SPACES`, where the proofs are.

    Returns:
        A dict with `gallery` and `query`, float32 `(batch, dim')`, or `(batch, num_elements, dim)`
        for sets; for `"csd"` also with `offset`, `(batch,)`: add it to the squared L2 distances of
        a query.
    """
    if space == "elements":
        both = tf.math.l2_normalize(embedding["elements"], axis=-1, epsilon=1e-24)
        return {"gallery": both, "query": both}
    mean = embedding["mean"]
    if space == "csd":
        total = tf.reduce_sum(tf.exp(embedding["log_variance"]), axis=1)
        return {
            "gallery": tf.concat([mean, tf.sqrt(total)[:, None]], axis=1),
            "query": tf.pad(mean, [[0, 0], [0, 1]]),
            "offset": total,
        }
    if space == "wasserstein_2":
        mean = tf.concat([mean, tf.exp(0.5 * embedding["log_variance"])], axis=1)
    elif space == "cosine":
        mean = tf.math.l2_normalize(mean, axis=-1, epsilon=1e-24)
    return {"gallery": mean, "query": mean}
