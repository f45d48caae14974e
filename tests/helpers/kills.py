"""Kills a short run at random moments until it is through, and compares it with one left alone.

`python kills.py FOLDER one 20` for one process, `… two 3` for two workers, of which one is killed
and the other ended, as a scheduler does. Prints JSON. TensorFlow is imported once: this process
computes nothing, and every run is a fork of it.
"""

import csv
import json
import os
import random
import signal
import sys
import time
import traceback
import zipfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from clusters import clusters
from zoo import models
from zoo.data.text.captions import WordTokenizer
from zoo.files import RunFolder
from zoo.training import Execution, fit_phase

EPOCHS, STEPS = 8, 1


def make_model():
    keras.utils.set_random_seed(0)
    image = keras.Input((8, 8, 3))
    x = keras.layers.Conv2D(4, 3, activation="relu")(keras.layers.Dropout(0.2)(image))
    backbone = keras.Model(image, x, name="backbone")
    words = WordTokenizer(["bird", "red"], max_words=4)
    model = models.pcme(backbone, words, dim=4, word_dim=4, image_size=8)
    model.compile(keras.optimizers.Adam(1e-3), run_eagerly=True)
    return model


def batches(start_step):
    def of_step(step):
        seed = tf.stack([step, 7])
        return {
            "images": tf.random.stateless_uniform((4, 8, 8, 3), seed),
            "captions": tf.random.stateless_uniform((4, 4), seed, 1, 4, tf.int32),
            "image_labels": tf.range(4),
            "caption_labels": tf.range(4),
        }

    return tf.data.Dataset.range(start_step, 1000).map(of_step)


def train(folder, strategy):
    execution = Execution(strategy=strategy)
    with execution.devices.scope():
        model = make_model()
    run = RunFolder.open(folder, {"seed": 0}) if execution.is_chief else RunFolder(folder)
    fit_phase(run, model, "training", batches, EPOCHS, STEPS, execution=execution)
    if execution.is_chief:
        run.write_json(
            "weights.json", [np.asarray(keras.ops.convert_to_numpy(v)) for v in model.variables]
        )
        run.finish({"loss": 0})


def fork(folder, strategy, config=None):
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        if config:
            os.environ["TF_CONFIG"] = config
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        train(folder, strategy)
        code = 0
    except BaseException:
        traceback.print_exc()  # which `_exit` would leave out
    finally:
        os._exit(code)


def start(folder, mode):
    if mode == "one":
        return [fork(folder, "one")]
    return [fork(folder, "multi_worker", config) for config in clusters()]


def wait(children, seconds=None):
    """The exit codes after some seconds, None of one that still runs."""
    codes, end = dict.fromkeys(children), time.monotonic() + (seconds or 120)
    while None in codes.values() and time.monotonic() < end:
        for child in [c for c, code in codes.items() if code is None]:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                codes[child] = os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    return codes


def kill(codes, victim):
    running = [child for child, code in codes.items() if code is None]
    for child in sorted(running, key=lambda child: child != victim):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def check_whole(folder):
    """Every file is whole, whatever the moment: temporary ones are named so."""
    for path in folder.rglob("[!.]*.*"):
        if path.suffix == ".npz":
            with zipfile.ZipFile(path) as archive:
                assert archive.testzip() is None, path
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".csv":
            rows = list(csv.reader(path.read_text().splitlines()))
            assert len({len(row) for row in rows}) == 1, path


def killed_run(folder, mode, kills, span, draw):
    """Kills runs of `folder`s until there were enough kills; the last run is through."""
    done, number, started = 0, 0, 0
    while True:
        here = folder / f"{number}"
        children = start(here, mode)
        started += 1
        last = done == kills
        codes = wait(children, None if last else draw.uniform(0.0, span))
        if None not in codes.values():
            assert not any(codes.values()), codes
            if last:
                return here, started
            number += 1  # it was through before it was to be killed
            continue
        assert not last, "the run does not end"
        kill(codes, draw.choice(children))
        done += 1
        check_whole(here)


def main(folder, mode, kills):
    began = time.monotonic()
    codes = wait(start(folder / "straight", mode))
    span = time.monotonic() - began
    assert not any(codes.values()), codes
    killed, started = killed_run(folder, mode, kills, span, random.Random(0))
    expected, found = (
        [np.array(v) for v in json.loads((run / "weights.json").read_text())]
        for run in (folder / "straight", killed)
    )
    with (folder / "straight/history.csv").open() as a, (killed / "history.csv").open() as b:
        losses = [[row["loss"] for row in csv.DictReader(file)] for file in (a, b)]
    print(
        json.dumps(
            {
                "seconds": span,
                "starts": started,
                "epochs": len(losses[1]),
                "same losses": losses[0] == losses[1],
                "difference": max(
                    float(np.abs(a - b).max()) for a, b in zip(expected, found, strict=True)
                ),
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
