"""One TensorFlow process for all tests: quiet, seeded, and without a GPU's asynchrony."""

import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import keras
import pytest

from zoo.data import LOADERS
from zoo.similarities.base import REGISTERED

TESTS = pathlib.Path(__file__).parent
SHARED_DATA = TESTS.parent.parent / "shared" / "data"


@pytest.fixture(scope="session", autouse=True)
def _cache_of_their_own(tmp_path_factory):
    """What the zoo draws and stores must not come from, or go to, the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HALO_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


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
