"""Registers the zoo's classes when Keras is first imported, so that `import zoo` need not wait.

Importing TensorFlow takes seconds, and a command's help or a wrong flag needs none of it. But
`keras.saving.load_model(path)` has to know every class of the zoo after `import zoo` alone. So
`import zoo` leaves a finder on `sys.meta_path`. It lets the import of Keras, or of the first room
of the zoo that needs Keras, finish, and then imports the others.
"""

import contextlib
import gc
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Callable, Iterator

from zoo.errors import InputError
from zoo.quiet import without_notes

LOUD = ("keras", "tensorflow")  # whose C++ libraries write notes while they are loaded


def when_keras_is_there(register: Callable[[], None]) -> None:
    """Calls `register` once: at once where Keras is imported already, else right after it is.

    Where a module of the zoo imports Keras, `register` waits until that module is whole, since
    what it imports may need it.
    """
    if "keras" in sys.modules:
        register()
    else:
        sys.meta_path.insert(0, _Finder(register))


@contextlib.contextmanager
def quick_and_quiet() -> Iterator[None]:
    """For the import of large libraries: without the collector and without TensorFlow's notes."""
    # Importing makes millions of objects and no garbage; to look for some among them took a
    # quarter of the time.
    collects = gc.isenabled()
    gc.disable()
    try:
        with without_notes():
            yield
    finally:
        if collects:
            gc.enable()


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, register):
        self.register = register
        self.depth = 0  # of imports that are watched

    def find_spec(self, name, path=None, target=None):
        watched = name in LOUD or (name.startswith("zoo.") and not self.depth)
        if not watched:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Watched(spec.loader, self)
        return spec

    def execute(self, loader, module):
        self.depth += 1
        try:
            loud = module.__name__ in LOUD
            with quick_and_quiet() if loud else contextlib.nullcontext(), _backend_named(module):
                loader.exec_module(module)
        finally:
            self.depth -= 1
        if not self.depth and "keras" in sys.modules and self in sys.meta_path:
            sys.meta_path.remove(self)
            self.register()


@contextlib.contextmanager
def _backend_named(module):
    try:
        yield
    except (ImportError, ValueError) as error:  # Keras' own names no variable to mend
        backend = os.environ.get("KERAS_BACKEND", "none")
        missing = getattr(error, "name", None)
        if module.__name__ != "keras" or not (isinstance(error, ValueError) or missing == backend):
            raise
        raise InputError(
            "KERAS_BACKEND, or keras.json, must name a backend that is installed, as tensorflow; "
            f"received {backend!r}: {error}"
        ) from error


class _Watched(importlib.abc.Loader):
    """A loader that tells the finder when its module is whole."""

    def __init__(self, loader, finder):
        self.loader, self.finder = loader, finder

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        # As if it had never been watched: others ask a module's loader for its source.
        module.__loader__ = module.__spec__.loader = self.loader
        self.finder.execute(self.loader, module)
