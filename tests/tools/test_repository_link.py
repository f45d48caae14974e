import subprocess

import pytest

from tools.repository_link import repository


def test_variables_come_first(tmp_path):
    given = {"REPOSITORY_URL": "https://example.org/zoo", "GITHUB_REPOSITORY": "me/zoo"}
    assert repository(given, tmp_path) == "https://example.org/zoo"
    assert repository({"GITHUB_REPOSITORY": "me/zoo"}, tmp_path) == "https://github.com/me/zoo"


@pytest.mark.parametrize(
    "origin",
    ["git@example.org:me/zoo.git", "ssh://git@example.org/me/zoo", "https://example.org/me/zoo"],
)
def test_then_the_origin_as_a_page(tmp_path, origin):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "remote", "add", "origin", origin], check=True)
    assert repository({}, tmp_path) == "https://example.org/me/zoo"


def test_else_the_checkout(tmp_path):
    assert repository({}, tmp_path) == tmp_path.resolve().as_uri()
