"""The study of probes of other photos, on made vectors in the layout of the real ones."""

import numpy as np
import pytest

from studies import generic_probes as study

DIM = 16


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    """Rows of three models, of which one has photos beside its pairs."""
    folder = tmp_path_factory.mktemp("vectors")
    for seed, name in enumerate(study.CLIP):
        rng = np.random.default_rng(seed)
        images = rng.normal(size=(130, DIM))
        stored = {"images": images, "captions": images + 1.1 * rng.normal(size=images.shape)}
        if "b32" in name:
            stored["image_names"] = [f"{row}.jpg" for row in range(130)]
        np.savez(folder / f"{name}.npz", **stored)
    others = np.random.default_rng(9).normal(size=(400, DIM))
    names = [f"{row}.jpg" for row in range(100, 500)]  # of which 30 are among the pairs
    np.savez(folder / f"{study.OTHERS}.npz", images=others, image_names=names)
    return list(study.rows_of_clip(folder))


def test_the_photos_of_a_row_are_of_its_model(rows):
    for row in rows:
        gallery, probes, *more = row.draw(np.random.default_rng(0))
        count = len(gallery.image_labels) + len(probes.image_labels)
        assert count == (100 if "+" in row.probes else 130)
        assert (f"among {65 + 370}" in row.asked) == (len(more) == 2)
        everything = np.concatenate([gallery.images["mean"], probes.images["mean"]])
        known = np.random.default_rng(list(study.CLIP.values()).index(_of(row))).normal(
            size=(130, DIM)
        )
        assert np.isin(everything[:, 0], known[:, 0].astype(np.float16)).all()


def test_more_photos_are_harder_and_the_model_of_a_row_tells_nothing_of_its_interval(rows):
    alone, among = (
        next(row for row in rows if "its own" in row.probes and ("among" in row.asked) is wanted)
        for wanted in (False, True)
    )
    found = [study.answers(row, *row.draw(np.random.default_rng(1))) for row in (alone, among)]
    assert found[1].right < found[0].right
    narrow, wide = (found[0].judged(spread) for spread in (0.1, 2.0))
    assert narrow == wide  # its own probes: nothing is widened
    general = next(row for row in rows if row.is_general and "+" not in row.probes)
    found = study.answers(general, *general.draw(np.random.default_rng(1)))
    (_, low, high), (_, lower, higher) = (found.judged(spread) for spread in (0.1, 2.0))
    assert lower < low < high < higher


def _of(row):
    return row.model, row.asked.split(",")[0]
