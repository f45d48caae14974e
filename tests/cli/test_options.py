"""Options that do nothing, or cannot do what they say, are errors before anything opens."""

import socket
import sys
import time

import pytest

from halo_search.cli import hub_handles, query
from halo_search.cli.checks import check_model
from halo_search.cli.search import main, parser
from halo_search.errors import InputError, MissingPackageError


@pytest.fixture
def index(tmp_path):
    (tmp_path / "search.json").write_text("{}")
    return str(tmp_path)


def test_a_gallery_is_served_to_this_machine_unless_asked():
    assert parser().parse_args(["serve", "gallery"]).host == "127.0.0.1"
    assert parser().parse_args(["serve", "gallery", "--host", "0.0.0.0"]).host == "0.0.0.0"


@pytest.mark.parametrize("package", ["fastapi", "uvicorn"])
def test_a_server_without_its_packages_names_the_extra(index, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=rf"{package} .*\[serve\]"):
        main(["serve", index])


def test_a_row_goes_with_a_file_of_vectors(index):
    with pytest.raises(InputError, match="--row 3: needs --vector FILE"):
        main(["query", index, "a dog", "--row", "3"])


def test_a_model_is_looked_up_before_the_gallery_is_read(index, monkeypatch):
    monkeypatch.setattr(query.Retriever, "load", lambda *_, **__: pytest.fail("it is read"))
    with pytest.raises(InputError, match="--model: no such model: 'phtos_pfe'"):
        main(["query", index, "dog", "--model", "phtos_pfe"])


def test_a_file_of_questions_has_one(tmp_path):
    (tmp_path / "questions.txt").write_text("")
    with pytest.raises(InputError, match=r"--queries .*: expected a question a line, found none"):
        list(query._lines(str(tmp_path / "questions.txt")))


@pytest.mark.parametrize("name", ["", "  ", "a\0b"])
def test_a_model_has_a_name(name):
    with pytest.raises(InputError, match="expected a name, folder or handle of a model"):
        check_model(name)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("hf://", "must be hf://USER/MODEL"),
        ("hf://user", "must be hf://USER/MODEL"),
        ("kaggle://user/model", "must be kaggle://USER/MODEL/FRAMEWORK/VARIATION"),
        ("openai/birds", "did you mean 'hf://openai/birds'"),
        ("s3://bucket/model", "no such model"),
        ("x" * 5000, "no such model"),
    ],
)
def test_a_handle_is_looked_at_before_anything_is_imported(name, says):
    with pytest.raises(InputError, match=says):
        check_model(name)


@pytest.fixture
def empty_caches(tmp_path, monkeypatch):
    for name in ("HF_HUB_CACHE", "KAGGLEHUB_CACHE"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setattr("urllib.request.getproxies", lambda: {})
    return tmp_path


NAMES = ("hf://user/model", "kaggle://user/model/keras/base", "siglip2_base_patch16_224")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("is_silent", [False, True])
def test_without_a_network_a_handle_ends_in_two_seconds(name, is_silent, empty_caches, monkeypatch):
    def connect(*_):
        if is_silent:
            time.sleep(5)
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(hub_handles, "SECONDS", 0.2)
    monkeypatch.setattr(socket, "create_connection", connect)
    hub = "huggingface.co" if name.startswith("hf://") else "www.kaggle.com"
    began = time.monotonic()
    with pytest.raises(InputError, match=rf"the hub cannot be reached \({hub}: "):
        check_model(name)
    assert time.monotonic() - began < 2


@pytest.mark.parametrize("name", NAMES)
def test_a_model_that_was_fetched_needs_no_network(name, empty_caches, monkeypatch):
    (empty_caches / "models--user--model").mkdir()
    (empty_caches / "models" / "user" / "model").mkdir(parents=True)
    (empty_caches / "models" / "keras").mkdir()
    monkeypatch.setattr(hub_handles, "_why_unreachable", lambda address: "asked")
    check_model(name)


def test_a_proxy_is_asked_in_place_of_the_hub(empty_caches, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        address = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        monkeypatch.setattr("urllib.request.getproxies", lambda: {"https": address})
        check_model("hf://user/model")
