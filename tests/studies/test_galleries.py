"""Studies of galleries and of classes, over vectors of a few seconds."""

import numpy as np

from probe_world import world
from studies import classes, galleries


def cells(text):
    """The cells of a table's rows, less its heading."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows[1:]]


def test_what_is_said_is_set_beside_what_is_right(tmp_path, capsys):
    images, captions = world(0, 1500)
    split = np.repeat(["train", "validation", "test"], [300, 900, 300])
    file, owners = tmp_path / "model.npz", np.arange(1500)
    np.savez(file, images=images, captions=captions, caption_image=owners, split=split)
    galleries.main([str(file), "--draws", "3", "--out", str(tmp_path)])
    found = cells(capsys.readouterr().out)
    names = ["100 test", "250 test", "300 test + 300 training", "150 test, each twice"]
    assert [row[0] for row in found] == names
    for name, before, _, said, interval, k, _ in found:
        probability, right = (float(x) for x in said.split(" (")[0].split(" / "))
        old, same = (float(x) for x in before.split(",")[0].split(" / "))
        assert abs(same - right) < 0.006
        assert abs(probability - right) < 0.06
        if name == "100 test":  # a calibration of 900 photos says too little
            assert old < right - 0.1
        assert float(interval.split(" of ")[0].split(",")[1]) > 0.5
        assert int(interval.split(" of ")[1]) == (1 if "training" in name else 3)
        assert abs(float(k.split(":")[1]) - 0.9) < 0.06
    assert (tmp_path / "galleries.md").read_text().count("\n") == 6


def test_classes_are_drawn_for_the_probes_and_for_the_gallery(tmp_path, capsys):
    rng = np.random.default_rng(0)
    centres, labels = rng.normal(size=(40, 16)), np.repeat(np.arange(40), 40)
    images, captions = (centres[labels] + 1.2 * rng.normal(size=(1600, 16)) for _ in range(2))
    split = np.where(labels < 20, "validation", "test")
    file = tmp_path / "birds.npz"
    said = {"images": images, "captions": captions, "split": split}
    np.savez(file, **said, image_labels=labels, caption_labels=labels)
    classes.main([str(file), "--per-class", "20", "5", "--draws", "3"])
    found = cells(capsys.readouterr().out)
    assert [row[0] for row in found] == ["20", "5"]
    for _, away, _, error, given, before, oracle in found:
        mean, least, most = (float(x) for x in away.split(","))
        assert least <= mean <= most
        assert abs(mean) < 0.15
        assert 0 <= float(error) < 0.3
        assert abs(float(given.split(",")[0])) < 0.1
        assert len(before.split(",")) == 3
        assert abs(float(oracle.split(",")[0])) < 0.05
