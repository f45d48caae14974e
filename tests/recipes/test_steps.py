"""The training step of every recipe as a TPU needs it: fixed shapes, nothing asked of the host."""

import importlib

import pytest
import tensorflow as tf

import halo_search.cli.main
from zoo import training

FLAGS = {"own_vectors": ("--method=pcmepp",)}
WITH_DATA = {"own_pairs"}  # whose frozen networks read pictures of 240 pixels
ON_HOST = ("PyFunc", "EagerPyFunc", "PyFuncStateless", "Print", "PrintV2", "NumpyFunction")


class DoneError(Exception):
    """What is asked of a recipe's step is answered, and nothing is left to do."""


def of_fixed_shapes(phase, dataset):
    for name, spec in dataset.element_spec.items():
        assert spec.shape.is_fully_defined(), f"{phase}: {name} {spec.shape}"
    return dataset


def started(recipe, tmp_path, *flags):
    main = importlib.import_module(recipe).main
    with pytest.raises(DoneError):
        main(["--smoke", f"--out={tmp_path / 'run'}", *FLAGS.get(recipe, ()), *flags])


@pytest.mark.slow
def test_every_shape_of_a_batch_is_fixed(drawn_birds, tmp_path, monkeypatch):
    """The steps of all systems are compiled in tests/training/test_execution.py."""

    def run_phase(run, model, phase, stream, *_, **__):
        of_fixed_shapes(phase, stream(0))
        raise DoneError

    monkeypatch.setattr(training.Run, "run_phase", run_phase)
    small = ("--backbone=tiny", "--image-size=32", "--dim=8", "--word-dim=8", "--batch-size=8")
    started("pcme_cub", tmp_path, f"--data-dir={drawn_birds}", *small)


@pytest.mark.very_slow
@pytest.mark.parametrize(
    "recipe", [n for n in halo_search.cli.main.recipes() if n not in WITH_DATA]
)
def test_every_shape_is_fixed_and_the_host_is_not_called(recipe, tmp_path, monkeypatch):
    def run_phase(run, model, phase, stream, *_, **__):
        model.optimizer.build(model.trainable_variables)
        (batch,) = of_fixed_shapes(phase, stream(0)).take(1)
        step = tf.function(model.train_step, jit_compile=True)
        graph = step.get_concrete_function(batch).graph
        kinds = {node.op for node in graph.as_graph_def().node}
        kinds |= {node.op for one in graph.as_graph_def().library.function for node in one.node_def}
        assert not kinds & set(ON_HOST), phase
        program = step.experimental_get_compiler_ir(batch)(stage="hlo")
        assert "HloModule" in program
        assert "<=" not in program, f"{phase}: a dimension has a bound and no size"
        raise DoneError

    monkeypatch.setattr(training.Run, "run_phase", run_phase)
    started(recipe, tmp_path)
