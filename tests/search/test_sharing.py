"""An index that threads share: readers together, a writer alone, and saves that are compared."""

import threading
import time

import faiss
import numpy as np
import pytest

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
