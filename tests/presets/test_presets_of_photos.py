from pathlib import Path

import pytest

import own_pairs
import zoo
from halo_search import presets
from tools import preset, preset_photos
from zoo.evaluation.retrieval import encode, evaluate
from zoo.training.run import Run

# Bytes of one on the disk, 10.7 MB of them probes with the bank, 1.7 MB towers. Deflated it was
# 47 MB, which a wheel makes of it again; a question then took .15 CPU-s longer.
MOST = 53e6


@pytest.fixture(scope="module", autouse=True)
def _there():
    if not set(preset_photos.NAMES) <= set(zoo.list_presets()):
        pytest.skip("the presets of photos are not in this checkout")


def size(folder):
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())


def test_they_are_small():
    sizes = [size(presets.folder_of(name)) for name in preset_photos.NAMES]
    assert sizes[0] <= MOST
    assert sizes[1] <= 1e4, "the points have no weights of their own"


@pytest.mark.very_slow
def test_they_give_the_figures_of_their_cards(shared_data, tmp_path, monkeypatch):
    monkeypatch.setenv("HALO_CACHE", str(tmp_path / "cache"))
    shown = zoo.list_presets()["photos_pfe"]["data"]
    options = {name: shown[name] for name in ("image_size", "resize")}
    data = {"loader": "pairs", "root": str(shared_data / "flickr8k"), **options}
    split = zoo.data.open(data, "test")
    for name in preset_photos.NAMES:
        model = zoo.from_preset(name)
        run = Run(None)
        run.read_features(*[own_pairs.stored(split, model)] * 3)
        heads = run.reader(model)
        encoded = encode(heads, run.test.records, run.test.source)
        found = next(iter(evaluate(heads, encoded, ("own",))["retrieval"].values()))
        card = zoo.list_presets()[name]
        for metric in (f"{side}_recall@{k}" for side in ("i2t", "t2i") for k in (1, 5, 10)):
            assert found[metric] == pytest.approx(card["metrics"][metric], abs=0.3), (name, metric)
        said = preset.said_by(zoo.evaluation.probes_of(name), heads.similarity, encoded)
        for direction, values in card["confidence"].items():
            assert said[direction] == pytest.approx(values, abs=0.02), (name, direction)
