"""One TensorFlow process for all tests: quiet, seeded, its small graphs not optimized."""

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

gc.disable()  # what is imported stays; `_few_objects` begins
TESTS = pathlib.Path(__file__).parent
SHARED_DATA = TESTS.parent.parent / "shared" / "data"
MUCH = 2**29


def pytest_configure(config):
    """The process that hands out the tests to others runs none, and imports no TensorFlow."""
    if not config.getoption("numprocesses", None):
        _without_optimizing()


def _without_optimizing():
    """A test makes a graph, runs it a few times and throws it away.

    To optimise it costs a third of the test. Said before TensorFlow begins, this holds for the
    functions of `tf.data` too, which `optimized_graphs` cannot change back; processes of their own
    (`forked`) have all as users do.
    """
    import tensorflow as tf

    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


def pytest_collection_modifyitems(items):
    """Files with long tests come first, so that none is left alone at the end of two workers."""
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session", autouse=True)
def _cache_of_their_own(tmp_path_factory):
    """What the zoo draws and stores must not come from, or go to, the user's cache.

    Processes that share the tests share it: what one has drawn the other finds.
    """
    of_all = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        of_all = of_all.parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HALO_CACHE", str(of_all / "cache"))
        yield


@pytest.fixture(scope="session", autouse=True)
def _few_objects():
    """The modules' millions of objects would be in every full collection."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _packaged_once():
    """A dozen files read the same presets, which takes seconds each; what is read is the same.

    Besides this, all tests change only the graph optimizer for speed.
    """
    import quick_models

    with pytest.MonkeyPatch.context() as patch:
        quick_models.read_once(patch)
        yield


@pytest.fixture(scope="session")
def towers_once():
    """Four files write the towers of one preset, which takes seconds each."""
    import quick_models

    with pytest.MonkeyPatch.context() as patch:
        quick_models.write_once(patch)
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
        gc.freeze()  # what is left stays: graphs that TensorFlow keeps, and what sessions share
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


@pytest.fixture(scope="module")
def optimized_graphs():
    """Graphs as a user has them, for the tests of a module."""
    import tensorflow as tf

    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})
    yield
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


def _eagerly():
    """For recipes that take two steps a phase: to trace them would cost more than they do.

    `pcme_cub` and `own_pairs` are tested in graphs, as is the step of every system.
    """
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


run_eagerly = pytest.fixture(_eagerly, scope="module", name="run_eagerly")
one_eagerly = pytest.fixture(_eagerly, name="one_eagerly")  # for one test of a module


@pytest.fixture
def in_graphs():
    """For a test of many steps in a module that has `run_eagerly`."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(False)
    yield
    tf.config.run_functions_eagerly(True)


@pytest.fixture(autouse=True)
def _seeded():
    """Weights and layers take their seeds from `random`; no test draws by TensorFlow's own.

    A new seed of TensorFlow's throws away the kernels of all operations that have run eagerly, and
    to make them again costs a test a tenth of its time.
    """
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


@pytest.fixture
def undecoded(monkeypatch):
    """For what looks at no picture: a pipeline that decodes is built for every split."""
    from zoo.data.records import sources

    monkeypatch.setattr(sources.Pictures, "_decode_all", lambda pictures: None)


@pytest.fixture
def few_general_photos(monkeypatch):
    """Thirty of the photos by which a model without probes is calibrated.

    More of them teach what else fits a question, in ten seconds a model:
    tests/retriever/test_general_probes.py.
    """
    from zoo.evaluation import probes

    few = probes.packaged_photos()[:30]
    monkeypatch.setattr(probes, "packaged_photos", lambda: few)


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
