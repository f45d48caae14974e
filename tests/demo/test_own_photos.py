"""One's own photos: read, counted, searched, and what is refused."""

import numpy as np
import pytest

from demo import limits, own_panel
from demo.service import Service


def test_photos_are_searched_as_the_gallery_is(gaussians, photo, tmp_path):
    paths = gaussians.image_paths[:17]  # one more than are embedded at once
    broken = tmp_path / "broken.jpg"
    broken.write_bytes(b"no picture")
    own, bad = own_panel.gallery_of(gaussians, [*paths, broken])
    assert bad == 1
    assert len(own.image_names) == 17
    expected = gaussians.take("images", slice(0, 17))["mean"]
    np.testing.assert_allclose(own.embeddings["images"]["mean"], expected, atol=1e-5)
    found = Service(own).find_images("a small red bird with a black crown")
    assert len(found["answer"]["results"]) == 8
    assert 0 < found["answer"]["probability"] < 1
    confidence = own.retriever("captions").confidence
    assert confidence.gallery.size == 17  # learnt among these photos


def test_too_many_or_no_photos_are_refused(gaussians, photo, tmp_path):
    with pytest.raises(limits.RefusedError, match="201 photos are too many: at most 200"):
        own_panel.gallery_of(gaussians, [photo] * 201)
    text = tmp_path / "notes.jpg"
    text.write_text("no picture")
    with pytest.raises(limits.RefusedError, match="None of these files is a picture"):
        own_panel.gallery_of(gaussians, [text])
