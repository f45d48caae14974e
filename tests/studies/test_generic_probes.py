"""The study of probes of other photos, on made vectors in the layout of the real ones."""

import numpy as np
import pytest

from studies import generic_probes as study

DIM = 16


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Rows of three models."""
    folder = tmp_path_factory.mktemp("vectors")
    for seed, name in enumerate(study.CLIP):
        rng = np.random.default_rng(seed)
        images = rng.normal(size=(130, DIM))
        stored = {"images": images, "captions": images + 1.1 * rng.normal(size=images.shape)}
        np.savez(folder / f"{name}.npz", **stored)
    return list(study.rows_of_clip(folder))


def test_the_photos_of_a_row_are_of_its_model(rows):
    for row in rows:
        gallery, probes, _ = row.draw(np.random.default_rng(0))
        count = len(gallery.image_labels) + len(probes.image_labels)
        assert count == (100 if "+" in row.probes else 130)
        everything = np.concatenate([gallery.images["mean"], probes.images["mean"]])
        known = np.random.default_rng(list(study.CLIP.values()).index(_of(row))).normal(
            size=(130, DIM)
        )
        assert np.isin(everything[:, 0], known[:, 0].astype(np.float16)).all()


def test_the_model_of_a_row_tells_nothing_of_its_interval(rows):
    own = next(row for row in rows if "its own" in row.probes)
    found = study.answers(own, *own.draw(np.random.default_rng(1)))
    narrow, wide = (found.judged(spread) for spread in (0.1, 2.0))
    assert narrow == wide  # its own probes: nothing is widened
    general = next(row for row in rows if row.is_general and "+" not in row.probes)
    found = study.answers(general, *general.draw(np.random.default_rng(1)))
    (_, low, high), (_, lower, higher) = (found.judged(spread) for spread in (0.1, 2.0))
    assert lower < low < high < higher


def _of(row):
    return row.model, row.asked.split(",")[0]
