"""Every line of docs/questions.md, docs/confidence.md and of the notebooks runs."""

import functools
import importlib
import json
import pathlib
import re
import shlex
import sqlite3
import sys
import types

import keras
import numpy as np
import pytest

import halo_search
import packaged
import zoo
from tools.notebook_pages import page
from zoo import cli
from zoo.data import toy_birds

ROOT = pathlib.Path(__file__).parent.parent
CODE = re.compile(r"```python\n(.*?)```", re.S)
LINES = CODE.findall((ROOT / "docs" / "questions.md").read_text())
NOTEBOOK = json.loads((ROOT / "docs" / "quickstart.ipynb").read_text())


@pytest.fixture
def photos_once(monkeypatch):
    """The pages and the notebook ask the same photos."""
    of_photos, _ = packaged.built()

    def build(model, photos):
        assert (model, list(photos)) == (packaged.PRESET, halo_search.packaged_photos())
        return of_photos

    monkeypatch.setattr(halo_search.Retriever, "build", build)


@pytest.mark.usefixtures("one_eagerly")
@pytest.mark.parametrize("code", LINES, ids=lambda code: code.split(";")[-1].strip()[:60])
def test_answers_run(code, tmp_path, monkeypatch):
    few = functools.partial(toy_birds.generate, num_classes=16, images_per_class=4, image_size=32)
    monkeypatch.setattr(toy_birds, "generate", few)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs/questions.md", "exec"), {})


@pytest.mark.slow
@pytest.mark.usefixtures("one_eagerly")
def test_what_is_added_by_a_user_works_everywhere(tmp_path, monkeypatch, capsys):
    """The page's blocks run one after the other and print what the page says."""
    monkeypatch.chdir(tmp_path)
    few = toy_birds.generate(tmp_path / "birds", num_classes=8, images_per_class=4)
    monkeypatch.setattr(toy_birds, "generate", lambda root: few)
    monkeypatch.setattr(zoo.plots, "draw_run", lambda *run: drawn.append(run))
    drawn = []
    code = "\n".join(CODE.findall((ROOT / "docs" / "extending.md").read_text()))
    smoke = 'main(["--smoke", '  # with few words, which a GRU reads one after the other
    assert smoke in code
    code = code.replace(smoke, f'{smoke}"--max-words=6", "--dim=16", "--word-dim=8", ')
    names = {"__name__": "__main__"}
    exec(compile(code, "docs/extending.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "[0 1 2]" in printed
    assert "[[3. 5.]]" in printed
    assert "0.018" in printed
    assert "['manhattan']" in printed
    assert len(drawn) == 1  # tests/recipes draw reports
    loaded = keras.saving.load_model("colours.keras")
    texts = ["a red square"]
    expected = names["model"].encode_captions(texts)
    np.testing.assert_allclose(loaded.encode_captions(texts), expected, rtol=1e-6)


@pytest.mark.usefixtures("photos_once")
@pytest.mark.parametrize("number", [0, 1], ids=["retriever", "probes"])
def test_the_confidence_pages_code_prints_what_it_says(number, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "confidence.md").read_text()
    code, printed = CODE.findall(text), re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    assert len(code) == len(printed) == 2
    exec(compile(code[number], "docs/confidence.md", "exec"), {})
    assert _rounded(capsys.readouterr().out).endswith(_rounded(printed[number]))


@pytest.mark.slow
@pytest.mark.usefixtures("photos_once", "one_eagerly")
@pytest.mark.parametrize("page", ["start/quickstart.md", "tutorials/dont_know.md"])
def test_a_pages_code_prints_what_it_says(page, tmp_path, monkeypatch, capsys):
    """Its blocks run one after the other; between what they print, training prints more."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / page).read_text()
    exec(compile("\n".join(CODE.findall(text)), page, "exec"), {})
    lines = iter(_rounded(capsys.readouterr().out).splitlines())
    said = "".join(re.findall(r"```text\n(.*?)```", text, re.DOTALL))
    assert said
    for line in _rounded(said).splitlines():
        assert line in lines, line


def _rounded(text):
    """Without the last digit of a probability, which another machine may round elsewhere."""
    return re.sub(r"(0\.\d)\d", r"\1", text)


@pytest.mark.slow
@pytest.mark.usefixtures("photos_once")
@pytest.mark.usefixtures("one_eagerly")
def test_the_notebook_runs(tmp_path, monkeypatch, capsys):
    """From its first cell to its last, with two steps of its twenty."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    for number, cell in enumerate(NOTEBOOK["cells"]):
        if cell["cell_type"] == "code":
            code = "".join(cell["source"]).replace("steps_per_epoch=20", "steps_per_epoch=2")
            exec(compile(code, f"quickstart.ipynb, cell {number}", "exec"), names)
    verdicts = {answer.question: answer.verdict for answer in names["answers"]}
    assert verdicts["two people riding horses on the beach"] == "likely"
    assert verdicts["a penguin"] == "nothing matches"
    assert (tmp_path / "sheet.png").exists()
    assert names["history"].epoch == [0]
    assert (tmp_path / "birds.keras").exists()
    assert "a penguin: nothing matches" in capsys.readouterr().out


@pytest.mark.parametrize("notebook", sorted((ROOT / "docs").rglob("*.ipynb")), ids=lambda p: p.stem)
def test_a_notebook_is_kept_without_outputs(notebook):
    # What a run printed would differ from machine to machine, and drift from the code.
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


VECTORS = (ROOT / "docs" / "vectors.md").read_text()
OF_VECTORS = dict(
    zip(("arrays", "sentences", "lance", "postgres", "head"), CODE.findall(VECTORS), strict=True)
)


def run_of_vectors(name, **names):
    """Runs a block of docs/vectors.md, and returns its names."""
    exec(compile(OF_VECTORS[name], f"docs/vectors.md, {name}", "exec"), names)
    return names


def pairs_of_vectors(count=200):
    """Float32 `(count, 6)` of images and of captions; row i belongs to row i."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(count, 6))
    return [(2 * truth + rng.normal(size=truth.shape)).astype("float32") for _ in range(2)]


def printed_probability(capsys):
    """The probability that a block prints first in its last line."""
    return float(capsys.readouterr().out.splitlines()[-1].strip("[]").split()[0])


def test_blocks_on_vectors_need_no_models():
    for name, code in OF_VECTORS.items():
        assert ("import zoo" in code) == (name == "head")


def test_the_page_on_ones_own_vectors_runs(tmp_path, monkeypatch, capsys):
    """Arrays and a head; its commands are commands."""
    monkeypatch.chdir(tmp_path)
    for name, vectors in zip(("images", "captions"), pairs_of_vectors(), strict=True):
        np.save(f"{name}.npy", vectors)
    names = run_of_vectors("arrays")
    assert re.search(r"\[0\.\d* ", capsys.readouterr().out)
    right = names["ids"][:, 0] == np.arange(100)
    probability = names["index"].probability(names["asked"], names["confidence"])
    assert abs(probability.mean() - right.mean()) < 0.15
    run_of_vectors("head")
    (block,) = re.findall(r"```bash\n(.*?)```", VECTORS, re.S)
    train, *others = block.strip().splitlines()
    flags = shlex.split(train)[3:]
    settings = cli.parse(importlib.import_module("own_vectors").Settings, flags)
    assert settings.images == "images.npy"
    search = importlib.import_module("halo_search.cli.search").parser()
    for line in others[:2]:
        assert search.parse_args(shlex.split(line)[2:]).command in ("build", "query")


def test_vectors_of_sentence_transformers_get_a_probability(monkeypatch, capsys):
    """The package needs PyTorch: its `encode` is the caption tower of `photos_pfe` here, which is
    the network that the page names, with a map behind it."""
    tower = halo_search.open_tower("photos_pfe", "captions")

    class SentenceTransformer:
        def __init__(self, name):
            assert name == "all-MiniLM-L6-v2"

        def encode(self, texts):
            return tower.of_texts(texts)["mean"]

    package = types.SimpleNamespace(SentenceTransformer=SentenceTransformer)
    monkeypatch.setitem(sys.modules, "sentence_transformers", package)
    captions = list(halo_search.packaged_captions().values())
    run_of_vectors(
        "sentences",
        passages=[five[0] for five in captions],
        known_questions=[five[1] for five in captions],
        known_passages=[five[0] for five in captions],
    )
    probability, text = capsys.readouterr().out.strip().split(" ", 1)
    assert 0 < float(probability) < 1
    assert "horse" in text


def write_question(images, captions):
    """The files of a question that wants image 7, and of known questions about the others."""
    np.save("question.npy", captions[7])
    np.save("questions.npy", captions[100:])
    np.save("wanted.npy", images[100:])


def test_vectors_of_lancedb_get_a_probability(tmp_path, monkeypatch, capsys):
    lancedb = pytest.importorskip("lancedb")
    monkeypatch.chdir(tmp_path)
    images, captions = pairs_of_vectors()
    write_question(images, captions)
    rows = [{"id": 1000 + row, "vector": vector} for row, vector in enumerate(images)]
    lancedb.connect("my_lancedb").create_table("photos", rows)
    names = run_of_vectors("lance")
    _, ids = names["index"].search(captions[7:8], k=5)
    assert [hit["id"] for hit in names["hits"]] == ids[0].tolist()  # as LanceDB ranks
    assert 0 < printed_probability(capsys) < 1


def test_vectors_of_a_postgresql_table_get_a_probability(tmp_path, monkeypatch, capsys):
    """The page's queries run on SQLite, which keeps arrays as text and knows no casts."""
    monkeypatch.chdir(tmp_path)
    images, captions = pairs_of_vectors()
    write_question(images, captions)
    stored = sqlite3.connect(":memory:")
    stored.execute("CREATE TABLE photos (id INTEGER, embedding TEXT)")
    stored.execute("CREATE TABLE questions (embedding TEXT, photo INTEGER)")
    for row, (image, caption) in enumerate(zip(images, captions, strict=True)):
        stored.execute("INSERT INTO photos VALUES (?, ?)", (1000 + row, str(image.tolist())))
        if row >= 100:
            values = str(caption.tolist()), 1000 + row
            stored.execute("INSERT INTO questions VALUES (?, ?)", values)

    class Database:
        """A connection of psycopg 3, which returns `real[]` as lists of numbers."""

        def execute(self, query):
            assert "embedding::real[]" in query
            rows = stored.execute(query.replace("::real[]", "")).fetchall()
            read = [[json.loads(v) if isinstance(v, str) else v for v in row] for row in rows]
            return types.SimpleNamespace(fetchall=lambda: read)

    package = types.SimpleNamespace(connect=lambda _: Database())
    monkeypatch.setitem(sys.modules, "psycopg", package)
    names = run_of_vectors("postgres")
    assert names["questions"].shape == names["wanted"].shape == (100, 6)
    assert sorted(names["ids"]) == list(range(1000, 1200))
    assert 0 < printed_probability(capsys) < 1


TUTORIAL = ROOT / "docs" / "tutorials" / "dual_encoder.ipynb"
CELLS = json.loads(TUTORIAL.read_text(encoding="utf-8"))["cells"]
OF_CELLS = ["".join(cell["source"]) for cell in CELLS if cell["cell_type"] == "code"]


def test_its_page_is_the_notebook():
    text = page(CELLS, TUTORIAL.name)
    assert text.startswith("# A dual encoder in plain Keras 3\n\n*A notebook: [dual_encoder.ipynb]")
    assert all(f"```python\n{code}\n```" in text for code in OF_CELLS)
    assert text.count("```") == 2 * len(OF_CELLS)
