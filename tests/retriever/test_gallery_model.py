"""The model of a gallery: opened once, and only when it is needed."""

from halo_search.retriever import gallery_model
from halo_search.retriever.gallery_model import GalleryModel


def test_a_model_that_was_opened_is_not_opened_again(monkeypatch):
    opened = object()
    monkeypatch.setattr(gallery_model, "open_model", lambda model: opened)
    model = GalleryModel.of("a name")
    assert model.opened is opened
    assert model.light is opened
    assert GalleryModel.of(model) is model
