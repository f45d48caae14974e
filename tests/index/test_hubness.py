"""Items that answer everything are named; those of ordinary galleries are not."""

import numpy as np
import pytest

import zoo
from halo_search.index import Hub, Index, hubs
from halo_search.index.hubness import taken_by_few
from zoo.evaluation import probes_of


def world(items, seed=0, dim=32):
    """Photos and questions that share a direction, as a model's do, and questions of their own."""
    rng = np.random.default_rng(seed)
    centre = 0.5 * rng.normal(size=dim)
    photos = centre + rng.normal(size=(items, dim))
    rows = rng.integers(0, items, 500)
    return photos, centre + 0.7 * photos[rows] + rng.normal(size=(500, dim))


@pytest.mark.parametrize("items", [40, 60, 200, 1000])
@pytest.mark.parametrize("seed", range(3))
def test_of_an_ordinary_gallery_none_is_named_and_a_planted_one_is(items, seed):
    photos, questions = world(items, seed)
    assert hubs(Index.build({"mean": photos}, "cosine"), {"mean": questions}) == []
    mean = questions.mean(axis=0)
    planted = 0.7 * photos[5] / np.linalg.norm(photos[5]) + 3 * mean / np.linalg.norm(mean)
    photos[5] = planted
    ids = np.arange(items) + 1000
    found = hubs(Index.build({"mean": photos}, "cosine", ids=ids), {"mean": questions})
    assert [one.id for one in found] == [1005]
    assert found[0].share >= 0.2
    assert "item 1005 is among the first" in str(found[0])


def test_a_hub_says_how_many_questions_it_answers():
    assert str(Hub(7, 0.45, 10)) == "item 7 is among the first 10 of 45% of questions"


def test_a_small_gallery_is_not_judged():
    photos, questions = world(20)
    photos[:] = questions.mean(axis=0)
    assert hubs(Index.build({"mean": photos}, "cosine"), {"mean": questions}) == []


def test_a_retriever_names_them_when_it_is_built_and_when_it_grows():
    probes = probes_of("toy_birds_pfe")
    photos = {name: values[:300].astype("float32") for name, values in probes.images.items()}
    mean = probes.captions["mean"].astype("float32").mean(axis=0, keepdims=True)
    poison = {"mean": mean, "log_variance": np.full_like(mean, -9)}
    names = [f"{n}.jpg" for n in range(300)]
    retriever = zoo.Retriever.build("toy_birds_pfe", photos, names=names)
    assert retriever.note is None
    retriever.add(poison, [999], ["planted.jpg"])
    assert "planted.jpg is among the first 10 answers of" in retriever.note
    assert [one.id for one in retriever.hubs()] == [999]
    retriever.add(poison, [1000], ["second.jpg"])
    assert ", and 1 more items likewise: look" in retriever.note
    retriever.remove([999, 1000])
    assert retriever.hubs() == []
    both = {name: np.concatenate([photos[name], poison[name]]) for name in photos}
    again = zoo.Retriever.build("toy_birds_pfe", both, names=[*names, "planted.jpg"])
    assert "planted.jpg" in again.note


def test_many_planted_items_take_most_questions_and_none_is_named():
    rng = np.random.default_rng(0)
    planted = 5 * rng.normal(size=(30, 128)) / np.sqrt(128)
    photos, questions = (
        planted[np.arange(n) % 30] + rng.normal(size=(n, 128)) for n in (1000, 510)
    )
    index = Index.build({"mean": photos}, "cosine")
    assert taken_by_few(index, {"mean": questions}) is None
    index.add({"mean": planted})
    few, share = taken_by_few(index, {"mean": questions})
    assert few == 31
    assert share > 0.8
    assert hubs(index, {"mean": questions}) == []
