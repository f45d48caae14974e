"""What a retriever remembers of the folders that it was loaded from and saved in."""

import pytest

from halo_search.errors import InputError
from halo_search.retriever.gallery_folder import History

SETUP = {"model": "m", "parts": {"folder": "p"}, "build": {"source": "s"}, "index": "a", "files": 1}


def test_a_save_where_it_was_loaded_from_says_again_how_it_was_built(tmp_path):
    history = History()
    history.was_loaded(tmp_path, SETUP, by_its_model=True)
    assert history.setup_in(tmp_path) == {name: SETUP[name] for name in ("model", "parts", "build")}
    assert history.setup_in(tmp_path / "other") == {}
    history.items_changed()
    assert history.setup_in(tmp_path) == {"model": "m", "build": {"source": "s"}}


def test_by_another_model_nothing_is_said_again(tmp_path):
    history = History()
    history.was_loaded(tmp_path, SETUP, by_its_model=False)
    assert history.setup_in(tmp_path) == {}


def test_what_others_saved_since_is_refused(tmp_path):
    history = History()
    history.check(tmp_path, SETUP)
    history.was_loaded(tmp_path, SETUP, by_its_model=True)
    history.check(tmp_path, {**SETUP, "model": "n"})
    changed = {**SETUP, "index": "b"}
    history.check(tmp_path / "other", changed)
    with pytest.raises(InputError, match="another process has saved"):
        history.check(tmp_path, changed)
    history.was_saved(tmp_path, changed)
    history.check(tmp_path, changed)
