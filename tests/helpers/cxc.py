"""The ratings of Crisscrossed Captions, from which ECCV Caption made its `cxc_*.json`."""

import csv
import pathlib


def read_cxc(path, minimum=3.0):
    """`(image_to_caption, caption_to_image)` of `sits_test.csv`: dicts from an id to a list of ids.

    `minimum`: pairs rated at least this are matches, on the scale of 0 to 5.

    Reference: Parekh et al., "Crisscrossed Captions", EACL 2021.
    """
    image_to_caption, caption_to_image = {}, {}
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            caption = int(row["caption"].rpartition(":")[2])
            image = int(pathlib.PurePath(row["image"]).stem.rpartition("_")[2])
            if float(row["agg_score"]) >= minimum:
                image_to_caption.setdefault(image, []).append(caption)
                caption_to_image.setdefault(caption, []).append(image)
    return image_to_caption, caption_to_image
