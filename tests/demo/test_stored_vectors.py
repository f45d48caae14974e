"""A run on stored vectors: asked with its captions, since nothing here embeds words or pictures."""

import dataclasses

import numpy as np
import pytest

from demo import routes, sources, stored_index
from demo.limits import RefusedError
from demo.service import Service
from demo.views import Views
from halo_search.cli.search import main as search
from halo_search.errors import InputError
from recipes import own_vectors

ITEMS, TESTED, DIM = 120, 40, 16


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The run of vectors whose captions lie near their images, calibrated on 72 of them."""
    folder = tmp_path_factory.mktemp("vectors")
    rng = np.random.default_rng(0)
    images = rng.normal(size=(ITEMS, DIM))
    np.save(folder / "images.npy", images)
    np.save(folder / "captions.npy", images + 0.9 * rng.normal(size=images.shape))
    splits = ["train"] * 8 + ["test"] * TESTED + ["validation"] * (ITEMS - TESTED - 8)
    np.save(folder / "splits.npy", splits)
    texts = "".join(f"caption number {i}\n" for i in range(ITEMS))
    (folder / "texts.txt").write_text(texts)
    files = {"images": "images.npy", "captions": "captions.npy", "splits": "splits.npy"}
    flags = [f"--{name}={folder / file}" for name, file in {**files, "texts": "texts.txt"}.items()]
    own_vectors.main([*flags, "--method=none", f"--out={folder / 'run'}"])
    return folder / "run"


@pytest.fixture(scope="module")
def service(run):
    return Service(sources.load(run))


def test_its_captions_are_what_is_asked(service):
    gallery = service.gallery
    answer = service.find_images(gallery.captions[3], results=5)
    expected = gallery.retriever("captions").ask(gallery.take("captions", [3]), 5)
    assert [one["item"] for one in answer["results"]] == expected.ids.tolist()
    assert answer["wanted"] == pytest.approx(expected.wanted)
    assert answer["expected"] is None  # which photos fit besides is not known
    with pytest.raises(RefusedError, match="reads vectors and no words: choose one"):
        service.find_images("a red bird")
    about = routes.about(Views([gallery]))
    assert about["ask"] == "Choose a caption"
    assert about["stored_captions"] == gallery.captions
    assert about["attending"] == []


def test_a_browser_fetches_its_pictures_from_their_addresses(service):
    paths = [f"https://example.org/{place} a.jpg" for place in range(TESTED)]
    gallery = dataclasses.replace(service.gallery, image_paths=paths)
    for one in Service(gallery).find_images(gallery.captions[3], results=5)["results"]:
        assert one["address"] == f"https://example.org/{one['item']}%20a.jpg"


def test_its_map_and_neighbours_need_no_pictures(service):
    items = service.map.items
    assert len(items["x"]) == TESTED
    assert service.map.question(service.gallery.of_words([service.gallery.captions[0]]))
    assert len(service.similar(2, 5)) == 5
    with pytest.raises(RefusedError, match="reads vectors and no pictures"):
        service.gallery.pixels("photo.jpg")


def test_an_index_of_it_names_the_run_to_show(run, tmp_path):
    search(["build", str(run.parent / "images.npy"), str(tmp_path / "index"), "--model", str(run)])
    with pytest.raises(InputError, match=f"nothing can be asked; show its run, {run}"):
        stored_index.load(tmp_path / "index")
