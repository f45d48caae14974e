import io

import numpy as np
from rich.console import Console

from zoo.evaluation.printing import print_results
from zoo.metrics import evaluate_retrieval


def printed(*args, **kwargs):
    stream = io.StringIO()
    print_results(*args, **kwargs, console=Console(file=stream, width=80))
    return stream.getvalue()


def metrics(seed=0):
    rng = np.random.default_rng(seed)
    relevance = np.eye(6, 12, dtype=bool)
    return evaluate_retrieval(rng.random((6, 12)) + relevance, relevance, ks=(1, 5, 10))


def test_both_directions_with_every_metric():
    results = metrics()
    text = printed(results, title="Toy Birds")
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "Toy Birds" in text
    assert "direction R@1 R@5 R@10 R-P mAP@R queries" in lines
    for direction, name in (("i2t", "image → text"), ("t2i", "text → image")):
        keys = ("recall@1", "recall@5", "recall@10", "r_precision", "map@r")
        values = " ".join(f"{results[f'{direction}_{key}']:.1f}" for key in keys)
        assert f"{name} {values} 6" in lines
    assert f"RSUM: {results['rsum']:.1f}" in text
    assert "left out: 6 queries without a positive" in text


def test_several_results_and_chance_fit_on_a_terminal():
    results = {"match probability": metrics(0), "mean only": metrics(1)}
    text = printed(results, chance={"i2t_r_precision": 3.03, "t2i_r_precision": 3.03})
    assert text.count("match probability") == 2  # its row and its RSUM
    (row,) = [line for line in text.splitlines() if line.lstrip().startswith("chance")]
    assert row.split()[1:] == ["image", "→", "text", "–", "–", "–", "3.0", "–", "–"]
    assert "…" not in text
