"""Galleries of LanceDB in an object store: what they say is what a gallery on the disk says."""

import os
import signal
import subprocess
import sys
import urllib.request

import numpy as np
import pytest

from halo_search.confidence import calibrate_on
from halo_search.embeddings.arrays import take
from halo_search.errors import InputError
from halo_search.files import stores
from s3_server import s3_server

pytest.importorskip("lancedb", reason='pip install ".[large]"')
pytest.importorskip("moto", reason='pip install ".[dev]"')

from halo_search.index.lance import LanceIndex

BUCKET = "halo"


@pytest.fixture(scope="module")
def store():
    with s3_server(BUCKET) as variables:
        stores._filesystem.cache_clear()  # each test run has a port of its own
        yield variables
    stores._filesystem.cache_clear()


def test_it_is_built_asked_added_to_and_loaded_as_on_the_disk(store, gaussians, rng, tmp_path):
    gallery, more, own = gaussians(400), gaussians(30), gaussians(200)
    noise = 1.5 * rng.normal(size=own["mean"].shape)
    queries = {**own, "mean": (own["mean"] + noise).astype("float32")}
    years = np.arange(400) % 7
    address = f"s3://{BUCKET}/gallery"
    built = []
    for folder in (tmp_path / "local", address):
        index = LanceIndex.build(folder, gallery, "csd", columns={"year": years})
        index.add(more, columns={"year": np.full(30, 9)})
        index.remove([3, 17])
        index.save(folder)
        built.append(LanceIndex.load(folder))
    local, remote = built
    for where in (None, "year = 3", "year = 9"):
        scores, ids = local.search(queries, 12, where)
        found, there = remote.search(queries, 12, where)
        np.testing.assert_array_equal(there, ids)
        np.testing.assert_array_equal(found, scores)
    judged = [calibrate_on(index, queries, own) for index in built]
    asked = take(queries, slice(0, 50))
    np.testing.assert_array_equal(
        remote.probability(asked, judged[1]), local.probability(asked, judged[0])
    )
    with pytest.raises(InputError, match=f"{address}: holds an index; choose another folder"):
        LanceIndex.build(address, gallery, "csd")
    with pytest.raises(InputError, match="is saved there only"):
        remote.save(tmp_path / "elsewhere")


KILLED = """
import sys, numpy as np
from halo_search.index.lance import LanceIndex
index = LanceIndex.load(sys.argv[1])
rng = np.random.default_rng(0)
def parts():
    while True:
        print("adding", flush=True)
        yield {"mean": rng.normal(size=(500, 8)).astype("float32")}
index.add(parts())
"""


def test_a_process_that_is_killed_while_it_adds_loses_nothing(store, rng):
    address = f"s3://{BUCKET}/killed"
    gallery = {"mean": rng.normal(size=(300, 8)).astype("float32")}
    before = LanceIndex.build(address, gallery, "cosine").search(gallery, 5)
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, address],
        stdout=subprocess.PIPE,
        env={**os.environ, **store},
    )
    for _ in range(4):
        assert child.stdout.readline() == b"adding\n"
    child.send_signal(signal.SIGKILL)
    child.wait()
    index = LanceIndex.load(address)
    assert len(index) == 300
    for now, then in zip(index.search(gallery, 5), before, strict=True):
        np.testing.assert_array_equal(now, then)
    index.add(gallery)
    index.save(address)
    assert len(LanceIndex.load(address)) == 600


def test_a_wrong_key_and_a_wrong_bucket_are_one_sentence(store, rng, monkeypatch):
    gallery = {"mean": rng.normal(size=(30, 8)).astype("float32")}
    address = f"s3://{BUCKET}/refused"
    LanceIndex.build(address, gallery, "cosine")
    with pytest.raises(InputError, match=r"^s3://nowhere/g/index\.json: .*NO_SUCH_BUCKET"):
        LanceIndex.build("s3://nowhere/g", gallery, "cosine")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "wrong")
    stores._filesystem.cache_clear()
    reset = f"{store['AWS_ENDPOINT_URL']}/moto-api/reset-auth"

    def check_keys_after(count):
        plain = {"Content-Type": "text/plain"}  # a form's body is not read
        urllib.request.urlopen(urllib.request.Request(reset, str(count).encode(), plain))

    check_keys_after(0)
    try:
        for attempt in (
            lambda: LanceIndex.load(address),
            lambda: LanceIndex.build(f"s3://{BUCKET}/new", gallery, "cosine"),
        ):
            with pytest.raises(InputError, match=r"the store refused these credentials") as caught:
                attempt()
            assert "\n" not in str(caught.value)
    finally:
        check_keys_after(10**9)
        stores._filesystem.cache_clear()
