from pathlib import Path

from zoo.files import cache_folder


def test_a_variable_moves_it(monkeypatch, tmp_path):
    monkeypatch.setenv("HALO_CACHE", str(tmp_path / "here"))
    assert cache_folder("toy_birds") == tmp_path / "here" / "toy_birds"
    assert not (tmp_path / "here").exists()


def test_without_it_the_user_has_one(monkeypatch, tmp_path):
    monkeypatch.delenv("HALO_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "halo-zoo"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder("a", "b") == Path("~/.cache/halo-zoo/a/b").expanduser()
