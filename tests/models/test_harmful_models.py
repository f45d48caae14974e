"""Models that were made to harm: no code in them runs, and nothing outside of them is read."""

import base64
import copy
import json
import marshal
import sys
import zipfile

import h5py
import pytest

import zoo
from halo_search.errors import InputError
from zoo.data.text.captions import WordTokenizer
from zoo.models.preset_folder import CONFIG_FILE, WEIGHTS_FILE, check_whole

SECRET = "do not read me"


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """`{name: contents}` of the archive of an honest model."""
    tokenizer = WordTokenizer(["bird", "red"], max_words=4)
    model = zoo.models.pcme("tiny", tokenizer, dim=4, word_dim=4, image_size=16)
    path = tmp_path_factory.mktemp("model") / "model.keras"
    model.save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def world(tmp_path):
    """A folder with a secret, beside which nothing may appear."""
    (tmp_path / "inside").mkdir()
    (tmp_path / "secret.txt").write_text(SECRET)
    yield tmp_path
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inside", "secret.txt"]


@pytest.fixture
def opened():
    """What Python opens, starts or connects to meanwhile, that a model has no business with."""
    seen, is_on = [], [True]

    def hook(event, arguments):
        if not is_on[0]:
            return
        named = event == "open" and "secret" in str(arguments[0])
        if named or event in ("os.system", "subprocess.Popen", "socket.connect", "os.mkdir"):
            seen.append((event, str(arguments)[:200]))

    sys.addaudithook(hook)  # which stays, so that it is turned off
    yield seen
    is_on[0] = False


def packed(path, members, **changed):
    """An archive of members, some of them changed or left out."""
    contents = {name: changed.pop(name.partition(".")[0], value) for name, value in members.items()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, value in {**contents, **changed}.items():
            if value is not None:
                archive.writestr(name, value)
    return path


def one(module, name, config):
    return {"module": module, "class_name": name, "config": config, "registered_name": None}


def within(layer):
    """A model of layers as an encoder."""
    shape = {"batch_shape": [None, 4], "dtype": "float32", "name": "i"}
    layers = [one("keras.layers", "InputLayer", shape), layer]
    return one("keras", "Sequential", {"name": "s", "layers": layers})


def activation(module, name):
    function = one(module, "function", name)
    return within(one("keras.layers", "Dense", {"name": "d", "units": 1, "activation": function}))


def configs(members, world):
    """`{name: config}`."""
    mark, secret = str(world / "mark"), str(world / "secret.txt")
    code = marshal.dumps((lambda _: __import__("os").mkdir(mark)).__code__)
    packed_code = {"code": base64.b64encode(code).decode(), "defaults": None, "closure": None}
    function = {"class_name": "__lambda__", "config": packed_code}
    code_layer = one("keras.layers", "Lambda", {"name": "l", "function": function})
    parts = {
        "code in an encoder": ("image_encoder", within(code_layer)),
        "code as tokenizer": ("tokenizer", code_layer),
        "code as loss": ("loss", code_layer),
        "a command as activation": ("image_encoder", activation("os", "system")),
        "a command as similarity": ("similarity", one("os", "system", f"mkdir {mark}")),
        "a function as loss": ("loss", one("os", "mkdir", {"path": mark})),
        "a process as auxiliary": ("auxiliaries", [one("subprocess", "Popen", {"args": ["id"]})]),
        "a switch of Keras": (
            "image_encoder",
            activation("keras.config", "enable_unsafe_deserialization"),
        ),
        "a file that is fetched": (
            "loss",
            one("keras.utils", "get_file", {"fname": mark, "origin": f"file://{secret}"}),
        ),
        "words of a file": (
            "tokenizer",
            one("keras.layers", "StringLookup", {"name": "w", "vocabulary": secret}),
        ),
        "words of an address": (
            "tokenizer",
            one("keras.layers", "IntegerLookup", {"vocabulary": "http://127.0.0.1:9/secret"}),
        ),
        "pieces of a file": (
            "tokenizer",
            one("keras_hub.tokenizers", "SentencePieceTokenizer", {"proto": secret}),
        ),
        "a model in another format": (
            "image_encoder",
            one("keras.layers", "TFSMLayer", {"name": "t", "filepath": secret}),
        ),
        "no layer": ("similarity", float("nan")),
    }
    honest = json.loads(members[CONFIG_FILE])
    for name, (key, value) in parts.items():
        config = copy.deepcopy(honest)
        config["config"][key] = value
        yield name, config
    yield "code in what compiles it", {**honest, "compile_config": {"loss": code_layer}}
    yield "another class", within(code_layer)


LOSSES = {"code as loss", "a function as loss", "a file that is fetched"}


@pytest.mark.filterwarnings("ignore:the model's loss")
def test_no_config_runs_or_reads_anything(members, world, opened):
    tried, left_out, said = 0, set(), []
    for name, config in configs(members, world):
        path = packed(world / "inside" / f"{name}.keras", members, config=json.dumps(config))
        opened.clear()
        try:
            assert zoo.from_preset(path, compile=True).loss is None, name
            left_out.add(name)
        except InputError as error:
            said.append(str(error))
        assert opened == [], name
        tried += 1
    assert tried == 16
    assert not any(SECRET in one or "\n" in one for one in said)
    assert left_out == LOSSES  # encoding needs none


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"config": "{" * 50_000}, "not a model that this version can read"),
        ({"config": '{"a":' * 50_000 + "1" + "}" * 50_000}, "not a model that this version"),
        ({"config": "[]"}, "not a model that this version can read"),
        ({"config": b" " * (65 * 2**20)}, r"expected 67,108,864 bytes at most of config\.json"),
        ({"assets/../../outside.txt": "x"}, "which leads out of the file"),
        ({"/outside.txt": "x"}, "which leads out of the file"),
        ({"model": None}, "not a model that this version can read"),
        ({"model": b"\x80\x04."}, "file signature not found"),
    ],
)
def test_archives(changed, says, members, world, opened):
    path = packed(world / "inside" / "model.keras", members, **changed)
    with pytest.raises(InputError, match=says):
        zoo.from_preset(path)
    assert opened == []


@pytest.mark.parametrize("kind", ["external", "soft", "group", "storage"])
def test_weights_in_other_files_are_not_read(kind, members, world):
    inside, other = world / "inside", world / "inside" / "other.h5"
    weights = inside / WEIGHTS_FILE
    for path in (weights, other):
        path.write_bytes(members[WEIGHTS_FILE])
    with h5py.File(weights, "r+") as file:
        found = []
        file.visititems(lambda name, item: found.append((name, item)))
        name, item = next(pair for pair in found if isinstance(pair[1], h5py.Dataset))
        shape, top = item.shape, name.partition("/")[0]
        del file[top if kind == "group" else name]
        if kind == "external":
            file[name] = h5py.ExternalLink(str(other), f"/{name}")
        elif kind == "soft":
            file[name] = h5py.SoftLink(f"/{top}")
        elif kind == "group":
            file[top] = h5py.ExternalLink(str(other), f"/{top}")
        else:
            file.create_dataset(name, shape, "f4", external=[(str(other), 0, 4 * item.size)])
    path = packed(inside / "model.keras", members, model=weights.read_bytes())
    with pytest.raises(InputError, match=r"is a link, which is not|lies in another file, which is"):
        check_whole(path)
