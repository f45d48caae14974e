"""Latency and throughput of the exported model beside `model.predict`, and memory under load."""

import gc
import os
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from benchmarks.report import Report
from export import export_model, probes
from zoo import models
from zoo.data import captions, images

SEED = 0
SIZE, PICTURE = 64, 256
BATCHES = (1, 32)
CALLS = {1: 200, 32: 40}
REQUESTS, THREADS = 10_000, 8


def main():
    """Two tables: latency of every call in turns, and a long run of concurrent requests."""
    keras.utils.set_random_seed(SEED)
    texts = probes.sentences(256, seed=SEED)
    tokenizer = captions.word_tokenizer(texts, max_words=24)
    model = models.pcme("tiny", tokenizer, dim=64, word_dim=64, image_size=SIZE)
    files = probes.pictures(max(BATCHES), size=PICTURE, seed=SEED)
    with tempfile.TemporaryDirectory() as folder:
        path = export_model(model, Path(folder) / "pcme")
        loaded = tf.saved_model.load(str(path))
        return [latencies(model, loaded, files, texts), endurance(loaded, files, texts)]


def latencies(model, loaded, files, texts):
    report = Report(
        f"Latency of one request: PCME, tiny backbone, {SIZE} pixels, JPEGs of {PICTURE} pixels, "
        "24 words",
        SEED,
    )
    for side in ("images", "captions"):
        for batch in BATCHES:
            raw = (files if side == "images" else texts)[:batch]
            functions = {
                f"SavedModel, encode_{side}": _served(loaded, side, raw),
                f"Keras, {side}": _predicted(model, side, raw),
            }
            times = _in_turns(functions, CALLS[batch])
            keras_median = np.median(times[f"Keras, {side}"])
            for name, seconds in times.items():
                report.add(
                    what=name,
                    batch=batch,
                    p50_ms=1e3 * float(np.median(seconds)),
                    p99_ms=1e3 * float(np.percentile(seconds, 99)),
                    items_per_second=batch * len(seconds) / float(np.sum(seconds)),
                    times_faster_than_keras=float(keras_median / np.median(seconds)),
                )
    report.notes.append(
        f"{CALLS} calls by batch, in turns. Both start from bytes or strings: Keras' side decodes "
        "by zoo.data.images.prepare in one tf.function, or tokenises, then calls predict."
    )
    return report


def endurance(loaded, files, texts):
    """Requests from several threads; resident memory after each tenth of them."""
    requests = [
        _served(loaded, "images", files[:1]),
        _served(loaded, "captions", texts[:1]),
        _served(loaded, "captions", texts[:4]),
    ]
    errors, seconds, lock = [], [], threading.Lock()

    def ask(number):
        start = time.perf_counter()
        try:
            requests[number % len(requests)]()
        except Exception as error:
            with lock:
                errors.append(error)
        with lock:
            seconds.append(time.perf_counter() - start)

    report = Report(f"{REQUESTS:,} requests from {THREADS} threads", SEED)
    tenth = REQUESTS // 10
    with ThreadPoolExecutor(THREADS) as pool:
        for part in range(10):
            start, before = time.perf_counter(), len(seconds)
            list(pool.map(ask, range(part * tenth, (part + 1) * tenth)))
            gc.collect()
            report.add(
                requests=len(seconds),
                errors=len(errors),
                per_second=tenth / (time.perf_counter() - start),
                p50_ms=1e3 * float(np.median(seconds[before:])),
                p99_ms=1e3 * float(np.percentile(seconds[before:], 99)),
                resident_mib=_resident_mib(),
            )
    report.notes.append("A third each: one image, one caption, four captions.")
    return report


def _served(loaded, side, raw):
    signature, request = loaded.signatures[f"encode_{side}"], tf.constant(raw)
    return lambda: signature(**{side: request})["mean"].numpy()


def _predicted(model, side, raw):
    request = tf.constant(raw)
    if side == "captions":
        return lambda: model.caption_encoder.predict(model.tokenizer(request), verbose=0)["mean"]

    @tf.function(autograph=False)
    def pixels(contents):
        spec = tf.TensorSpec((SIZE, SIZE, 3), tf.uint8)
        return tf.map_fn(
            lambda content: images.prepare(content, SIZE), contents, fn_output_signature=spec
        )

    return lambda: model.image_encoder.predict(pixels(request), verbose=0)["mean"]


def _in_turns(functions, calls):
    for function in functions.values():
        for _ in range(5):
            function()
    seconds = {name: [] for name in functions}
    for _ in range(calls):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def _resident_mib():
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return None
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
