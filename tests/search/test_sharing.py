"""An index that threads share: readers together, a writer alone, and saves that are compared."""

import threading
import time

import faiss
import numpy as np
import pytest

import forked
from zoo.errors import InputError
from zoo.search import Index, storage
from zoo.search.sharing import SharedLock


def run(*jobs, seconds=60):
    """Runs functions in threads of their own; the first error is raised."""
    errors = []

    def guarded(job):
        try:
            job()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


def test_readers_read_together_and_a_writer_is_alone():
    lock, seen, meeting = SharedLock(), [], threading.Barrier(3)

    def reads():
        with lock.reading(), lock.reading():
            meeting.wait(10)  # all three hold it
            seen.append("read")

    def writes():
        with lock.writing(), lock.writing(), lock.reading():
            before = len(seen)
            time.sleep(0.01)
            assert len(seen) == before
            seen.append("wrote")

    run(reads, reads, reads, writes, writes)
    assert sorted(seen) == ["read"] * 3 + ["wrote"] * 2


def test_a_reader_cannot_become_a_writer(gaussians):
    index = Index.build(gaussians(5), "csd")
    with index.reading(), pytest.raises(RuntimeError, match="by the thread that is reading"):
        index.add(gaussians(1))
    index.add(gaussians(1))  # nothing is held any more
    assert len(index) == 6


def test_an_index_is_whole_when_it_is_saved_while_it_changes(gaussians, tmp_path):
    """The names of FAISS' rows and of the columns agree, and every answer is of the index."""
    index, items = Index.build(gaussians(40), "kl", candidates=40), gaussians(4)
    first, ends = index.ids.tolist(), threading.Event()

    def changes():
        for round_ in range(25):
            added = index.add(items)
            assert len(added) == 4
            if round_ % 2:
                index.remove(added)
        ends.set()

    def saves():
        while not ends.is_set():
            index.save(tmp_path / "index")
            loaded = Index.load(tmp_path / "index")
            assert len(loaded) % 4 == 0
            assert set(first) <= set(loaded.ids.tolist())
            assert (np.diff(loaded.search(items, 3)[0]) <= 0).all()

    def asks():
        while not ends.is_set():
            scores, ids = index.search(items, 10)
            assert (ids >= 0).all()
            assert np.isfinite(scores).all()

    run(changes, saves, asks, asks)


def test_what_faiss_makes_at_the_first_need_is_made_once(gaussians):
    """The norms of the items."""
    queries = gaussians(1)
    index = Index.build(gaussians(600), "csd")
    found, vectors = [], []

    def asks():
        for _ in range(20):
            found.append(index.search(queries, 5)[1])
            vectors.append(index.answer_vectors(found[-1]))

    run(asks, asks, asks, asks)
    assert (np.array(found) == found[0]).all()
    assert (np.array(vectors) == vectors[0]).all()


def test_a_save_that_is_not_the_index_names_nothing(gaussians, tmp_path, monkeypatch):
    """A row that comes while the files are written, behind the lock's back."""
    old = Index.build(gaussians(20), "csd")
    old.save(tmp_path)
    new, write = Index.build(gaussians(30), "csd"), faiss.write_index

    def changed(index, path):
        write(index, path)
        index.add_with_ids(np.zeros((1, index.d), np.float32), np.array([77]))

    monkeypatch.setattr(storage.faiss, "write_index", changed)
    with pytest.raises(InputError, match="the index changed while it was written"):
        new.save(tmp_path)
    assert len(Index.load(tmp_path)) == 20
    assert len(list(tmp_path.glob("data-*"))) == 1


CONTAINER = """
import os, sys
os.getpid = lambda: 1
import numpy as np
from pathlib import Path
from zoo.search import Index, built
from zoo.files.atomic import write_text
folder, number = Path(sys.argv[1]), int(sys.argv[2])
points = {"mean": np.random.default_rng(number).normal(size=(20 + number, 4)).astype("float32")}
index = Index.build(points, "euclidean")
for _ in range(12):
    index.save(folder / "index")
    with built.locked(folder / "out", 60) as written:
        where = built.fresh(written, built.INDEX)
        index.save(where)
        built.claim_beside(where, built.NAMES)
        built.write_names(where, {0: f"of {number}"})
        built.commit(written, {"index": where.name})
    assert len(Index.load(folder / "index")) in (20, 21)
    _, names, found, *_ = built.load(folder / "out")
    assert names[0] == f"of {len(found) - 20}"
"""


def test_two_containers_save_and_load_in_one_folder(tmp_path):
    """Processes of one number, as in containers on one volume."""
    processes = [forked.start(CONTAINER, tmp_path, number) for number in range(2)]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert not list(tmp_path.rglob(".tmp-*"))
    assert len(list(tmp_path.rglob("data-*"))) == 2
