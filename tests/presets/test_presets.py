"""Presets: files, precision, Toy Birds."""

import json
import time
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest

import zoo
from halo_search import presets
from halo_search.cli import hub_handles
from halo_search.errors import InputError
from tools import preset
from zoo.data.text.captions import WordTokenizer
from zoo.embeddings import as_embedding
from zoo.evaluation.retrieval import encode, evaluate


@pytest.fixture(scope="module")
def model():
    tokenizer = WordTokenizer(["bird", "red"], max_words=4)
    return zoo.models.pcme("tiny", tokenizer, dim=4, word_dim=4, image_size=16)


def test_saved_and_read_back(model, tmp_path):
    zoo.save_preset(model, tmp_path / "mine", {"system": "pcme"})
    loaded = zoo.from_preset(tmp_path / "mine")
    np.testing.assert_array_equal(
        model.encode_captions("red bird").mean(), loaded.encode_captions("red bird").mean()
    )
    assert json.loads((tmp_path / "mine" / "preset.json").read_text()) == {
        "name": "mine",
        "system": "pcme",
    }
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]


def test_keras_hubs_names_replace_and_read(model, tmp_path):
    model.save_to_preset(tmp_path / "mine")
    other = keras.models.clone_model(model)
    other.set_weights([weight + 1 for weight in model.get_weights()])
    other.save_to_preset(tmp_path / "mine")
    loaded = zoo.models.DualEncoder.from_preset(tmp_path / "mine")
    for ours, theirs in zip(other.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]


def _contents(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_only_a_preset_that_reads_back_replaces_another(model, tmp_path, monkeypatch):
    zoo.save_preset(model, tmp_path / "mine")
    before = _contents(tmp_path / "mine")
    write = keras.saving.save_model

    def other_weights(saved, folder, **options):
        clone = keras.models.clone_model(saved)
        write(clone, folder, **options)

    def cut_off(saved, folder, **options):
        write(saved, folder, **options)
        weights = folder / "model.weights.h5"
        weights.write_bytes(weights.read_bytes()[:-100])

    for broken, why in ((other_weights, "another model"), (cut_off, "does not read back")):
        monkeypatch.setattr(keras.saving, "save_model", broken)
        with pytest.raises(InputError, match=why):
            zoo.save_preset(model, tmp_path / "mine", overwrite=True)
        assert _contents(tmp_path / "mine") == before
        assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "beach.jpg").write_bytes(b"")
    with pytest.raises(InputError, match="only a preset is replaced"):
        zoo.save_preset(model, tmp_path / "photos", overwrite=True)
    for name in ("notes.txt", "index/photo.jpg", "assets/mine.txt"):
        path = tmp_path / "mine" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
        with pytest.raises(InputError, match=f"holds {name}, which this program did not write"):
            zoo.save_preset(model, tmp_path / "mine", overwrite=True)
        assert path.read_text() == "mine"
        path.unlink()
    assert (tmp_path / "photos" / "beach.jpg").exists()


def test_what_is_no_preset_is_named(tmp_path):
    with pytest.raises(InputError, match=r"^no such model: .*nowhere.*toy_birds_pcme"):
        zoo.from_preset(tmp_path / "nowhere")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "model.keras").write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(InputError, match=r"broken.model\.keras: not a model"):
        zoo.from_preset(broken)
    other = tmp_path / "other"
    other.mkdir()
    keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)]).save(other / "model.keras")
    with pytest.raises(InputError, match="expected a DualEncoder, received Sequential"):
        zoo.from_preset(other)


def test_a_preprocessor_is_of_a_backbone_alone():
    with pytest.raises(
        InputError, match="`preprocessor` needs a backbone that is given as a model"
    ):
        zoo.from_preset("toy_birds_pfe", preprocessor=keras.layers.Rescaling(1 / 255))


@pytest.fixture(scope="module")
def file(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "mine.keras"
    model.compile("adam")
    model.save(path)
    return path


def test_a_file_is_read_too_and_compiled_on_request(model, file, recwarn):
    loaded = zoo.from_preset(file)
    np.testing.assert_array_equal(
        model.encode_captions("red bird").mean(), loaded.encode_captions("red bird").mean()
    )
    assert not loaded.compiled
    assert not [warning for warning in recwarn if "optimizer" in str(warning.message)]
    assert zoo.from_preset(file, compile=True).compiled


def _members(path):
    with zipfile.ZipFile(path) as archive:
        return {one.filename: one.header_offset + 60 for one in archive.infolist()}


def test_one_flipped_bit_is_named_with_its_place(file, tmp_path):
    damaged = tmp_path / "mine.keras"
    for member, place in _members(file).items():
        content = bytearray(file.read_bytes())
        content[place] ^= 1
        damaged.write_bytes(content)
        with pytest.raises(InputError, match=rf"mine\.keras: not a model: damaged.*{member}"):
            zoo.from_preset(damaged)


def test_a_truncated_file_is_not_called_missing(file, tmp_path):
    (tmp_path / "mine.keras").write_bytes(file.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"mine\.keras: not a model: cut off"):
        zoo.from_preset(tmp_path / "mine.keras")
    (tmp_path / "weights.h5").write_bytes(b"")
    with pytest.raises(InputError, match=r"weights\.h5: not a model: expected a \.keras file"):
        zoo.from_preset(tmp_path / "weights.h5")


def test_the_presets_variances_know_what_says_little():
    name = "toy_birds_pfe"
    card = zoo.list_presets()[name]
    assert card["command"].startswith("python recipes/pfe_cub.py")
    folder = presets.folder_of(name)
    assert sum(path.stat().st_size for path in folder.iterdir()) <= 5_000_000
    model = zoo.from_preset(name)
    captions = (
        "a bird with a short bill.",
        "a bird with a red crown and a short bill.",
        "a small bird with a red crown, white wing bars, a yellow belly and a short bill.",
    )
    uncertainty = np.asarray(model.uncertainty(model.encode_captions(captions)))
    assert (np.diff(uncertainty) < 0).all()


@pytest.mark.very_slow  # as of the other presets
def test_the_presets_card_has_the_figures_of_its_model():
    name = "toy_birds_pfe"
    model, split = zoo.evaluation.open_run(name)
    encoded = zoo.evaluation.encode(model, split.records, split.source)
    found = zoo.evaluation.evaluate(model, encoded, ("own",))["retrieval"]["csd"]
    for key, value in zoo.list_presets()[name]["metrics"].items():
        assert found[key] == pytest.approx(value, abs=0.3), key  # weights are of half precision


def test_half_precision_halves_the_matrices_and_nothing_else(model, tmp_path):
    kept, notes = tmp_path / "probes.npz", tmp_path / "notes.txt"
    kept.write_text("{}")
    notes.write_text("of yours")
    zoo.save_preset(model, tmp_path / "whole")
    metrics = {"i2t_recall@1": 30.2, "nAUC": {"i2t": 0.4, "t2i": 0.5}}
    card = {"license": "Apache-2.0", "metrics": metrics}
    zoo.save_preset(model, tmp_path / "half", card, half_precision=True, files=[kept, notes])
    assert (tmp_path / "half" / "probes.npz").read_text() == "{}"
    sizes = [(tmp_path / name / "model.weights.h5").stat().st_size for name in ("whole", "half")]
    assert sizes[1] < 0.6 * sizes[0]
    loaded = zoo.from_preset(tmp_path / "half")
    for before, after in zip(model.weights, loaded.weights, strict=True):
        assert after.dtype == before.dtype
        exact = before.shape.rank is not None and len(before.shape) < 2
        np.testing.assert_allclose(after, before, rtol=0 if exact else 1e-3, atol=1e-7)
    text = (tmp_path / "half" / "README.md").read_text()
    assert "license: apache-2.0" in text
    assert "- i2t_recall@1: 30.2\n- nAUC: i2t 0.4, t2i 0.5\n" in text
    assert "## Files" not in text


def test_a_preset_of_a_hub(model, tmp_path, monkeypatch):
    preset_utils = pytest.importorskip("keras_hub.src.utils.preset_utils")
    model.compile("adam")
    zoo.save_preset(model, tmp_path / "mine", {"system": "pcme"})
    asked = []

    def download(repo_id, filename):
        asked.append((repo_id, filename))
        path = tmp_path / repo_id.rpartition("/")[2] / filename
        if not path.parent.is_dir():
            raise OSError("401 Client Error")
        if not path.exists():
            raise preset_utils.EntryNotFoundError(filename)
        return str(path)

    monkeypatch.setattr(preset_utils.huggingface_hub, "hf_hub_download", download)
    monkeypatch.setattr(hub_handles, "_why_unreachable", lambda address: None)
    loaded = zoo.from_preset("hf://someone/mine")
    np.testing.assert_array_equal(
        model.encode_captions("red bird").mean(), loaded.encode_captions("red bird").mean()
    )
    assert ("someone/mine", "model.weights.h5") in asked
    assert not loaded.compiled
    with pytest.raises(
        InputError, match=r"hf://someone/other: cannot be fetched: 401 .* give its path"
    ):
        zoo.from_preset("hf://someone/other")
    with pytest.raises(InputError, match="'kaggle://someone': a handle must be kaggle://USER/"):
        zoo.from_preset("kaggle://someone")


@pytest.mark.parametrize(
    "name",
    ["", " ", "a\0b", "x" * 5000, "hf://", "hf://user/model", "siglip_base_patch16_224"],
)
def test_what_is_no_model_ends_in_a_sentence_and_in_time(name, tmp_path, monkeypatch):
    for cache in ("HF_HUB_CACHE", "KAGGLEHUB_CACHE"):
        monkeypatch.setenv(cache, str(tmp_path))
    monkeypatch.setattr(hub_handles, "_why_unreachable", lambda address: "no network")
    zoo.list_presets()
    began = time.monotonic()
    with pytest.raises(InputError) as caught:
        zoo.from_preset(name)
    assert time.monotonic() - began < 2
    assert "\n" not in str(caught.value)


BIRDS = ("birds_infonce", "birds_pfe", "birds_dive")
QUESTIONS = Path(__file__).parent.parent / "questions" / "ordinary_birds.txt"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(n, marks=[] if n == "birds_pfe" else pytest.mark.very_slow) for n in BIRDS
    ],
)
def known(request):
    return request.param, zoo.from_preset(request.param), zoo.evaluation.probes_of(request.param)


def test_a_preset_of_birds_says_what_it_is(known):
    name, model, probes = known
    card = zoo.list_presets()[name]
    expected = {"trained_on", "command", "license", "terms", "not_for", "metrics", "chance"}
    assert expected <= set(card)
    folder = presets.folder_of(name)
    assert (folder / "model.weights.h5").stat().st_size <= 12_000_000
    texts = ["a small bright yellow bird", "this bird is yellow and small", "a large black bird"]
    captions = as_embedding(model.encode_captions(texts))
    scores = np.asarray(model.similarity(captions, captions))
    assert scores[0, 1] > scores[0, 2]
    assert probes.by_class
    assert set(probes.known) == {"i2t", "t2i"}
    assert len(probes.trained_on) > 1000


def test_a_preset_of_birds_understands_ordinary_questions(known):
    _, model, probes = known
    asked = QUESTIONS.read_text(encoding="utf-8").splitlines()
    answers = zoo.Retriever.build(model, probes.images).ask(asked)
    assert np.mean([answer.verdict != "not understood" for answer in answers]) >= 0.9
    assert all(answer.probability is not None for answer in answers if answer.verdict == "likely")


@pytest.mark.very_slow
@pytest.mark.parametrize("name", BIRDS)
def test_a_preset_of_birds_gives_the_figures_of_its_card(name, shared_data):
    root = shared_data / "CUB_200_2011_crops"
    model, test = zoo.evaluation.open_run(name, data_dir=root)
    encoded, card = encode(model, test.records, test.source), zoo.list_presets()[name]
    found = next(iter(evaluate(model, encoded, ("own",))["retrieval"].values()))
    for key, value in card["metrics"].items():
        assert found[key] == pytest.approx(value, abs=0.3), key
    said = preset.said_by(zoo.evaluation.probes_of(name), model.similarity, encoded)
    for direction, values in card["confidence"].items():
        assert said[direction] == pytest.approx(values, abs=0.02), direction
