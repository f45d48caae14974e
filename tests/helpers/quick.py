"""Fixtures by which tests run faster than a user's program does.

A folder's `conftest.py`, or a file, names the ones that it uses; all other tests run as users do.
Each holds for one file at most, so that none leaks into the next.
"""

import pytest


@pytest.fixture(scope="module")
def unoptimized_graphs():
    """TensorFlow does not optimize graphs, which a test runs a few times and throws away."""
    import tensorflow as tf

    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    yield
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": False})


def _eagerly():
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


# For recipes that take two steps per phase, which cost less than to trace them. `pcme_cub` and
# `own_pairs` are tested in graphs, as is the step of every system.
run_eagerly = pytest.fixture(_eagerly, scope="module", name="run_eagerly")
one_eagerly = pytest.fixture(_eagerly, name="one_eagerly")  # for one test of a file


@pytest.fixture
def in_graphs():
    """For a test of many steps in a file that has `run_eagerly`."""
    import tensorflow as tf

    tf.config.run_functions_eagerly(False)
    yield
    tf.config.run_functions_eagerly(True)


@pytest.fixture(scope="module")
def packaged_once():
    """Packaged presets, which take seconds each, are read once by the process."""
    import quick_models

    with pytest.MonkeyPatch.context() as patch:
        quick_models.read_once(patch)
        yield


@pytest.fixture(scope="module")
def towers_once():
    """The ONNX towers of a model, which take seconds, are written once by the process."""
    import quick_models

    with pytest.MonkeyPatch.context() as patch:
        quick_models.write_once(patch)
        yield


@pytest.fixture(scope="module")
def without_towers():
    """Builds write no ONNX, which takes seconds; tests/towers/test_stored_towers.py does."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zoo.answering.keras_model.write_towers", lambda *_: (None, None))
        yield


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
