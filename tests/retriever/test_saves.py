"""Saves beside other saves, and folders whose parts are of another gallery."""

import shutil

import pytest

from halo_search import Retriever
from halo_search.photos import FOLDER

PHOTOS = sorted(FOLDER.glob("*.jpg"))[:2]


@pytest.fixture(scope="module")
def embeddings():
    return Retriever.build("photos_pfe", PHOTOS).tower("images").of_files(PHOTOS)


def test_a_save_does_not_undo_anothers(embeddings, tmp_path):
    folder = tmp_path / "gallery"
    names = [path.name for path in PHOTOS]
    Retriever.build("photos_pfe", embeddings, names=names).save(folder)
    first, second = Retriever.load(folder), Retriever.load(folder)
    first.remove([0])
    first.save(folder)
    first.save(folder)
    second.remove([1])
    with pytest.raises(ValueError, match="another process has saved this index since"):
        second.save(folder)
    assert Retriever.load(folder).index.ids.tolist() == [1]


def test_an_index_of_another_gallery_is_not_taken(embeddings, tmp_path):
    for name in ("a", "b"):
        found = embeddings if name == "a" else {k: v[::-1] for k, v in embeddings.items()}
        Retriever.build("photos_pfe", found, names=["1", "2"]).save(tmp_path / name)
    shutil.rmtree(tmp_path / "a" / "index")
    shutil.copytree(tmp_path / "b" / "index", tmp_path / "a" / "index")
    with pytest.raises(ValueError, match="is damaged: its checksum is another"):
        Retriever.load(tmp_path / "a")
