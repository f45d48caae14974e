"""Words, erased regions and elements: against the model asked directly."""

import numpy as np
import pytest

from demo import ambiguity, elements, erasing
from demo.erasing import Box
from zoo import encoders
from zoo.data.images import IMAGENET_MEAN

CAPTION = "a small bird with a red crown"


def _uncertainty(gallery, text):
    return float(gallery.model.uncertainty(gallery.model.encode_captions([text]))[0])


def test_each_word_is_left_out_once(gaussians):
    changes = ambiguity.examine(gaussians, CAPTION).removals
    assert [change["words"] for change in changes] == CAPTION.split()
    whole = _uncertainty(gaussians, CAPTION)
    for change in (changes[0], changes[5]):
        expected = _uncertainty(gaussians, change["caption"])
        assert change["uncertainty"] == pytest.approx(expected, abs=1e-6)
        assert change["change"] == pytest.approx(expected - whole, abs=1e-6)
    assert changes[5]["caption"] == "a small bird with a crown"
    assert ambiguity.examine(gaussians, "bird").removals == []


def test_additions_make_it_more_certain_and_come_from_the_gallery(gaussians):
    changes = ambiguity.examine(gaussians, CAPTION).additions
    assert changes
    assert [c["change"] for c in changes] == sorted(c["change"] for c in changes)
    said = " ".join(gaussians.captions)
    for change in changes:
        assert change["change"] < -gaussians.references["captions"].noticeable
        assert all(word in said for word in change["words"].split())
        assert not set(change["words"].split()) & set(CAPTION.split())
        assert change["uncertainty"] == pytest.approx(
            _uncertainty(gaussians, change["caption"]), abs=1e-6
        )


def test_omissions_leave_a_caption(gaussians):
    least = gaussians.references["captions"].noticeable
    found = []
    for caption in gaussians.captions[:40]:
        changes = ambiguity.examine(gaussians, caption).removals
        going = ambiguity.omissions(gaussians, changes, most=9)
        assert [c["change"] for c in going] == sorted(c["change"] for c in going)
        assert all(change in changes and change["change"] < -least for change in going)
        found += [change["words"].strip(".,") for change in going]
    assert found
    assert not {"bird", "a", "with"} & set(found)
    assert ambiguity.omissions(gaussians, []) == []


def test_kept_words(gaussians):
    text, value, share, sentence = ambiguity.keep_words(gaussians, CAPTION, [6, 1, 2, 99])
    assert text == "small bird crown"
    assert value == pytest.approx(_uncertainty(gaussians, text), abs=1e-6)
    assert share == gaussians.references["captions"].percentile(value)
    assert sentence == gaussians.references["captions"].sentence(value)
    assert ambiguity.keep_words(gaussians, CAPTION, [])[0] == ""


def test_caveats_name_unknown_words_and_odd_lengths(gaussians):
    (unknown,) = ambiguity.caveats(gaussians, "a small zebra with a red crown")
    assert "“zebra”" in unknown
    (short,) = ambiguity.caveats(gaussians, "bird")
    assert "This text has 1 word," in short
    assert ambiguity.caveats(gaussians, CAPTION) == []


def test_points_have_no_words_that_matter(points):
    assert ambiguity.examine(points, CAPTION).removals == []
    assert ambiguity.examine(points, CAPTION).additions == []


def test_erasing_fills_the_box_alone():
    pixels = np.full((50, 50, 3), 255, np.uint8)
    erased = erasing.erase(pixels, Box(20, 40, 50, 90))
    expected = pixels.copy()
    expected[20:, 10:35] = np.round(IMAGENET_MEAN)
    np.testing.assert_array_equal(erased, expected)
    assert (pixels == 255).all()


def test_the_effect_of_erasing(gaussians, photo):
    pixels = gaussians.encoders.pixels(photo.read_bytes())
    box = Box(20, 20, 60, 60)
    effect = erasing.effect(gaussians, pixels, box)
    both = gaussians.model.encode_images(np.stack([pixels, erasing.erase(pixels, box)]))
    expected = np.asarray(gaussians.model.uncertainty(both))
    assert [effect.before, effect.after] == pytest.approx(expected.tolist(), abs=1e-6)
    growing = erasing.growing(gaussians, pixels, box)
    assert growing[0] == pytest.approx(effect.before, abs=1e-6)
    assert growing[-1] > growing[0]  # of nearly nothing the model must be less certain
    changes = erasing.sweep(gaussians, pixels)
    corner = erasing.erase(pixels, Box(0, 0, 30, 30))
    expected = gaussians.encoders.uncertainty(gaussians.encoders.images([corner]))[0]
    assert changes[0, 0] == pytest.approx(expected - effect.before, abs=1e-6)


def test_points_have_no_effect_of_erasing(points, photo):
    pixels = points.encoders.pixels(photo.read_bytes())
    assert erasing.effect(points, pixels, Box(0, 0, 50, 50)).after is None
    assert erasing.sweep(points, pixels) is None


def test_elements_have_attention_and_the_nearest_caption(sets, photo):
    pixels = sets.encoders.pixels(photo.read_bytes())
    found = elements.describe(sets, pixels)
    assert [one["element"] for one in found] == [1, 2, 3]
    looking = encoders.with_attention(sets.model.image_encoder)
    output = looking(pixels[None].astype("float32"), training=False)
    attention = np.asarray(output["attention"])[0]
    unit = lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)  # noqa: E731
    own = unit(np.asarray(output["elements"])[0])
    cosines = np.einsum("kd,mld->kml", own, unit(sets.embeddings["captions"]["elements"]))
    for k, one in enumerate(found):
        weights = np.array(one["attention"])
        assert weights.ndim == 2
        np.testing.assert_allclose(weights.ravel(), attention[k], atol=1e-6)
        assert weights.sum() == pytest.approx(1, abs=1e-5)
        assert one["caption"] == sets.captions[cosines[k].max(axis=1).argmax()]
        assert one["cosine"] == pytest.approx(cosines[k].max(), abs=1e-5)


def test_only_sets_have_elements(gaussians, photo):
    with pytest.raises(ValueError, match="must embed images as sets"):
        elements.describe(gaussians, gaussians.encoders.pixels(photo.read_bytes()))
