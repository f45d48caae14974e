"""A model without probes is calibrated on the package's photos, or on a folder of one's own."""

import numpy as np
import pytest

import zoo
from colour_model import colour_model, pixel_model
from halo_search.cli.search import main
from halo_search.confidence.probes import GENERAL, OFF
from halo_search.errors import InputError
from zoo.data import packaged_captions, packaged_photos

NOTE = f"by {OFF[1]} at most in 9 of 10."
QUESTION = "a dog lies on the grass with a ball in its mouth"


@pytest.fixture(scope="module", autouse=True)
def _a_third_of_the_photos():
    """They teach as all of them do."""
    third = packaged_photos()[:60]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("zoo.evaluation.probes.packaged_photos", lambda: third)
        yield


@pytest.fixture(scope="module")
def model():
    photos = packaged_photos()
    return pixel_model(photos[:60] + photos[-30:], packaged_captions())


@pytest.fixture(scope="module")
def retriever(model):
    return zoo.Retriever.build(model, packaged_photos()[:24])


@pytest.fixture
def folder(tmp_path):
    """Thirty photos with their captions in text files."""
    there = tmp_path / "own"
    there.mkdir()
    for photo in packaged_photos()[-30:]:
        (there / photo.name).write_bytes(photo.read_bytes())
        told = "\n".join(packaged_captions()[photo.name])
        (there / photo.name).with_suffix(".txt").write_text(told, encoding="utf-8")
    return there


def test_every_packaged_photo_has_five_captions():
    captions = packaged_captions()
    assert set(captions) == {photo.name for photo in packaged_photos()}
    assert {len(texts) for texts in captions.values()} == {5}
    assert all(text.strip() == text and text for texts in captions.values() for text in texts)


def test_a_model_without_probes_gives_a_probability_and_says_by_what(retriever):
    answer = retriever.ask(QUESTION)
    assert 0 < answer.probability < 1
    assert 0 < answer.wanted < 1
    assert answer.reason.endswith(NOTE)
    assert f"{GENERAL}, which was off by {OFF[0]} on average" in answer.reason
    low, high = answer.interval
    assert low <= answer.probability <= high
    assert retriever.probes.fits.keys() == {"t2i", "i2t"}  # none of scores corrected for hubs
    assert retriever.judge.cut is None  # of other photos nothing is promised
    assert retriever.probes.whole.all()  # each photo asks with all of its captions beside it


def test_saved_and_loaded(retriever, tmp_path, monkeypatch):
    answer = retriever.ask(QUESTION)
    retriever.save(tmp_path / "saved")
    monkeypatch.setattr("zoo.evaluation.probes.general_probes", None)  # not made again
    again = zoo.Retriever.load(tmp_path / "saved").ask(QUESTION)
    assert again.probability == pytest.approx(answer.probability, abs=1e-5)
    assert again.reason == answer.reason


def test_a_folder_of_ones_own_stands_beside_them(model, retriever, folder):
    own = zoo.Retriever.build(model, packaged_photos()[:24], probes=retriever.probes)
    wide = retriever.confidence.in_gallery.deviation
    confidence = own.calibrate(folder)
    assert confidence.in_gallery.deviation < wide
    assert "general photos and 30 of your own; with 30 it was off" in own.ask(QUESTION).reason
    own.calibrate(str(folder))  # in place of the first
    assert len(own.probes.image_labels) == 90
    assert own.confidence.in_gallery.deviation == confidence.in_gallery.deviation


def test_a_model_that_does_not_know_the_words_is_not_calibrated_on_them():
    model = colour_model(["a red bird", "a blue bird with a long beak"])
    asked = zoo.Retriever.build(model, packaged_photos()[:24]).ask("a red bird")
    assert asked.probability is None
    assert "the model has no probes" in asked.reason


def test_a_bad_folder_is_one_error(retriever, folder, tmp_path):
    before = retriever.probes
    with pytest.raises(InputError, match="no such file or folder"):
        retriever.calibrate(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"expected pairs\.csv"):
        retriever.calibrate(tmp_path / "empty")
    with pytest.raises(ValueError, match="go with embeddings, not a folder"):
        retriever.calibrate(folder, groups=np.arange(3))
    next(folder.glob("*.jpg")).write_bytes(b"no picture")
    with pytest.raises(InputError, match="jpg"):
        retriever.calibrate(folder)
    assert retriever.probes is before


@pytest.mark.usefixtures("few_general_photos")
def test_the_command_takes_the_folder(model, folder, tmp_path, capsys):
    model.save(tmp_path / "colours.keras")
    out = tmp_path / "index"
    source, name = str(folder), str(tmp_path / "colours.keras")
    main(["build", source, str(out), "--model", name, "--pairs", str(folder)])
    told = capsys.readouterr().out
    assert "a text file beside each picture" in told
    assert "Calibrated on general photos and 30 of your own" in told
    main(["query", str(out), QUESTION])
    assert "Calibrated on general photos and 30 of your own" in capsys.readouterr().out
    with pytest.raises(InputError, match=r"--pairs .*nowhere: no such file or folder"):
        main(["build", source, str(tmp_path / "new"), "--model", name, "--pairs", "nowhere"])
    assert not (tmp_path / "new").exists()  # said before anything is encoded
