import io
from types import SimpleNamespace

import numpy as np
from rich.console import Console

import synthetic_run
from zoo import metrics
from zoo.evaluation import printing, retrieval
from zoo.evaluation.printing import print_results
from zoo.metrics import evaluate_retrieval
from zoo.similarities import ClosedFormSampledDistance, Wasserstein2


def test_the_first_images_are_a_gallery_of_their_own():
    """As VSE++'s code validates: the first 5,000 captions of COCO's 25,000, and their images."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(12, 24)) + 3 * np.repeat(np.eye(12), 2, axis=1)
    found = retrieval.first_images(scores, synthetic_run.records(12, 2, labels=12), 4)
    truth = np.arange(4)[:, None] == np.repeat(np.arange(4), 2)
    assert found == metrics.evaluate_retrieval(scores[:4, :8], truth)
    whole = metrics.evaluate_retrieval(scores, np.arange(12)[:, None] == np.repeat(range(12), 2))
    assert found["rsum"] > whole["rsum"]  # what would be compared with the paper otherwise


def test_each_similarity_is_measured_by_its_own_ranking(monkeypatch):
    shown = synthetic_run.records(6, 2, labels=6)
    encoded = synthetic_run.encoded(shown)
    split = SimpleNamespace(records=shown, source=None, truth="known", true_matches=None)

    def all_scores(pairs, *_):
        return {"of": pairs.rows(0, 6)}

    monkeypatch.setattr(retrieval, "encode", lambda *_: encoded)
    monkeypatch.setattr(retrieval, "evaluate", lambda *_: {})
    monkeypatch.setattr(retrieval, "measure_pairs", all_scores)
    own, other = ClosedFormSampledDistance(), Wasserstein2()
    found, _ = retrieval.measure(SimpleNamespace(similarity=own), split, ("own", "wasserstein_2"))
    np.testing.assert_allclose(found["of"], own(encoded.images, encoded.captions), rtol=1e-4)
    by_other = found["by_similarity"]["wasserstein_2"]["of"]
    np.testing.assert_allclose(by_other, other(encoded.images, encoded.captions), rtol=1e-4)


def test_semantic_precision_is_printed_images_first(capsys):
    asp = {"asp": {"i2t": 31.0, "t2i": 42.0}}
    retrieval = {"csd": {"i2t_recall@1": 50.0, "t2i_recall@1": 50.0}}
    printing.show_results({"retrieval": retrieval, "split": "", "chance": None, **asp})
    assert "ASP i2t / t2i 31.0 / 42.0 %" in capsys.readouterr().out


def printed(*args, **kwargs):
    stream = io.StringIO()
    print_results(*args, **kwargs, console=Console(file=stream, width=80))
    return stream.getvalue()


def of_six(seed=0):
    rng = np.random.default_rng(seed)
    relevance = np.eye(6, 12, dtype=bool)
    return evaluate_retrieval(rng.random((6, 12)) + relevance, relevance, ks=(1, 5, 10))


def test_both_directions_with_every_metric():
    results = of_six()
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
    results = {"match probability": of_six(0), "mean only": of_six(1)}
    text = printed(results, chance={"i2t_r_precision": 3.03, "t2i_r_precision": 3.03})
    assert text.count("match probability") == 2  # its row and its RSUM
    (row,) = [line for line in text.splitlines() if line.lstrip().startswith("chance")]
    assert row.split()[1:] == ["image", "→", "text", "–", "–", "–", "3.0", "–", "–"]
    assert "…" not in text
