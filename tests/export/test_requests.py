"""Requests over the wire: the clients, and what bad requests get."""

import io
import json
import os
import pathlib
import shutil
import struct
import subprocess
import zlib

import grpc
import numpy as np
import pytest
from PIL import Image

from export import grpc_client
from tools import stand_in
from zoo.data import images as pipeline

REST_CLIENT = pathlib.Path(grpc_client.__file__).parent / "rest_client.sh"


@pytest.fixture(scope="module")
def service(pcme):
    return stand_in.SavedModelService(pcme.folder)


@pytest.fixture(scope="module")
def address(service):
    with stand_in.grpc_server(service) as address:
        yield address


@pytest.fixture(scope="module")
def client(address):
    with grpc_client.Client(address) as client:
        yield client


def encoded(array, form, **options):
    stream = io.BytesIO()
    Image.fromarray(array, **options).save(stream, form)
    return stream.getvalue()


def picture(form="JPEG", size=(40, 50)):
    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    return encoded(pixels, form)


def declared(width, height):
    """A PNG whose header declares a size that its few bytes do not hold."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    start = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", len(header))
    return start + chunk + struct.pack(">I", zlib.crc32(chunk)) + b"\0" * 64


def rejected(call, *arguments):
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    return caught.value.details()


def test_the_grpc_client_gets_what_the_model_says(client, pcme, birds):
    files, texts = birds.files[:4], birds.captions[:3]
    pixels = np.stack([pipeline.prepare(one, 32) for one in files]).astype("float32")
    images, captions = pcme.model.encode_images(pixels), pcme.model.encode_captions(texts)
    found = client.encode_images(files)
    np.testing.assert_allclose(found["mean"], images.mean(), atol=1e-5)
    np.testing.assert_allclose(found["uncertainty"], pcme.model.uncertainty(images), atol=1e-5)
    np.testing.assert_allclose(client.encode_captions(texts)["mean"], captions.mean(), atol=1e-5)
    matched = client.match(files, texts)
    assert set(matched) == {"similarity", "pairs"}
    np.testing.assert_allclose(
        matched["similarity"], pcme.model.similarity(images, captions), atol=1e-4
    )


def test_the_grpc_command(address, birds, capsys, tmp_path):
    flags = ["--images", *birds.paths[:2], "--captions", "a red bird", "a blue bird"]
    assert grpc_client.main([address, *flags]) == 0
    assert [len(line.split("\t")) for line in capsys.readouterr().out.splitlines()] == [3, 3]
    (tmp_path / "no.jpg").write_text("no picture")
    assert grpc_client.main([address, "--images", str(tmp_path / "no.jpg")]) == 2
    assert "INVALID_ARGUMENT" in capsys.readouterr().err
    assert grpc_client.main([address, "--images", str(tmp_path / "missing.jpg")]) == 2


@pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl on this machine")
def test_the_rest_client(service, pcme, birds, tmp_path):
    def ask(*arguments):
        done = subprocess.run([REST_CLIENT, url, *arguments], capture_output=True, timeout=60)
        return done.returncode, json.loads(done.stdout)

    texts = ['a "small" bird', "back\\slash é"]
    with stand_in.rest_server(service) as url:
        code, answer = ask("captions", *texts)
        mean = pcme.model.encode_captions(texts).mean()
        assert code == 0
        np.testing.assert_allclose(answer["outputs"]["mean"], mean, atol=1e-5)
        code, answer = ask("index_images", *birds.paths[:2])
        assert code == 0
        assert np.shape(answer["outputs"]["gallery"]) == (2, 9)
        (tmp_path / "no.jpg").write_text("no picture")
        code, answer = ask("images", tmp_path / "no.jpg")
        assert code != 0
        assert "JPEG or PNG" in answer["error"]


def test_the_rest_client_sends_nothing_for_a_file_that_is_not_there(tmp_path):
    (tmp_path / "there.jpg").write_bytes(picture())
    (tmp_path / "bin").mkdir()
    curl = tmp_path / "bin" / "curl"
    curl.write_text(f"#!/bin/sh\ntouch {tmp_path / 'asked'}\n")
    curl.chmod(0o755)
    for missing in (tmp_path / "missing.jpg", tmp_path):
        done = subprocess.run(
            [REST_CLIENT, "http://localhost:1", "images", tmp_path / "there.jpg", missing],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
        )
        assert done.returncode == 2
        assert done.stderr == f"error: {missing}: no such file, or it cannot be read\n"
        assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "JPEG or PNG"),
        (b"not a picture", "JPEG or PNG"),
        (picture("TIFF"), "JPEG or PNG"),
        (picture("WEBP"), "JPEG or PNG"),
        (picture("JPEG")[:-200], "JPEG"),
        (picture("PNG")[:200], "PNG"),
        (declared(2**31 - 1, 2**31 - 1), "at most 50,000,000 pixels"),
        (declared(0, 5), "pixels"),
    ],
)
def test_what_is_no_sound_picture_is_rejected(client, contents, message):
    assert message in rejected(client.encode_images, [picture(), contents])
    assert np.isfinite(client.encode_images([picture()])["mean"]).all()  # it still serves


def test_odd_captions_have_a_finite_embedding(client):
    odd = ["", " ", "bird " * 10_000, b"\xff\xfe bird \xc3", "\0", "𝔟𝔦𝔯𝔡 鳥", "NaN", "x" * 100_000]
    found = client.encode_captions(odd)
    assert all(np.isfinite(value).all() for value in found.values())
    np.testing.assert_allclose(found["mean"][0], found["mean"][1], atol=1e-6)
    cut = client.encode_captions(["bird " * 12])
    np.testing.assert_allclose(found["mean"][2], cut["mean"][0], atol=1e-5)


def test_nothing_is_rejected(client):
    assert "at least one" in rejected(client.encode_images, [])
    assert "at least one" in rejected(client.encode_captions, [])
    assert "at least one" in rejected(client.match, [picture()], [])
    empty = {"pixels": np.zeros((0, 32, 32, 3), np.float32)}
    assert "at least one" in rejected(client.predict, "encode_pixels", empty)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0, 300.0])
def test_pixels_out_of_range_are_rejected(client, bad):
    pixels = np.zeros((2, 32, 32, 3), np.float32)
    pixels[1, 0, 0, 0] = bad
    assert "0 … 255" in rejected(client.predict, "encode_pixels", {"pixels": pixels})
