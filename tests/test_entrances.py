"""Nine entrances and six kinds of model: each works, or says one true sentence."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import halo_search
import own_pairs
import own_vectors
import released
import zoo
from demo import sources
from export import __main__ as export
from halo_search.cli import evaluate, hub_handles, search
from halo_search.errors import InputError
from hugging_face import write_siglip
from tiny_hub import siglip_pieces, tiny_hub
from zoo import cli
from zoo.data.text.captions import WordTokenizer
from zoo.models.run_folder import RunFolder

pytest.importorskip("keras_hub")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("few_general_photos")]
NAME = "siglip2_base_patch16_224"
CAPTIONS = ("a red bird", "two dogs", "snow on mountains", "an old town hall")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    folder = tmp_path_factory.mktemp("album")
    rows = ["image,caption,split"]
    splits = ("train", "train", "validation", "test")
    for row, (text, split) in enumerate(zip(CAPTIONS, splits, strict=True)):
        pixels = np.full((20, 24, 3), 60 * row, np.uint8)
        Image.fromarray(pixels).save(folder / f"{row}.png")
        rows.append(f"{row}.png,{text},{split}")
    (folder / "pairs.csv").write_text("\n".join(rows))
    return folder


@pytest.fixture(scope="module")
def models(photos, tmp_path_factory):
    """What a user types for each kind."""
    root = tmp_path_factory.mktemp("models")
    ours = zoo.models.pcme("tiny", WordTokenizer(["bird"], 4), dim=4, word_dim=4, image_size=16)
    zoo.save_preset(ours, root / "preset")
    data = {"loader": "pairs", "root": str(photos), "image_size": 16}
    RunFolder.open(root / "run", {}, data=data).save_model(ours)
    backbone, preprocessor = tiny_hub("siglip")
    backbone.save_to_preset(root / "keras_hub")
    preprocessor.save_to_preset(root / "keras_hub")
    (root / "hugging_face").mkdir()
    write_siglip(backbone, preprocessor, root / "hugging_face")
    about, shapes, _ = released.described("prolip_tiny")
    published = released.write(root / "published", released.weights(shapes), about["config"])
    (published / "spiece.model").write_bytes(siglip_pieces([" ".join(CAPTIONS)] * 3))
    kinds = ("preset", "run", "keras_hub", "hugging_face", "published")
    return {**{kind: str(root / kind) for kind in kinds}, "name": NAME}


KINDS = ("preset", "run", "name", "keras_hub", "hugging_face", "published")
GAUSSIANS = ("preset", "run", "published")


def from_preset(model, photos, out):
    assert zoo.from_preset(model).encode_captions(["two dogs"]) is not None


def tower(model, photos, out):
    found = halo_search.open_tower(model, "images").of_files([photos / "0.png"])
    assert np.isfinite(found["mean"]).all()


def retriever(model, photos, out):
    answer = zoo.Retriever.build(model, str(photos)).ask("two dogs", k=2)
    assert len(answer.ids) == 2


def search_build(model, photos, out):
    search.main(["build", str(photos), str(out / "index"), "--model", model])
    search.main(["query", str(out / "index"), "two dogs", "-k", "1"])


def demo(model, photos, out):
    gallery = sources.load(model, folder=photos, cache=out / "cache")
    assert len(gallery.image_names) == len(CAPTIONS)


def exported(model, photos, out):
    export.main([model, str(out / "served"), "--image-only", "--no-index"])
    assert (out / "served" / "1" / "saved_model.pb").is_file()


def stored_vectors(model, photos, out):
    flags = [f"--model={model}", f"--data-dir={photos}", f"--out={out / 'run'}"]
    settings = cli.parse(own_vectors.Settings, flags)
    split = zoo.data.open(own_vectors.describe_data(settings), "train")
    vectors = np.load(out / "run_vectors" / "captions.npy")
    assert len(vectors) == len(CAPTIONS)
    assert list(split.records.captions) == list(CAPTIONS[:2])
    again = own_vectors.describe_data(settings)  # the files are taken as they are
    assert again["images"] == str((out / "run_vectors" / "images.npy").resolve())


def variances(model, photos, out):
    flags = [f"--model={model}", f"--data-dir={photos}", f"--out={out / 'run'}"]
    settings, points = own_pairs.with_points_of_model(cli.parse(own_pairs.Settings, flags))
    assert settings.image_size == 16
    assert settings.resize == "stretch"
    assert zoo.models.pfe(points).encode_captions(["two dogs"]).variance().shape[0] == 1


def evaluated(model, photos, out):
    evaluate.main(["--model", model, "--pairs", str(photos), "--out", str(out / "metrics.json")])
    assert '"t2i_recall@1"' in (out / "metrics.json").read_text()


ENTRANCES = (
    from_preset,
    tower,
    retriever,
    search_build,
    demo,
    exported,
    stored_vectors,
    variances,
    evaluated,
)


@pytest.fixture
def offline(monkeypatch):
    """The hub's client as it fails without a network."""
    preset_utils = pytest.importorskip("keras_hub.src.utils.preset_utils")

    def unreachable(*_, **__):
        raise ConnectionError("Failed to resolve 'api.kaggle.com'")

    monkeypatch.setattr(preset_utils.kagglehub, "model_download", unreachable)
    # Commands look first; tests/cli/test_options.py.
    monkeypatch.setattr(hub_handles, "_why_unreachable", lambda address: None)


# `make test` asks each kind of the first two, which all others go through; what these do then has
# tests of their own.
def _pairs():
    for enter, kind in itertools.product(ENTRANCES, KINDS):
        is_quick = kind == "name" or enter in (from_preset, tower)
        is_quick |= (enter, kind) == (variances, "preset")
        yield pytest.param(
            enter,
            kind,
            marks=[] if is_quick else pytest.mark.very_slow,
            id=f"{enter.__name__}-{kind}",
        )


@pytest.mark.parametrize(("enter", "kind"), list(_pairs()))
def test_each_works_or_says_one_true_sentence(enter, kind, models, photos, tmp_path, offline):
    if kind == "name":
        said = (
            rf"^(--model )?{NAME}: cannot be fetched from kaggle://keras/siglip/.*: "
            r"the hub cannot be reached\. "
            "Without a network, fetch that folder on another machine and give its path$"
        )
    elif enter is variances and kind in GAUSSIANS:
        said = r"^--model .*: expected a model of points, over which .*; .* received a Gaussian$"
    else:
        enter(models[kind], photos, tmp_path)
        return
    with pytest.raises(InputError, match=said):
        enter(models[kind], photos, tmp_path)


@pytest.mark.parametrize(
    "kind",
    [
        "published",
        *(pytest.param(n, marks=pytest.mark.very_slow) for n in ("hugging_face", "preset")),
    ],
)
def test_a_handle_on_a_hub_is_its_folder(kind, models, tmp_path, monkeypatch):
    """KerasHub's own code asks for the files; only the network is another."""
    preset_utils = pytest.importorskip("keras_hub.src.utils.preset_utils")
    asked = []

    def download(repo_id, filename):
        asked.append(filename)
        path = Path(models[repo_id.partition("/")[2]]) / filename
        if not path.is_file():
            raise preset_utils.EntryNotFoundError(filename)
        return str(path)

    monkeypatch.setattr(preset_utils.huggingface_hub, "hf_hub_download", download)
    monkeypatch.setattr(hub_handles, "_why_unreachable", lambda address: None)
    handle = f"hf://someone/{kind}"
    retriever = zoo.Retriever.build(handle, np.zeros((3, 20, 20, 3), np.uint8))
    assert len(retriever.ask("two dogs", k=3).ids) == 3
    words = zoo.from_preset(models[kind]).encode_captions(["two dogs"])
    found = zoo.from_preset(handle).encode_captions(["two dogs"])

    def mean(embeddings):
        return np.asarray(embeddings.mean() if hasattr(embeddings, "mean") else embeddings)

    np.testing.assert_allclose(mean(found), mean(words), atol=1e-6)
    assert ("spiece.model" in asked) == (kind != "preset")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("siglip2_base_patch16_225", "'siglip2_base_patch16_256'"),
        (
            "SanghyukChun/ProLIP-ViT-B-16-DC-1B-12_8B",
            "'hf://SanghyukChun/ProLIP-ViT-B-16-DC-1B-12_8B'",
        ),
        ("photos_pfee", "'photos_pfe'"),
        ("{root}/publish", "'{root}/published'"),
    ],
)
def test_a_wrong_name_lists_the_kinds_and_the_nearest(name, near, models):
    root = str(Path(models["published"]).parent)
    with pytest.raises(InputError) as caught:
        zoo.from_preset(name.format(root=root))
    said = str(caught.value)
    for kind in ("photos_pfe", "siglip2_base_patch16_224", ".keras", "Hugging Face", "published"):
        assert kind in said
    assert said.endswith(f"did you mean {near.format(root=root)}?")
    assert "\n" not in said
