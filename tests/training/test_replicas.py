import json
import os
from pathlib import Path

import pytest

import forked
from clusters import clusters

SCRIPT = Path(__file__).parents[1] / "helpers" / "replicas.py"
# A sum over pairs with draws. Sets with terms between sides, a term of a second matrix, and so on
# depend on the other replica's rows in other ways: they are of `make test-slow`.
FIRST = ("pcme", "triplet, own negatives", "a last batch of one row")
SYSTEMS = ("dive", "daa", "pcmepp", "triplet")
PROPERTIES = (
    "pcmepp, own negatives",
    "batch normalization",
    "clipped",
    "mse of Keras",
    "validation",
)


def start(strategy, cases, **variables):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **variables}
    return forked.start(SCRIPT, strategy, *cases, env=environment)


def results(processes, timeout=900):
    try:
        done = [forked.finish(process, timeout) for process in processes]
    finally:
        for process in processes:
            process.kill()
    for one in done:
        assert one.returncode == 0, one.stderr
    return [json.loads(one.stdout.splitlines()[-1]) for one in done]


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(FIRST, marks=pytest.mark.slow, id="first"),
        pytest.param((*SYSTEMS, *PROPERTIES), marks=pytest.mark.very_slow, id="others"),
    ],
)
def test_two_replicas_of_one_process_reach_the_weights_of_one_device(cases):
    (found,) = results([start("mirrored", cases)])
    assert set(found) == set(cases)
    with_own_negatives = {k: found.pop(k) for k in list(found) if k.endswith("own negatives")}
    assert max(found.values()) < 1e-5, found
    # The same comparison notices when replicas see their own negatives only.
    assert with_own_negatives
    assert min(with_own_negatives.values()) > 1e-4, with_own_negatives


@pytest.mark.very_slow
def test_four_replicas_of_one_process_reach_the_weights_of_one_device():
    """Eight rows on four replicas; five, and then one, which leave some replicas without a row."""
    cases = ("pcme", "daa", "a last batch of one row", "validation", "triplet, own negatives")
    (found,) = results([start("mirrored:4", cases)])
    assert found.pop("triplet, own negatives") > 1e-4
    assert max(found.values()) < 1e-5, found


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(("triplet",), marks=pytest.mark.slow, id="first"),
        pytest.param(("pcme", *SYSTEMS[:3]), marks=pytest.mark.very_slow, id="others"),
    ],
)
def test_two_processes_reach_the_weights_of_one_device(cases):
    found = results([start("multi_worker", cases, TF_CONFIG=config) for config in clusters()])
    for of_worker in found:
        assert set(of_worker) == set(cases)
        assert max(of_worker.values()) < 1e-5, of_worker
