"""The search spaces of `zoo.search` inside the graph, so that an index needs no Python of ours."""

import tensorflow as tf

from zoo.embeddings.csls import NEIGHBOURS


def search_vectors(embedding, space, gallery=None, query=None):
    """The coordinates that FAISS or any other L2 or inner-product search takes.

    Args:
        embedding: a dict of tensors, see `zoo.embeddings`.
        space: a name of `zoo.search.SPACES`, where the proofs are.
        gallery, query: the `zoo.embeddings.csls.CorrectedSpace` of a gallery of such items, and
            of the gallery that such queries ask; None where hubs are not corrected.

    Returns:
        A dict: `gallery` and `query`, float32 `(batch, dim')`, of sets `(batch, num_elements,
        dim)`; `offset` `(batch,)`, to add to the squared L2 distances of a query, for `"csd"` and
        of corrected ones.
    """
    vectors = _vectors(embedding, space)
    if gallery is not None:
        vectors["gallery"] = _corrected(vectors["gallery"], gallery)
    if query is not None:
        last = float(query.metric == "inner_product")
        vectors["query"] = tf.pad(vectors["query"], [[0, 0], [0, 1]], constant_values=last)
        if query.ceiling:
            own = vectors.get("offset", tf.zeros_like(vectors["query"][:, 0]))
            vectors["offset"] = own - query.ceiling / 2
    return vectors


def _corrected(vectors, hubs):
    bank, is_l2 = tf.constant(hubs.bank), hubs.metric == "l2"
    norms = tf.reduce_sum(bank**2, axis=1) / 2 if is_l2 else 0.0
    products = tf.matmul(vectors, bank, transpose_b=True) - norms
    near = tf.gather(bank, tf.math.top_k(products, min(NEIGHBOURS, len(hubs.bank))).indices)
    if is_l2:
        values = tf.reduce_sum((near - vectors[:, None]) ** 2, axis=2)
        last = tf.sqrt(tf.maximum(hubs.ceiling - tf.reduce_mean(values, axis=1), 0.0) / 2)
    else:
        last = -tf.reduce_mean(tf.reduce_sum(near * vectors[:, None], axis=2), axis=1) / 2
    return tf.concat([vectors, last[:, None]], axis=1)


def _vectors(embedding, space):
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
