"""An empty gallery is a gallery: asked, judged, saved, loaded, served, shown and added to."""

import asyncio
import json

import httpx
import numpy as np
import pytest

from halo_search import Retriever
from halo_search.cli.search import main
from halo_search.errors import InputError
from halo_search.photos import FOLDER
from halo_search.server import application as server

PHOTOS = sorted(FOLDER.glob("*.jpg"))[:2]


@pytest.fixture(scope="module")
def embeddings():
    return Retriever.build("photos_pfe", PHOTOS).tower("images").of_files(PHOTOS)


@pytest.fixture(params=["memory", "lance"])
def emptied(request, embeddings, tmp_path):
    retriever = Retriever.build("photos_pfe", embeddings, names=[path.name for path in PHOTOS])
    if request.param == "lance":
        lance = pytest.importorskip("halo_search.index.lance")
        index = lance.LanceIndex.build(tmp_path / "built", embeddings, retriever.similarity)
        retriever = retriever.over(index, {0: "a.jpg", 1: "b.jpg"})
    retriever.remove(retriever.index.ids)
    return retriever


def is_empty(answer):
    assert (answer.verdict, answer.reason) == ("nothing matches", "The gallery is empty.")
    assert (len(answer.ids), answer.probability, answer.fitting) == (0, None, 0)
    return str(answer).count("\n") == 0 and bool(json.dumps(answer.to_dict()))


def test_it_is_asked_and_says_so(emptied, embeddings):
    assert is_empty(emptied.ask("a dog"))
    assert is_empty(emptied.ask(PHOTOS[0]))
    assert all(map(is_empty, emptied.ask(["a dog", "a bus"])))
    assert all(map(is_empty, emptied.ask(embeddings)))
    page = emptied.all("a dog")
    assert (page.total, len(page.answer.ids)) == (0, 0)
    assert (len(emptied), emptied.confidence, emptied.hub_note()) == (0, None, None)
    assert len(emptied.index.ids) == len(emptied.index.vector_sample(5)) == 0
    with pytest.raises(ValueError, match="at least one item"):
        emptied.part([])
    with pytest.raises(ValueError, match="fits none"):
        emptied.ask("a dog", among="*")
    with pytest.raises(ValueError, match="the index is empty"):
        emptied.index.search(embeddings, 1)
    with pytest.raises(ValueError, match=r"`question` must|`queries` must"):
        emptied.ask({"mean": np.ones((1, 3))})


def test_it_is_saved_served_queried_and_added_to(emptied, embeddings, tmp_path, capsys):
    folder = tmp_path / "gallery"
    emptied.save(folder)
    emptied.save(folder)
    loaded = Retriever.load(folder)
    assert is_empty(loaded.ask("a dog"))
    names = sorted(path.name for path in folder.iterdir())
    assert [name.startswith("index") for name in names] == [False, True, False]

    async def ask_all():
        transport = httpx.ASGITransport(server.application(loaded))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            asked = await client.post("/ask", json={"question": "a dog"})
            return asked.json(), (await client.get("/health")).json()

    asked, health = asyncio.run(ask_all())
    assert (asked["reason"], asked["ids"]) == ("The gallery is empty.", [])
    assert health == {"status": "ok", "items": 0, "side": "images", "calibrated": False}
    main(["query", str(folder), "a dog"])
    assert "nothing matches (no probability) (asked: dog): The gallery is empty." in (
        capsys.readouterr().out
    )

    loaded.add(embeddings, names=[path.name for path in PHOTOS])
    assert len(loaded.ask("a dog").ids) == 2
    loaded.save(folder)
    assert len(Retriever.load(folder)) == 2


def test_a_save_that_fails_leaves_nothing_behind(emptied, tmp_path, monkeypatch):
    folder = tmp_path / "gallery"
    emptied.save(folder)
    before = sorted(path.name for path in folder.iterdir())

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("halo_search.index.built.write_names", fail)
    for _ in range(2):
        with pytest.raises(InputError, match="No space left"):
            emptied.save(folder)
    assert sorted(path.name for path in folder.iterdir()) == before
    assert is_empty(emptied.ask("a dog"))
    assert is_empty(Retriever.load(folder).ask("a dog"))


def test_it_is_shown(emptied, tmp_path):
    pytest.importorskip("gradio", reason="the extra 'demo' is not installed")
    from demo import routes, stored_index
    from demo.limits import RefusedError
    from demo.service import Service
    from demo.views import Views

    emptied.save(tmp_path / "gallery")
    gallery = stored_index.load(tmp_path / "gallery")
    service, about = Service(gallery), routes.about(Views([gallery]))
    assert (about["photos"], about["kind"], about["examples"]) == (0, "a Gaussian", [])
    for answer in (service.find_images("a dog"), service.find_all("a dog")):
        assert (answer["reason"], answer["results"]) == ("The gallery is empty.", [])
    assert service.photos() == service.similar_to(str(PHOTOS[0])) == []
    assert service.without_words("a dog")["without"] == [None, None]
    with pytest.raises(RefusedError, match="The gallery is empty"):
        service.reasons("a dog")
    with pytest.raises(RefusedError, match="holds photos and no captions"):
        service.find_captions(str(PHOTOS[0]))
