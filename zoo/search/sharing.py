"""A lock for an index that threads share: many read at once, one changes alone."""

import contextlib
import functools
import threading
from collections.abc import Iterator


class SharedLock:
    """Any number of readers, or one writer. A thread may take it again, and a writer may read; a
    reader cannot become a writer: two that tried would wait for each other forever."""

    def __init__(self):
        # Held by a writer until it ends, and by readers while they enter: whoever waits for it has
        # the same chance, so neither readers nor writers keep the others out.
        self._entrance = threading.Lock()
        self._left = threading.Condition(threading.Lock())
        self._readers = 0
        self._own = threading.local()

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Keeps writers out while the block runs."""
        depth = getattr(self._own, "depth", 0)
        if not depth:
            with self._entrance, self._left:
                self._readers += 1
        self._own.depth = depth + 1
        try:
            yield
        finally:
            self._own.depth = depth
            if not depth:
                with self._left:
                    self._readers -= 1
                    self._left.notify_all()

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Keeps readers and other writers out; a RuntimeError if this thread is reading."""
        if getattr(self._own, "writes", False):
            yield
            return
        if getattr(self._own, "depth", 0):
            raise RuntimeError("an index cannot be changed by the thread that is reading it")
        with self._entrance:
            with self._left:
                self._left.wait_for(lambda: not self._readers)
            self._own.writes, self._own.depth = True, 1
            try:
                yield
            finally:
                self._own.writes, self._own.depth = False, 0


def reads(method):
    """A method of an object with `reading()`, which it holds while it runs."""

    @functools.wraps(method)
    def locked(self, *args, **kwargs):
        with self.reading():
            return method(self, *args, **kwargs)

    return locked


def changes(method):
    """A method of an object with `writing()`, which it holds while it runs."""

    @functools.wraps(method)
    def locked(self, *args, **kwargs):
        with self.writing():
            return method(self, *args, **kwargs)

    return locked
