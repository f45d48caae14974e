"""What flags may say and their defaults, where their room would need TensorFlow to be imported.

A command's help needs them; the rooms take them from here.
"""

# `zoo.similarities.NAMES`, which the classes themselves give.
SIMILARITIES = (
    "average_l2", "bhattacharyya", "chamfer", "cosine", "csd", "elk", "euclidean", "jeffreys",
    "kl", "match_probability", "maximum_pair", "min_kl", "power_spherical",
    "probabilistic_cosine", "reverse_kl", "set_match_probability", "smooth_chamfer",
    "squared_euclidean", "squared_wasserstein_2", "von_mises_fisher", "wasserstein_2",
)  # fmt: skip
# The similarity that ranks embeddings of a kind by default.
BY_KIND = {
    "a point": "cosine",
    "a Gaussian": "csd",
    "a set": "smooth_chamfer",
}
KINDS = ("flat", "hnsw", "ivfpq")  # of an index
DTYPES = ("float32", "float16")  # of vectors in shards
RESAMPLES = 500  # of the bootstrap
DIVISIONS = 5  # of the test queries, each used both ways
