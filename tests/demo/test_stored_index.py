"""The demo of an index: what a gallery with Keras says, without Keras; and what an index lacks."""

import json
import os
import shutil
import sys

import pytest

import halo_search.cli.main
import zoo
from demo import page, pictures, routes, stored_index
from demo.limits import RefusedError
from demo.service import Service
from halo_search import presets
from halo_search.cli.search import main as search
from halo_search.errors import InputError
from halo_search.files.written import facts_of, read_sealed, sealed
from halo_search.towers.onnx import OnnxTower
from halo_search.towers.onnx_model import FACTS
from processes import python

MODEL = "toy_birds_pfe"
PLACEHOLDER = pictures.jpeg(pictures._placeholder())
WORDS = ("a small bird with a red crown", "a bird with black wings", "a blue bird", "a house")


@pytest.fixture(scope="module")
def photos(birds, tmp_path_factory):
    folder = tmp_path_factory.mktemp("index") / "photos"
    return shutil.copytree(birds / "images", folder)


@pytest.fixture(scope="module")
def index(photos, towers_once):
    """An index of photos, built by the command."""
    out = photos.parent / "built"
    search(["build", str(photos), str(out), "--model", MODEL, "--include-training"])
    return out


@pytest.fixture(scope="module")
def words(photos):
    path = photos.parent / "words.txt"
    path.write_text("".join(f"{text}\n" for text in WORDS))
    return path


@pytest.fixture(scope="module")
def captions(photos, words, towers_once):
    """An index of captions."""
    search(["build", str(words), str(photos.parent / "texts"), "--captions", "--model", MODEL])
    return photos.parent / "texts"


HEAVY = ("tensorflow", "keras", "tensorflow_probability", "matplotlib")
ASKS = """
import json, sys, urllib.parse, urllib.request
import halo_search.cli.main
from halo_search.cli.main import applications_folder

sys.path.insert(0, str(applications_folder()))
from demo import page, stored_index

folder, photo = sys.argv[1:3]
built = page.build(stored_index.load(folder))
address = built.launch(wait=False, quiet=True).rstrip("/")

def ask(path, body=None):
    request = urllib.request.Request(f"{address}/{path}", body)
    return json.load(urllib.request.urlopen(request))

question = "q=a+small+bird+with+a+red+crown"
for path in ("about", f"ask?{question}", f"why?{question}", f"words?{question}", "map-items"):
    ask(path)
ask(f"map-question?{question}")
ask("similar?item=1")
ask(f"ask?{question}&view=" + urllib.parse.quote(ask("about")["views"][1]))
contents = open(photo, "rb").read()
key = ask("own?name=a.jpg", contents)["key"]
ask(f"ask?{question}&among_own={key}")
print(sorted(set(sys.argv[3].split()) & {name.partition(".")[0] for name in sys.modules}))
built.close()
"""


def test_neither_tensorflow_nor_keras_nor_matplotlib_is_imported(index, photo, tmp_path):
    """A question, the map and photos of one's own."""
    hidden = ("MPLBACKEND",)
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    words = ("-c", ASKS, index, photo, " ".join(HEAVY))
    done = python(*words, env=environment, GRADIO_TEMP_DIR=str(tmp_path))
    assert done.stdout.splitlines()[-1] == "[]"


def test_photos_that_are_gone_have_a_placeholder_and_a_sentence(index, tmp_path, capsys):
    moved = shutil.copytree(index, tmp_path / "moved")
    setup = read_sealed(moved / "search.json")
    setup["build"]["source"] = str(tmp_path / "nowhere")
    (moved / "search.json").write_text(json.dumps(sealed(setup)))
    gallery = stored_index.load(moved)
    assert "name their folder, --photos" in capsys.readouterr().out
    assert gallery.pictures.thumbnail(0) == PLACEHOLDER
    assert "name their folder" not in gallery.missing["photos"]
    found = stored_index.load(moved, index.parent / "photos")
    assert "photos" not in found.missing
    assert found.pictures.thumbnail(0) != PLACEHOLDER
    with pytest.raises(InputError, match="folder of the index's photos"):
        stored_index.load(moved, tmp_path / "nowhere")


@pytest.mark.parametrize("of", ["changed", "absolute", "above"])
def test_an_index_of_a_stranger_shows_no_other_picture(index, tmp_path, of):
    """A photo is shown as it was indexed, by its size and time, or below the folder of --photos."""
    private, photos = tmp_path / "private", tmp_path / "photos"
    shutil.copytree(index.parent / "photos", private)  # with their times
    shutil.copytree(private, photos)
    made = shutil.copytree(index, tmp_path / "index")
    setup = read_sealed(made / "search.json")
    setup["build"]["source"], named = str(private), None
    if of == "changed":
        for path in private.rglob("*.*"):
            os.utime(path, ns=(1, 1))
    else:
        path = made / setup["index"] / "names.json"
        above = f"{private}/" if of == "absolute" else "../private/"
        changed = {n: f"{above}{name}" for n, name in json.loads(path.read_text()).items()}
        path.write_text(json.dumps(changed))
        setup["files"]["names.json"] = facts_of(path)
        named = photos
    (made / "search.json").write_text(json.dumps(sealed(setup)))
    gallery = stored_index.load(made, named)
    shown = gallery.pictures
    assert {shown.thumbnail(n) for n in range(len(shown))} == {PLACEHOLDER}
    assert shown.large(0) == pictures.jpeg(pictures._placeholder(), quality=92)
    assert shown.ratio(0) == 1


def test_a_side_that_an_index_lacks_is_a_sentence(index, captions, photo):
    gallery = stored_index.load(captions)
    assert (gallery.image_names, gallery.captions) == ([], list(WORDS))
    service = Service(gallery)
    asks = service.find_images, service.find_all, service.reasons, service.without_words
    for ask in asks:
        with pytest.raises(RefusedError, match="holds captions and no photos"):
            ask("a bird")
    assert service.describe_gallery()["judged"]["captions"]["calibrated"] is False
    assert len(service.map.items["x"]) == len(WORDS)
    assert routes.about(page.Page(gallery).views)["missing"] == gallery.missing
    with pytest.raises(RefusedError, match="holds photos and no captions"):
        Service(stored_index.load(index)).find_captions(str(photo))


def test_what_a_retriever_saved_is_shown_by_its_model(photos, tmp_path):
    retriever = zoo.Retriever.build(MODEL, str(photos))
    retriever.save(tmp_path / "saved")
    gallery = stored_index.load(tmp_path / "saved", photos)
    assert isinstance(gallery.towers["captions"], OnnxTower)  # the package has them
    service = Service(gallery)
    found, answer = service.find_images(WORDS[0]), retriever.ask(WORDS[0], 8)
    assert {one["name"] for one in found["results"]} == set(answer.names)
    assert found["verdict"] == answer.verdict
    for ask in (lambda: service.map.items, lambda: service.similar(0)):
        with pytest.raises(RefusedError, match="There is no map"):
            ask()
    retriever.remove([0, 2])  # the other ids are no rows any more
    retriever.save(tmp_path / "fewer")
    gallery = stored_index.load(tmp_path / "fewer", photos)
    (without, _) = Service(gallery).without_words("red bird")["without"]
    assert gallery.image_names[without["item"]] == retriever.ask("bird", 1).names[0]


def test_what_is_no_index_is_one_line(index, photos, words, tmp_path, error_of, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "argv", ["halo"])

    def halo_demo(*words):
        """The last line of the error."""
        return error_of(halo_search.cli.main.main, ["demo", *map(str, words)]).splitlines()[-1]

    assert "--captions does not apply to an index" in halo_demo(index, "--captions", words)
    old = tmp_path / "old"
    old.mkdir()
    assert halo_demo(old).startswith(f"error: no such model: '{old}'")
    said = f"error: {index / 'index'}: is one part of an index; pass its folder, {index}"
    assert halo_demo(index / "index") == said
    (old / "search.json").write_text('{"index": "index"}')
    assert halo_demo(old).startswith(f"error: {old}: holds search.json, which this program")
    (old / "search.json").write_text("{")
    assert halo_demo(old).startswith(f"error: {old / 'search.json'}")


@pytest.mark.very_slow
def test_towers_of_a_newer_version_are_one_line(photos, tmp_path, error_of):
    newer, model = tmp_path / "newer", str(presets.folder_of(MODEL))  # which has its own towers
    search(["build", str(photos), str(newer), "--model", model, "--include-training"])
    (facts,) = newer.glob(f"towers-*/{FACTS}")
    facts.write_text(json.dumps(sealed({"version": 99})))
    said = error_of(halo_search.cli.main.main, ["demo", str(newer)]).splitlines()[-1]
    assert said == f"error: {facts}: of another version; build the index again"
