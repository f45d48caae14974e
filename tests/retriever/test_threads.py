"""A retriever that threads share: whatever they do at once, every answer is of some gallery."""

import threading
import time

import numpy as np
import pytest

import zoo
from halo_search.index import Index
from zoo.evaluation import probes_of

BASE, GROUP = 120, 9  # items that stay, and that come and go together
GROUPS = 5  # of each thread that adds and removes


@pytest.fixture(scope="module")
def model():
    return zoo.from_preset("toy_birds_pfe")


@pytest.fixture(scope="module")
def vectors():
    """A function of ids to embeddings like those of the model's photos, of each id its own."""
    photos = probes_of("toy_birds_pfe").images

    def embeddings(ids):
        draws = [np.random.default_rng(one).normal(size=photos["mean"].shape[1]) for one in ids]
        rows = np.asarray(ids) % len(photos["mean"])
        mean = photos["mean"][rows] + 0.1 * photos["mean"].std() * np.array(draws)
        return {"mean": mean.astype("float32"), "log_variance": photos["log_variance"][rows]}

    return embeddings


class World:
    """Threads that ask, add, remove, save and load, and what they saw that cannot be."""

    def __init__(self, model, vectors, folder):
        self.model, self.vectors, self.folder, self.errors = model, vectors, folder, []
        named = [f"item {one}" for one in range(BASE)]
        self.retriever = zoo.Retriever.build(model, vectors(range(BASE)), names=named)
        self.states = {}  # of every thread that changes something: the sets of its ids so far
        self.counts = {}
        self.retriever.save(folder)

    def run(self, seconds):
        self.ends = time.monotonic() + seconds
        jobs = [self.ask, self.ask, self.change, self.change, self.save, self.save, self.load]
        threads = [
            threading.Thread(target=self.repeat, args=(job, number))
            for number, job in enumerate([*jobs, self.look])
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds + 60)
            assert not thread.is_alive()

    def repeat(self, job, number):
        rng = np.random.default_rng(number)
        while time.monotonic() < self.ends and not self.errors:
            try:
                job(number, rng)
                self.counts[job.__name__] = self.counts.get(job.__name__, 0) + 1
            except BaseException as error:
                self.errors.append((job.__name__, error))
                raise

    def ask(self, number, rng):
        answer = self.retriever.ask(
            self.vectors(rng.integers(0, BASE, 1)), int(rng.integers(1, 30))
        )
        assert answer.names == [f"item {one}" for one in answer.ids]
        assert (np.diff(answer.scores) <= 0).all()

    def look(self, number, rng):
        assert self.retriever.confidence is not None
        assert len(self.retriever) >= BASE

    def change(self, number, rng):
        there, states = self.states.setdefault(number, (set(), [frozenset()]))
        group = int(rng.integers(GROUPS))
        ids = [1000 * number + GROUP * group + one for one in range(GROUP)]
        if group in there:
            states.append(states[-1] - frozenset(ids))
            self.retriever.remove(ids)
            there.remove(group)
        else:
            states.append(states[-1] | frozenset(ids))
            self.retriever.add(self.vectors(ids), ids, [f"item {one}" for one in ids])
            there.add(group)
        time.sleep(0.01)

    def save(self, number, rng):
        self.retriever.save(self.folder)

    def load(self, number, rng):
        self.check(zoo.Retriever.load(self.folder, self.model), rng)

    def check(self, loaded, rng):
        """A loaded retriever has items of a state that was, and answers as a new index of them."""
        ids = loaded.index.ids
        own = frozenset(ids.tolist())
        assert len(own) == len(ids)
        assert own >= frozenset(range(BASE))
        for number, (_, states) in list(self.states.items()):
            there = {one for one in own if one // 1000 == number}
            assert there in list(states)
        questions = self.vectors(rng.integers(0, 2000, 3))
        again = Index.build(self.vectors(ids), self.model.similarity, ids=ids)
        for one, other in zip(
            loaded.index.search(questions, 20), again.search(questions, 20), strict=True
        ):
            np.testing.assert_array_equal(one, other)
        assert loaded.names_of(ids) == [f"item {one}" for one in ids]
        assert loaded.confidence is not None


def threads_for(seconds, model, vectors, folder):
    world = World(model, vectors, folder)
    world.run(seconds)
    assert not world.errors
    world.check(zoo.Retriever.load(folder, model), np.random.default_rng(0))
    assert all(world.counts.get(name) for name in ("ask", "change", "save", "load", "look"))
    return world.counts


def test_threads_ask_change_save_and_load_at_once(model, vectors, tmp_path):
    threads_for(1.5, model, vectors, tmp_path / "birds")


def test_names_follow_their_items(model, vectors):
    retriever = zoo.Retriever.build(
        model, vectors(range(4)), [1, 2, 3, 5], names=["a", "b", "c", "old"]
    )
    retriever.remove([5])
    retriever.add(vectors([7]), ids=[5])
    assert retriever.names_of(np.array([1, 5])) == ["a", "5"]
    retriever.add(vectors([8, 9]), ids=[9, 8], names=["nine", "eight"])
    assert retriever.names_of(np.array([8, 9])) == ["eight", "nine"]


@pytest.mark.parametrize("names", [["only one", "two"], "abc", []])
def test_a_refused_add_changes_nothing(model, vectors, names):
    retriever = zoo.Retriever.build(model, vectors(range(4)), names=list("abcd"))
    before = retriever.ask(vectors([2]), 4).to_dict()
    with pytest.raises(ValueError, match="`names` must be 3 strings; received"):
        retriever.add(vectors([5, 6, 7]), names=names)
    assert len(retriever) == 4
    assert retriever.ask(vectors([2]), 4).to_dict() == before
