"""Systems that meet on stored features of real birds; here on Toy Birds."""

import json

import numpy as np
import pytest

import birds
import birds_systems
import zoo
from halo_search.errors import InputError
from tools import preset
from zoo.data import toy_birds
from zoo.models.run_folder import RunFolder

# Short captions, whose words a GRU reads one after the other.
SMALL = ["--smoke", "--max-words=6", "--dim=16", "--word-dim=8"]
# The other recipes' tests run its parts; test_reproduce.py runs it as it is.
pytestmark = [pytest.mark.usefixtures("run_eagerly"), pytest.mark.very_slow]


@pytest.fixture(scope="module", autouse=True)
def fewer_birds(tmp_path_factory):
    """A twelfth of Toy Birds in their place; 40 are tested, so one of them is 2.5 percent."""
    root = tmp_path_factory.mktemp("toy") / "birds"
    toy_birds.generate(root, num_classes=20, images_per_class=8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(toy_birds, "generate", lambda root_of_recipes: root)
        patch.setenv("HALO_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """VSE++ with semantic precision, which reads semantics of all views."""
    out = tmp_path_factory.mktemp("birds") / "run"
    results = birds.main([*SMALL, "--system=vsepp", "--daa-weight=1", f"--out={out}"])
    return RunFolder(out), results


def test_the_saved_model_reads_pictures_as_the_heads_read_features(run):
    folder, results = run
    model = zoo.from_preset(folder.path)
    split = zoo.data.open(folder.data, "test")
    encoded = zoo.evaluation.encode(model, split.records, split.source)
    found = zoo.evaluation.evaluate(model, encoded, ("own",))
    for key, value in results["retrieval"]["cosine"].items():
        assert found["retrieval"]["cosine"][key] == pytest.approx(value, abs=2.6), key  # one bird
    assert results["peak_memory_mib"] > 100
    assert results["cpu_seconds"] > 1


def test_a_preset_of_a_run_says_what_the_run_measured(run, tmp_path, capsys):
    folder, results = run
    about = tmp_path / "about.json"
    out = tmp_path / "mine"
    flags = [str(folder.path), str(out), "--about", str(about)]
    about.write_text(json.dumps({"license": "Apache-2.0"}))
    with pytest.raises(InputError, match="expected trained_on, command, license, terms, not_for"):
        preset.main(flags)
    about.write_text(json.dumps({name: name for name in preset.ABOUT}))
    preset.main(flags)
    assert "MB" in capsys.readouterr().out
    card = json.loads((out / "preset.json").read_text())
    own = results["retrieval"]["cosine"]
    assert card["metrics"]["i2t_r_precision"] == round(own["i2t_r_precision"], 2)
    assert card["system"] == "vsepp"
    text = ["a small red bird"]
    np.testing.assert_allclose(
        zoo.from_preset(out).encode_captions(text),
        zoo.from_preset(folder.path).encode_captions(text),
        atol=5e-3,
    )
    assert zoo.evaluation.data_of(out)["loader"] == "toy_birds"
    assert (zoo.evaluation.probes_of(out) is not None) == folder.probes_path.is_file()


@pytest.mark.very_slow  # test_settings_arrive.py builds each recipe's system
def test_every_system_trains_what_follows_its_backbone():
    split = zoo.data.open({"loader": "toy_birds"}, "validation")
    for system in birds_systems.BUILDERS:
        flags = [f"--system={system}", "--dim=4", "--word-dim=4", "--max-words=4"]
        settings = zoo.cli.parse(birds.Settings, flags)
        model = birds.build(settings, split)
        heads = zoo.encoders.head_alone(model.image_encoder)
        images = np.random.default_rng(0).uniform(0, 255, (2, 64, 64, 3)).astype("float32")
        features = model.image_encoder.get_layer("backbone")(images)
        for found, expected in zip(
            heads(features).values(), model.image_encoder(images).values(), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
