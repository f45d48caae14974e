"""What an embedding may be: every number is refused when it is added or asked, or is answered."""

import warnings

import numpy as np
import pytest

from halo_search.embeddings.arrays import as_arrays
from halo_search.index import Index

VALUES = (
    *(np.nan, np.inf, -np.inf, 1e15, -1e15, 1e16, 1e20, 1e30, 1e38, -1e38, 1e39),
    *(0.0, 1e-45, 1e-30, 6e-8, 65_504.0, 70_000.0, -1e3),
)
SIMILARITIES = {"point": ("cosine", "squared_euclidean"), "Gaussian": ("csd", "wasserstein_2")}


def embedding(kind, items, seed=0):
    rng = np.random.default_rng(seed)
    arrays = {"mean": rng.normal(size=(items, 8))}
    if kind == "Gaussian":
        arrays["log_variance"] = rng.normal(size=(items, 8)) - 2
    return arrays


def changed(kind):
    """Yields embeddings of one item with a value in one number, and in all."""
    for value in VALUES:
        for key in embedding(kind, 1):
            for numbers in (slice(0, 1), slice(None)):
                found = embedding(kind, 1, seed=9)
                found[key][:, numbers] = value
                yield found


@pytest.fixture(params=["memory", "lance"])
def build(request, tmp_path):
    if request.param == "memory":
        return Index.build
    lance = pytest.importorskip("halo_search.index.lance")
    return lambda *arguments, **more: lance.LanceIndex.build(tmp_path, *arguments, **more)


def asked(index, queries):
    scores, ids = index.search(queries, 5)
    assert np.isfinite(scores).all()
    assert (ids >= 0).all()
    assert np.isfinite(index.query_scores(queries).mean).all()


def is_refused(said, call, *arguments):
    """Whether a call is refused by a sentence that begins so; any other error is a fault."""
    try:
        call(*arguments)
    except ValueError as error:
        if str(error).startswith(said):
            return True
        raise
    return False


@pytest.mark.filterwarnings("ignore:.*all zeros:UserWarning")
@pytest.mark.parametrize(
    ("kind", "similarity"), [(kind, one) for kind, names in SIMILARITIES.items() for one in names]
)
@pytest.mark.parametrize("corrected", [False, True])
def test_a_value_is_refused_at_the_door_or_answered(kind, similarity, corrected, build):
    if corrected and similarity == "wasserstein_2":
        pytest.skip("hubs are corrected for scores that are straight lines")
    hubs = embedding(kind, 120, seed=5) if corrected else None
    index = build(embedding(kind, 30), similarity, hubs=hubs)
    question, refused, added = embedding(kind, 3, seed=7), [0, 0], 0
    for odd in changed(kind):
        refused[0] += is_refused("`queries` must h", asked, index, odd)
        if added == 10 and index.engine == "lance":  # each is a state on the disk
            continue
        if is_refused("`gallery_embeddings` must h", index.add, odd):
            refused[1] += 1
        else:
            added += 1
            asked(index, question)
    assert min(refused) > 10


def test_what_only_ranks_candidates_says_no_infinity():
    similarity = pytest.importorskip("zoo.similarities")
    index = Index.build(embedding("Gaussian", 30), similarity.get("kl"), candidates=40)
    far = embedding("Gaussian", 1, seed=3)
    far["mean"] += 1e14
    far["log_variance"] -= 90
    index.add(far)
    for queries in (far, embedding("Gaussian", 2, seed=4)):
        asked(index, queries)


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"mean": [["a", "b"]]}, "'mean' must be an array of real numbers"),
        ({"mean": [[1j, 2.0]]}, "complex numbers"),
        ({"mean": [[None, 2.0]]}, "finite numbers in 'mean'; item 0"),
        ({"mean": np.empty((3, 0))}, "must hold numbers in 'mean'"),
        ({"elements": np.empty((3, 0, 4))}, "must hold numbers in 'elements'"),
        ({"elements": np.ones((2, 3, 4)), "mask": [[1, 0, 0], [0, 0, 0]]}, "item 1 does not"),
        ({"mean": [[0.0, 1.0], [0.0, 1e39]]}, "finite numbers in 'mean'; item 1"),
        ({"mean": [[10**18, 1]]}, "from -1e"),
        ({"mean": [[0.0]], "log_variance": [[70.0]]}, "log variances of at most 69"),
    ],
)
def test_one_check_names_what_is_wrong(arrays, says):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=says):
            as_arrays(arrays, "items")


def test_a_vector_too_short_to_have_a_direction_is_told():
    tiny = embedding("point", 30)
    tiny["mean"][4] = 1e-40
    with pytest.warns(UserWarning, match="1 of 30 vectors are all zeros, or nearly"):
        index = Index.build(tiny, "cosine", hubs=embedding("point", 120, seed=5))
    with pytest.warns(UserWarning, match="`queries`: 1 of 1"):
        index.search({"mean": np.zeros((1, 8))}, 1)
