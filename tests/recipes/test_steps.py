"""The training step of every recipe as a TPU needs it: fixed shapes, nothing asked of the host."""

import importlib

import pytest
import tensorflow as tf

import halo_zoo
from zoo import training

DEFAULT = "pcme_cub"  # the other recipes are of `make test-slow`
FLAGS = {"own_vectors": ("--method=pcmepp",)}
WITH_DATA = {"own_pairs"}  # which without data is own_pairs_gru
ON_HOST = ("PyFunc", "EagerPyFunc", "PyFuncStateless", "Print", "PrintV2", "NumpyFunction")


class CompiledError(Exception):
    """The step of a recipe is compiled, and nothing is left to do."""


@pytest.mark.parametrize(
    "recipe",
    [
        pytest.param(name, marks=pytest.mark.slow if name == DEFAULT else pytest.mark.very_slow)
        for name in halo_zoo.recipes()
        if name not in WITH_DATA
    ],
)
def test_every_shape_is_fixed_and_the_host_is_not_called(recipe, tmp_path, monkeypatch):
    def fit(run, model, phase, stream, *_, **__):
        model.optimizer.build(model.trainable_variables)
        dataset = stream(0)
        for name, spec in dataset.element_spec.items():
            assert spec.shape.is_fully_defined(), f"{phase}: {name} {spec.shape}"
        (batch,) = dataset.take(1)
        step = tf.function(model.train_step, jit_compile=True)
        graph = step.get_concrete_function(batch).graph
        kinds = {node.op for node in graph.as_graph_def().node}
        kinds |= {node.op for one in graph.as_graph_def().library.function for node in one.node_def}
        assert not kinds & set(ON_HOST), phase
        program = step.experimental_get_compiler_ir(batch)(stage="hlo")
        assert "HloModule" in program
        assert "<=" not in program, f"{phase}: a dimension has a bound and no size"
        raise CompiledError

    monkeypatch.setattr(training.Run, "fit", fit)
    main = importlib.import_module(recipe).main
    with pytest.raises(CompiledError):
        main(["--smoke", f"--out={tmp_path / 'run'}", *FLAGS.get(recipe, ())])
