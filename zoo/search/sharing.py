"""A lock for an index that threads share: one after the other reads or changes it."""

import contextlib
import functools
import threading

from zoo.errors import InputError


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


def on_disk(method):
    """A method that reads files of its `folder`: an InputError if they are gone."""

    @functools.wraps(method)
    def told(self, *args, **kwargs):
        try:
            return method(self, *args, **kwargs)
        except (RuntimeError, ValueError) as error:
            if "Not found:" not in str(error):
                raise
            raise InputError(
                f"{self.folder}: its files are gone or were replaced; load the index again"
            ) from None

    return told
