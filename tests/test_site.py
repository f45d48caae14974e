"""The documentation site: it builds strictly, its pictures have pages, its code runs."""

import linecache
import pathlib
import pkgutil
import re
import runpy
import shutil
import subprocess

import pytest

import halo_search
import zoo
from processes import python

ROOT = pathlib.Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
CODE = re.compile(r"^```python\n(.*?)^```", re.S | re.M)
# Pages whose blocks are run by tests of their own.
ELSEWHERE = {
    "confidence.md": "tests/test_documentation.py",
    "start/quickstart.md": "tests/test_documentation.py",
    "start/first_hour.md": "tests/test_first_hour.py",
    "tutorials/dont_know.md": "tests/test_documentation.py",
    "questions.md": "tests/test_documentation.py",
    "extending.md": "tests/test_documentation.py",
    "vectors.md": "tests/test_documentation.py",
    "serving.md": "tests/export/test_layout.py",
    "demo.md": "tests/demo/test_api.py",
}
RUN_HERE = {
    "search.md": "(200, 17)",
    "tutorials/photos.md": "",
    "help/troubleshooting.md": "",
    "concepts/embeddings.md": "-8",
    "concepts/csd.md": "",
    "howto/resume.md": "",
    "howto/cluster.md": "['a red bird', 'a blue bird'] (2, 64)",
    "data.md": "480 images, 4,800 captions, 30 classes",
    "training.md": "trained on",
    "models/dive.md": "(2, 4, 8, 8)",
    "models/daa.md": "semantic_precision",
}
LONGEST = "tutorials/photos.md", "training.md"  # what they use, other tests train and build
ROOMS = "demo|docs|export|halo_search|recipes|tests|tools|zoo"
EAGERLY = ("help/troubleshooting.md", "tutorials/photos.md")  # two steps


def page_name(path):
    return path.relative_to(DOCS).as_posix()


@pytest.mark.slow
def test_it_builds_strictly(tmp_path):
    pytest.importorskip("mkdocs")
    words = ("-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path)
    variables = {"NO_MKDOCS_2_WARNING": "1", "REPOSITORY_URL": "https://example.org/zoo"}
    python(*words, cwd=ROOT, **variables)
    reference = "".join(page.read_text() for page in (tmp_path / "reference").glob("*.html"))
    for room in (
        zoo.models,
        zoo.similarities,
        zoo.losses,
        zoo.metrics,
        halo_search.collection,
        halo_search.confidence,
        halo_search.index,
        halo_search.retriever,
        halo_search.towers,
    ):
        for name in room.__all__:
            if callable(thing := getattr(room, name)):
                pattern = rf'id="({room.__name__}\.(\w+\.)?|{thing.__module__}\.){name}"'
                assert re.search(pattern, reference), f"{room.__name__}.{name} has no entry"
    start = (tmp_path / "index.html").read_text()  # its picture is that of the scheme
    assert 'src="images/first_screen.png#only-light"' in start
    assert 'src="images/first_screen_dark.png#only-dark"' in start
    assert "https://example.org/zoo" in start  # the header links the repository
    assert "md-source__repository" in start
    assert (tmp_path / "search" / "search_index.js").exists()  # opened as files, it is searched
    assert 'src="javascripts/iframe-worker.js"' in start
    for page in tmp_path.rglob("*.html"):  # nothing is fetched from elsewhere to show a page
        text = page.read_text()
        fetched = re.findall(r'<(?:script|img|link)[^>]+(?:src|href)="(https?://[^"]+)"', text)
        assert not [url for url in fetched if "canonical" not in url], page


def test_every_picture_has_a_page():
    texts = [path.read_text() for path in (*PAGES, ROOT / "README.md")]
    shown = {
        pathlib.PurePosixPath(link).name
        for text in texts
        for pattern in (r"!\[[^\]]*\]\(([^)\s]+)\)", r' (?:src|srcset)="([^"]+)"')
        for link in re.findall(pattern, text)
        if not link.endswith(".js")
    }
    there = {path.name for path in (DOCS / "images").iterdir()}
    assert shown <= there
    twins = {name for name in there - shown if name.replace("_dark.", ".") in shown}
    assert there == shown | twins


def test_every_block_of_code_is_run_somewhere():
    with_code = {page_name(path) for path in PAGES if CODE.search(path.read_text())}
    assert with_code == {*ELSEWHERE, *RUN_HERE}, "list the page here, and run its blocks"
    for page, test in ELSEWHERE.items():
        assert pathlib.PurePath(page).name in (ROOT / test).read_text(), f"{test} runs {page}"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    """One folder for all pages, so that Toy Birds are drawn once."""
    return tmp_path_factory.mktemp("pages")


@pytest.mark.slow
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.very_slow) if page in LONGEST else page
        for page in RUN_HERE
    ],
)
def test_a_pages_code_runs(page, workplace, monkeypatch, capsys, request):
    """The blocks of a page run one after the other."""
    if page in EAGERLY:
        request.getfixturevalue("one_eagerly")
    monkeypatch.chdir(workplace)
    file = workplace / "page.py"  # AutoGraph reads the source of functions
    file.write_text("\n".join(CODE.findall((DOCS / page).read_text())))
    linecache.checkcache(str(file))
    runpy.run_path(str(file))
    assert RUN_HERE[page] in capsys.readouterr().out


def test_the_page_of_a_paper_says_what_differs():
    for path in (DOCS / "models").glob("*.md"):
        if path.name not in ("settings.md", "hosted.md"):  # of no paper
            assert "## What differs from the paper" in path.read_text(), page_name(path)


def test_pages_name_things_that_exist():
    """`halo_search.…`, `zoo.…` and files of the checkout; the history may name what is gone."""
    for page in (*PAGES, ROOT / "README.md"):
        if page == DOCS / "help" / "changelog.md":
            continue
        text = page.read_text()
        for name in re.findall(r"`((?:halo_search|zoo)(?:\.\w+)+)", text):
            pkgutil.resolve_name(name)
        for path in re.findall(rf"`((?:{ROOMS})/[\w/.]+\.\w+)", text):
            assert (ROOT / path).exists(), f"{page.relative_to(ROOT)}: {path}"


def test_a_released_readme_has_whole_links(tmp_path):
    """The step of the release workflow, on a copy."""
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text())
    (step,) = [s for s in workflow["jobs"]["build"]["steps"] if "README" in s.get("name", "")]
    shutil.copy(ROOT / "README.md", tmp_path)
    names = {"GITHUB_REPOSITORY": "owner/halo-zoo", "GITHUB_REF_NAME": "v0.2.0"}
    subprocess.run(["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=names, check=True)
    text = (tmp_path / "README.md").read_text()
    targets = re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", text)
    assert len(targets) > 20
    assert not [t for pair in targets for t in pair if t and not t.startswith("https://")]
    assert "https://github.com/owner/halo-zoo/blob/v0.2.0/docs/vectors.md" in text


def test_readme_links_are_there():
    text = (ROOT / "README.md").read_text()
    pictures = re.findall(r' (?:src|srcset)="([^"]+)"', text)
    for link in [*re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text), *pictures]:
        assert link.startswith("http") or (ROOT / link).exists(), link
