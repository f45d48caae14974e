"""No command calls out: whom each looks up, and what it leaves at home, in a home of its own."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from html.parser import HTMLParser

import pytest

from processes import python
from watched import Watched
from zoo.data import toy_birds

pytestmark = pytest.mark.slow
# What Keras writes at its first import: docs/reference/cli.md names both.
KERAS = {".keras/keras.json"}
FONTS = re.compile(r"\.cache/matplotlib/fontlist-v[\d.]+\.json")


def left(home):
    """What is at home but the files of Keras that the docs name."""
    return [path for path in home.written if path not in KERAS and not FONTS.fullmatch(path)]


def halo(home, *words):
    """The lines of both streams of a command that ends well."""
    done = python("-m", "halo_search", *words, env=home.environment)
    return (done.stdout + done.stderr).splitlines()


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """`(index, home, lines)` of a build in a home of its own."""
    folder = tmp_path_factory.mktemp("built")
    toy_birds.generate(folder / "data", seed=3, num_classes=8, images_per_class=4)
    photos = next((folder / "data").rglob("*.jpg")).parent.parent
    home, out = Watched(folder), folder / "index"
    flags = ("--model", "toy_birds_pfe", "--include-training")
    return out, home, halo(home, "search", "build", photos, out, *flags)


@pytest.fixture
def home(tmp_path):
    return Watched(tmp_path)


def test_what_native_code_looks_up_is_seen(home):
    """The recorder sees a look-up that no line of Python makes, and a file left at home."""
    code = """
import ctypes, pathlib
ctypes.CDLL(None).getaddrinfo(b"example.org", None, None, ctypes.byref(ctypes.c_void_p()))
(pathlib.Path.home() / ".left").touch()
"""
    python("-c", code, env=home.environment)
    assert (home.looked_up, home.written) == (["getaddrinfo example.org"], [".left"])


def test_a_build_calls_nobody_and_prints_no_foreign_notice(built):
    out, home, lines = built
    assert (home.looked_up, left(home)) == ([], [])
    assert [line for line in lines if not line.startswith((str(out), "encoding"))] == []


def test_a_question_calls_nobody_and_writes_nothing(built, home):
    lines = halo(home, "search", "query", built[0], "a bird", "--json")
    (answer,) = map(json.loads, lines)
    assert len(answer["ids"]) == 10
    assert (home.looked_up, home.written) == ([], [])


@pytest.mark.parametrize("shown", ["index", pytest.param("preset", marks=pytest.mark.very_slow)])
def test_the_demo_calls_nobody(built, home, shown):
    words = ("demo", built[0]) if shown == "index" else ("demo",)
    with listening(home, *words) as (address, lines), urllib.request.urlopen(address) as page:
        assert Addresses(page.read().decode()).foreign == []
    assert lines == []
    assert home.looked_up == []
    cache = [path for path in left(home) if not path.startswith(".cache/halo-zoo/")]
    assert cache == []
    assert shown == "preset" or home.written == []


def test_a_server_calls_nobody_and_writes_nothing(built, home):
    with listening(home, "search", "serve", built[0], "--port", 0) as (address, lines):
        body = json.dumps({"question": "a bird"}).encode()
        head = {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{address}/ask", body, head)) as said:
            assert json.load(said)["ids"]
    assert (lines, home.looked_up, home.written) == ([], [], [])


class listening:  # noqa: N801, as a function
    """A command until it prints an address: that, and the lines before it; then SIGTERM."""

    def __init__(self, home, *words):
        command = [sys.executable, "-m", "halo_search", *map(str, words)]
        both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
        self.process = subprocess.Popen(command, env=home.environment, **both)

    def __enter__(self):
        before = []
        for line in self.process.stdout:
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                return found[0], before
            before.append(line)
        raise AssertionError(f"ended with {self.process.wait()}: {''.join(before)}")

    def __exit__(self, *error):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.communicate(timeout=60)
        finally:
            self.process.kill()


class Addresses(HTMLParser):
    """`foreign`: addresses of other machines that a page loads by itself; links are not loaded."""

    def __init__(self, page):
        super().__init__()
        self.foreign = []
        self.feed(page)
        self.foreign += re.findall(r"@import[^;]*//[^;]*|url\([\"']?(?:https?:)?//[^)]*", page)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            loads = name == "src" or (tag == "link" and name == "href")
            if loads and re.match(r"(https?:)?//", value or ""):
                self.foreign.append(value)
