"""One TensorFlow process for all tests: quiet, seeded, and quick to begin with small graphs."""

import ctypes
import gc
import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
os.environ.setdefault("MPLBACKEND", "Agg")
if "PYTEST_XDIST_WORKER" in os.environ:  # as many processes as cores: threads would only collide
    for name in ("TF_NUM_INTRAOP_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")

import keras
import pytest
import tensorflow as tf

from zoo.data import LOADERS
from zoo.similarities.base import REGISTERED

TESTS = pathlib.Path(__file__).parent
SHARED_DATA = TESTS.parent.parent / "shared" / "data"


def pytest_collection_modifyitems(items):
    """Files with long tests come first, so that none is left alone at the end of two workers."""
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session", autouse=True)
def _cache_of_their_own(tmp_path_factory):
    """What the zoo draws and stores must not come from, or go to, the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HALO_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def _quick_to_begin():
    """A test makes a graph, runs it a few times and throws it away.

    To optimise it costs a third of the test, and the modules' millions of objects are in every
    full collection. `optimized_graphs` is for tests of what optimisation could change.
    """
    _optimize_graphs(False)
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


@pytest.fixture(scope="module", autouse=True)
def _forgotten():
    """Models and their graphs are cycles: what a file made goes when it ends, not at random.

    The C library keeps what is freed; on Linux it can be asked to give it back.
    """
    yield
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


@pytest.fixture(scope="module")
def optimized_graphs():
    """Graphs as a user has them, for the tests of a module."""
    _optimize_graphs(True)
    yield
    _optimize_graphs(False)


@pytest.fixture(scope="module")
def run_eagerly():
    """For recipes that take two steps a phase: to trace them would cost more than they do.

    `pcme_cub`, `own_pairs` and `birds` are tested in graphs, as is the step of every system.
    """
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def one_eagerly():
    """`run_eagerly` for one test of a module, the others of which make graphs."""
    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def in_graphs():
    """For a test of many steps in a module that has `run_eagerly`."""
    tf.config.run_functions_eagerly(False)
    yield
    tf.config.run_functions_eagerly(True)


def _optimize_graphs(do):
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": not do})


@pytest.fixture(autouse=True)
def _seeded():
    keras.utils.set_random_seed(0)


@pytest.fixture(autouse=True)
def _what_a_process_has_once():
    """A test that sets a policy, or registers a class or a loader, does so for itself alone."""
    registries = (REGISTERED, LOADERS)
    before = [dict(registry) for registry in registries]
    yield
    keras.config.set_dtype_policy("float32")
    for registry, entries in zip(registries, before, strict=True):
        if registry != entries:
            registry.clear()
            registry.update(entries)


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
