"""Every reader of a file takes damaged ones: it reads them or says in one line what is wrong."""

import asyncio
import base64
import contextlib
import functools
import io
import json
import random
import shutil
import signal
import time
import warnings

import keras
import numpy as np
import pytest
from PIL import Image

import memory
import zoo
from halo_search import collection
from halo_search.confidence import Probes
from halo_search.errors import InputError, MissingPackageError
from halo_search.files.decoding import check_images
from halo_search.index import Index
from mutations import mutated
from pairs import load_pairs
from pixel_model import pixel_model
from zoo import data, evaluation, similarities
from zoo.data import cub, toy_birds, toy_scenes
from zoo.models.run_folder import RunFolder
from zoo.training.history import read_history
from zoo.training.resume import Resume

INPUTS, SHARE = 4_000, 80  # of them one in so many by default
SECONDS, BYTES = 10, 2**30
WAITED = 12 * SECONDS  # that may pass on a machine that does other things, too
FORMATS = ("JPEG", "PNG", "GIF", "BMP", "WEBP", "TIFF")


def _pictures(folder):
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    for number, kind in enumerate((*FORMATS, "JPEG", "PNG")):
        pixels = rng.integers(0, 256, (24, 30, 3), np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.{kind.lower()}", kind)


def _table(folder):
    _pictures(folder)
    names = [path.name for path in sorted(folder.iterdir()) if path.suffix != ".tiff"]
    rows = [f'"{name}","a ""{number}"" picture","train"' for number, name in enumerate(names)]
    (folder / "pairs.csv").write_text("\n".join(["image,caption,split", *rows, ""]))


def _read_table(folder):
    path = folder / "pairs.csv"
    skip = path.exists() and path.stat().st_size % 2 == 0
    return load_pairs(path, skip_bad=skip)


def _read_pictures(folder):
    from demo import limits

    for path in sorted(folder.iterdir()):
        with contextlib.suppress(limits.RefusedError):
            limits.picture(path)
    assert len(check_images(sorted(folder.iterdir()))) == len(list(folder.iterdir()))


def _preset(folder):
    folder.mkdir()
    pixel_model().save(folder / "model.keras")
    zoo.save_preset(pixel_model(), folder / "preset")


def _read_preset(folder):
    for name in ("model.keras", "preset"):
        with warnings.catch_warnings(action="ignore"):
            zoo.from_preset(folder / name)


def _probes(rng):
    sides = ({"mean": rng.normal(size=(30, 4))} for _ in range(2))
    return Probes.of(*sides, np.arange(30), np.arange(30), np.arange(30))


def _run(folder):
    run = RunFolder.open(folder, {"seed": 0}, data={"loader": "toy_birds", "image_size": 32})
    run.finish({"retrieval": {"own": {"rsum": 1.0}}, "confidence": {"t2i": {"nauc": 0.1}}})
    rows = "phase,epoch,loss\ntrain,1,0.5\ntrain,2,0.25\n"
    run.history_path.write_text(rows)
    _probes(np.random.default_rng(0)).save(run.probes_path)


def _read_run(folder):
    run = RunFolder.existing(folder)
    _ = run.settings, run.metrics
    read_history(run.history_path)
    evaluation.data_of(folder)
    evaluation.probes_of(folder)
    RunFolder.open(folder, {"seed": 0}, data={"loader": "toy_birds"})


def _gaussians(items=300, dim=8):
    rng = np.random.default_rng(0)
    mean = rng.normal(size=(items, dim)).astype(np.float32)
    return {"mean": mean, "log_variance": rng.normal(-2, 1, (items, dim)).astype(np.float32)}


def _index(folder):
    Index.build(_gaussians(), similarities.ClosedFormSampledDistance()).save(folder)


def _read_index(folder):
    Index.load(folder).search(_gaussians(2), 3)


def _collection(folder):
    def encode(items, advance):
        advance(len(items))
        return collection.Encoded(list(items.names), {"mean": np.zeros((len(items), 4), "f4")})

    texts = collection.captions([f"text {number}" for number in range(20)])
    collection.encode(texts, encode, folder, {"model": "m"}, part_size=8)


def _read_collection(folder):
    found = collection.Collection(folder)
    assert len(found.whole().names) == len(found)
    _ = found.uncertainty(found.ids), found.rejected()


def _vectors(folder):
    folder.mkdir()
    rng = np.random.default_rng(0)
    np.save(folder / "images.npy", rng.normal(size=(30, 4)).astype("f4"))
    np.savez(folder / "captions.npz", vectors=rng.normal(size=(30, 4)).astype("f4"))
    (folder / "texts.csv").write_text("text\n" + "a\n" * 30)
    (folder / "labels.txt").write_text("".join(f"{i % 5}\n" for i in range(30)))


def _read_vectors(folder):
    description = {
        "loader": "vectors",
        "root": str(folder),
        "images": "images.npy",
        "captions": "captions.npz:vectors",
        "texts": "texts.csv:text",
        "labels": "labels.txt",
    }
    return data.open(description, "train")


def _scenes(folder):
    toy_scenes.generate(folder, num_images=20, num_species=4, image_size=32, region_dim=4)


def _small_model():
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.compile(keras.optimizers.Adam(), "mse")
    model.optimizer.build(model.trainable_variables)
    return model


def _checkpoints(folder):
    resume = Resume(folder)
    resume.set_model(_small_model())
    for epoch in (1, 2):
        resume.save(epoch)


def _questions(folder):
    folder.mkdir()
    file = io.BytesIO()
    Image.new("RGB", (9, 7), "red").save(file, "PNG")
    picture = base64.b64encode(file.getvalue()).decode()
    for name, body in {
        "texts": {"questions": ["a photo", "another"], "k": 3},
        "picture": {"image": f"data:image/png;base64,{picture}", "k": 2},
    }.items():
        (folder / f"{name}.json").write_text(json.dumps(body))


@functools.cache
def _served():
    pictures = np.random.default_rng(0).integers(0, 256, (30, 8, 8, 3), "uint8")
    return pytest.importorskip("halo_search.server.application").application(
        zoo.Retriever.build(pixel_model(), pictures)
    )


def _ask_the_server(folder):
    """Every body gets JSON: an answer, or a sentence on what is wrong with it."""
    import httpx

    async def answer(body):
        transport = httpx.ASGITransport(_served())
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            headers = {"Content-Type": "application/json"}
            return await client.post("/ask", content=body, headers=headers)

    for path in sorted(folder.glob("*.json")):
        found = asyncio.run(answer(path.read_bytes() if path.is_file() else b""))
        assert found.status_code < 500, found.text
        if found.status_code != 200:
            assert "\n" not in found.json()["error"]


READERS = {
    "pairs.csv": (_table, _read_table),
    "pictures": (_pictures, _read_pictures),
    "presets": (_preset, _read_preset),
    "run": (_run, _read_run),
    "checkpoints": (_checkpoints, lambda f: Resume(f).restore(_small_model())),
    "index": (_index, _read_index),
    "collection": (_collection, _read_collection),
    "vectors": (_vectors, _read_vectors),
    "coco": (
        _scenes,
        lambda f: data.open({"loader": "coco", "root": str(f / "coco"), "image_size": 8}, "train"),
    ),
    "cub": (
        lambda f: toy_birds.generate(f, seed=3, num_classes=8, images_per_class=4, image_size=32),
        lambda f: cub.load(f, split="trainval", image_size=8, verbose=False),
    ),
    "served bodies": (_questions, _ask_the_server),
}
CLEAR = (InputError, MissingPackageError, ValueError)


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The folders of sound files, each read once."""
    pytest.importorskip("gradio", reason="the extra 'demo' is not installed")
    root = tmp_path_factory.mktemp("sound")
    for name, (make, read) in READERS.items():
        make(root / name)
        read(root / name)
    return root


def _files(folder, name):
    part = "coco" if name == "coco" else ""
    return sorted(path for path in (folder / part).rglob("*") if path.is_file())


def _damage(folder, name, rng):
    """Damages one file of a folder; what it did, for the message."""
    files = _files(folder, name)
    texts = [path for path in files if path.suffix in (".json", ".jsonl", ".csv", ".tsv", ".txt")]
    path = rng.choice(texts if texts and rng.random() < 0.6 else files)
    done = rng.random()
    content = path.read_bytes()
    path.unlink()
    if done < 0.04:
        return f"{path} gone"
    if done < 0.07:
        path.mkdir()
        return f"{path} a folder"
    path.write_bytes(mutated(content, rng))
    return f"{path} damaged"


def _copied(source, target):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)


def _is_clear(error):
    from demo.limits import RefusedError

    return type(error) in (*CLEAR, RefusedError) and "\n" not in str(error).strip() and str(error)


def _too_long(*_):
    raise TimeoutError(f"it computed for {SECONDS} s, or waited for {WAITED} s")


def _fuzz(sound, folder, numbers):
    """Reads damaged copies; what was found that is not clear, one line an input."""
    before = {
        number: signal.signal(number, _too_long) for number in (signal.SIGALRM, signal.SIGPROF)
    }
    memory.forget_peak()
    base, found, names = memory.held(), [], list(READERS)
    try:
        for number in numbers:
            rng = random.Random(number)
            name = rng.choice(names)
            _copied(sound / name, folder)
            what = _damage(folder, name, rng)
            start = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            signal.alarm(WAITED)
            try:
                READERS[name][1](folder)
            except Exception as error:
                if not _is_clear(error):
                    found.append(f"{number} {name}: {what}: {type(error).__name__}: {error}")
            finally:
                signal.alarm(0)
                signal.setitimer(signal.ITIMER_PROF, 0)
            if time.process_time() - start > SECONDS:
                found.append(f"{number} {name}: {what}: {time.process_time() - start:.0f} s")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    grown = memory.held("VmHWM") - base
    if grown > BYTES:
        found.append(f"memory grew by {grown / 2**20:.0f} MiB")
    return found


def _told(found):
    return "\n".join(line[:400] for line in found)


@pytest.mark.slow
def test_an_eightieth_of_the_damaged_inputs(sound, tmp_path):
    found = _fuzz(sound, tmp_path / "folder", range(0, INPUTS, SHARE))
    assert not found, _told(found)


@pytest.mark.very_slow
def test_all_damaged_inputs(sound, tmp_path):
    found = _fuzz(sound, tmp_path / "folder", range(INPUTS))
    assert not found, _told(found)
