"""One small gallery for each kind of embedding, and one served page for all tests."""

import tempfile

import httpx
import pytest

pytest.importorskip("gradio", reason="the extra 'demo' is not installed")

import zoo
from demo import page, sources
from demo.gallery import Gallery
from demo.service import Service
from zoo import evaluation, models
from zoo.data import captions, cub, toy_birds
from zoo.models.run_folder import RunFolder


@pytest.fixture(scope="session")
def birds(tmp_path_factory):
    """A small Toy Birds folder: three unseen classes of six images, ten captions each."""
    root = tmp_path_factory.mktemp("demo") / "birds"
    return toy_birds.generate(root, seed=5, num_classes=12, images_per_class=6)


@pytest.fixture(scope="session")
def run_folder(birds, tmp_path_factory):
    """The packaged model as the run of a recipe on that folder, not yet finished."""
    path = tmp_path_factory.mktemp("demo") / "run"
    run = RunFolder.open(path, {}, data={"loader": "cub", "root": str(birds), "image_size": 64})
    run.save_model(zoo.from_preset("toy_birds_pfe"))
    evaluation.probes_of("toy_birds_pfe").save(run.probes_path)
    return path


@pytest.fixture(scope="session")
def gaussians(run_folder, tmp_path_factory):
    """The gallery of that run."""
    return sources.load(run_folder, cache=tmp_path_factory.mktemp("demo") / "cache")


@pytest.fixture(scope="session")
def service(gaussians):
    """The functions over that gallery."""
    return Service(gaussians)


def _untrained(birds, build):
    records = cub.load(birds, split="test", image_size=64, verbose=False).records
    tokenizer = captions.word_tokenizer(list(records.captions), max_words=20)
    model = build(tokenizer)
    asker = zoo.Retriever(model, None)
    paths = list(records.image_paths)
    embeddings = {
        "images": asker.tower("images").of_files(paths),
        "captions": asker.tower("captions").of_texts(records.captions),
    }
    names = [f"bird {i}" for i in range(len(paths))]
    return Gallery("birds", asker, names, paths, list(records.captions), embeddings, records)


@pytest.fixture(scope="session")
def points(birds):
    """A gallery of points: PCME's "μ only", which has match probabilities but no uncertainty."""

    def build(tokenizer):
        return models.pcme("tiny", tokenizer, dim=16, word_dim=8, image_size=64, covariance=None)

    return _untrained(birds, build)


@pytest.fixture(scope="session")
def sets(birds):
    """A gallery of sets of three elements, by DivE's builder."""

    def build(tokenizer):
        return models.dive(
            "tiny", tokenizer=tokenizer, dim=16, num_slots=3, word_dim=8, image_size=64
        )

    return _untrained(birds, build)


@pytest.fixture(scope="session")
def photo(birds):
    """The path of a picture."""
    return next((birds / "images").rglob("*.jpg"))


@pytest.fixture(scope="session")
def served(gaussians, points):
    """The page of the run's gallery beside an untrained model of points, on a free port:
    `(address, page, private folder)`."""
    points.model_name = "points"
    with tempfile.TemporaryDirectory() as private, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GRADIO_TEMP_DIR", private)
        built = page.build(gaussians, points)
        address = built.launch(wait=False, quiet=True)
        yield address.rstrip("/"), built, private
        built.close()


@pytest.fixture(scope="module")
def http(served):
    with httpx.Client(base_url=served[0], timeout=60) as client:
        yield client


@pytest.fixture(scope="module", autouse=True)
def _quick(packaged_once):
    """Packaged presets are read once."""
