"""A lock for an index that threads share: one after the other reads or changes it."""

import contextlib
import functools
import threading


class SharedLock:
    """Whoever reads or changes an index holds it alone; a thread may take it again. FAISS uses all
    cores for one search, so that readers beside each other would gain little."""

    def __init__(self):
        self._lock = threading.RLock()

    def reading(self) -> contextlib.AbstractContextManager:
        """Keeps other threads out while the block runs."""
        return self._lock

    writing = reading


def reads(method):
    """A method of an object with `reading()`, which it holds while it runs."""

    @functools.wraps(method)
    def locked(self, *args, **kwargs):
        with self.reading():
            return method(self, *args, **kwargs)

    return locked


changes = reads
