"""A similarity as numbers scores as its layer does, and what is not such numbers says so."""

import json

import numpy as np
import pytest

import zoo
from zoo.search import Index, scoring
from zoo.search.scoring import Portable

S = zoo.similarities
DIRECT = (
    S.Cosine(scale=7.0),
    S.ClosedFormSampledDistance(scale=2.0, shift=3.0),
    S.Wasserstein2(),
    S.Wasserstein2(squared=True),
    S.SquaredEuclidean(scale=0.5),
    S.EuclideanDistance(),
    S.SquaredWasserstein2(),
    scoring.resolve("cosine"),
    scoring.resolve(S.wasserstein_2),
    scoring.resolve(S.closed_form_sampled_distance),
)


@pytest.mark.parametrize("similarity", DIRECT, ids=scoring.name_of)
def test_numbers_score_as_the_layer_does(similarity, gaussians, tmp_path):
    gallery, queries = gaussians(60), gaussians(20)
    index = Index.build(gallery, similarity)
    index.save(tmp_path)
    plain = Index.load(tmp_path, Portable)
    assert isinstance(plain.similarity, Portable)
    for found, expected in zip(plain.search(queries, 10), index.search(queries, 10), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    for found, expected in zip(
        plain.over_the_gallery(queries), index.over_the_gallery(queries), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    assert scoring.sign(plain.similarity) == scoring.sign(index.similarity)


def test_a_similarity_that_ranks_candidates_is_not_portable(gaussians, tmp_path):
    index = Index.build(gaussians(30), S.KLDivergence())
    assert Portable.of(index.similarity) is None
    index.save(tmp_path)
    assert json.loads((tmp_path / "index.json").read_text())["portable"] is None
    with pytest.raises(zoo.errors.InputError, match="its similarity"):
        Index.load(tmp_path, Portable)


def test_saving_again_keeps_the_layer(gaussians, tmp_path):
    Index.build(gaussians(30), S.Cosine(scale=7.0)).save(tmp_path / "a")
    plain = Index.load(tmp_path / "a", Portable)
    plain.add(gaussians(3))
    plain.save(tmp_path / "b")
    again = Index.load(tmp_path / "b")
    assert isinstance(again.similarity, S.Cosine)
    assert float(again.similarity.scale) == pytest.approx(7.0)
    assert len(again) == 33
