"""What isolates tests from each other and from the user: environment, cache, seeds, registries.

What makes tests faster than a user's program is in `tests/helpers/quick.py`; the folders and files
that use it say so.
"""

import ctypes
import gc
import os
import pathlib
import random
import resource

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
if "PYTEST_XDIST_WORKER" in os.environ:  # as many processes as cores: threads would only collide
    for name in ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")

import pytest

from quick import (  # noqa: F401  (fixtures that a test or a folder asks for)
    few_general_photos,
    in_graphs,
    one_eagerly,
    packaged_once,
    run_eagerly,
    towers_once,
    undecoded,
    unoptimized_graphs,
    without_towers,
)

TESTS = pathlib.Path(__file__).parent
SHARED_DATA = TESTS.parent.parent / "shared" / "data"
MUCH = 2**29


def pytest_collection_modifyitems(items):
    """Files with long tests come first, so that none is left alone at the end of two workers."""
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session", autouse=True)
def _cache_of_their_own(tmp_path_factory):
    """What the zoo draws and stores does not come from, or go to, the user's cache.

    Processes that share the tests share this cache, so that each thing is drawn once.
    """
    of_all = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        of_all = of_all.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HALO_CACHE", str(of_all / "cache"))
        yield


@pytest.fixture(scope="session")
def forget():
    """A function that gives the memory of forgotten models back when there is much of it.

    Models and their graphs are cycles, and the C library keeps what is freed; on Linux it can be
    asked to give it back. Either takes its time.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    kept = _resident()

    def forget():
        nonlocal kept
        if _resident() < kept + MUCH:
            return
        gc.collect()
        if trim is not None:
            trim(0)
        kept = _resident()

    return forget


@pytest.fixture(scope="module", autouse=True)
def _forgotten(forget):
    """What a file made goes when it ends, not at random."""
    yield
    forget()


def _resident():
    """Bytes of memory that this process has, or how much it had at most."""
    try:
        pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return pages * resource.getpagesize()


@pytest.fixture(autouse=True)
def _seeded():
    """Weights and layers take their seeds from `random`; no test draws by TensorFlow's own."""
    random.seed(0)


@pytest.fixture(autouse=True)
def _what_a_process_has_once():
    """A test that sets a policy, or registers a class or a loader, does so for itself alone."""
    import keras

    from zoo.data import LOADERS
    from zoo.similarities.base import REGISTERED

    registries = (REGISTERED, LOADERS)
    before = [dict(registry) for registry in registries]
    yield
    keras.config.set_dtype_policy("float32")
    for registry, entries in zip(registries, before, strict=True):
        if registry != entries:
            registry.clear()
            registry.update(entries)


@pytest.fixture
def error_of(capsys):
    """A function that makes a call, which ends with exit code 2, and returns what it says."""

    def error_of(call, *arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            call(*arguments)
        assert ended.value.code == 2
        return capsys.readouterr().err

    return error_of


@pytest.fixture(scope="session")
def golden():
    """Loads a file of tests/golden: outputs of the official codes on small random inputs."""
    import numpy as np

    def load(name):
        with np.load(TESTS / "golden" / f"{name}.dev.npz") as arrays:
            return dict(arrays)

    return load


@pytest.fixture(scope="session")
def shared_data():
    """Real data beside the checkout, which the project does not depend on."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the real data (../shared/data) is not beside this checkout")
    return SHARED_DATA
