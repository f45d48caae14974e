"""A folder in the layout of ECCV Caption, with ten images of five captions."""

import json

import numpy as np

IMAGES = np.arange(100, 110)
CAPTIONS = np.arange(1000, 1050)
OUTSIDE = 9999  # a caption that is annotated but is not in the gallery
FILE_ORDER = np.array([6, 7, 0, 8, 3, 9, 5, 4, 1, 2])  # of the images in `coco_test_ids.npy`


def own_image(captions):
    return 100 + (np.asarray(captions) - 1000) // 5


def folds():
    """Rows and columns of the five folds, of two images each, as a pair of `np.ix_`."""
    for images in FILE_ORDER.reshape(5, 2):
        rows = np.sort(images)
        yield np.ix_(rows, np.flatnonzero(np.isin(np.arange(50) // 5, rows)))


def write(folder):
    """CxC adds the next image's first caption; ECCV asks three images and four captions."""
    np.save(folder / "coco_test_ids.npy", CAPTIONS.reshape(10, 5)[FILE_ORDER].ravel())
    original = {int(i): [int(c) for c in CAPTIONS if own_image(c) == i] for i in IMAGES}
    cxc = {i: [*c, 1000 + 5 * ((i - 99) % 10)] for i, c in original.items()}
    eccv = {
        100: [*original[100], *original[101], OUTSIDE],
        104: [1020, 1021],
        107: [1035, 1001, 1002],
    }
    for name, matches in (("original", original), ("cxc", cxc), ("eccv", eccv)):
        inverse = {}
        for image, captions in matches.items():
            for caption in captions:
                inverse.setdefault(caption, []).append(image)
        if name == "eccv":
            inverse = {caption: inverse[caption] for caption in (1000, 1005, 1020, 1035)}
        if name == "cxc":
            del inverse[1049]  # a query without positives
        for kind, table in (("image_to_caption", matches), ("caption_to_image", inverse)):
            (folder / f"{name}_{kind}.json").write_text(json.dumps(table))


def write_instances(path, images=IMAGES):
    """Image i shows the classes of the bits of i; the first image shows nothing."""
    present = [(i, c) for n, i in enumerate(IMAGES) for c in range(4) if n >> c & 1]
    path.write_text(
        json.dumps(
            {
                "images": [{"id": int(i)} for i in images],
                "categories": [{"id": 10 * c + 1, "name": f"class {c}"} for c in (3, 0, 2, 1)],
                "annotations": [
                    {"id": k, "image_id": int(i), "category_id": 10 * c + 1}
                    for k, (i, c) in enumerate(present)
                ],
            }
        )
    )
    return path


def instance_labels(positions):
    return np.array([[n >> c & 1 for c in range(4)] for n in positions], bool)
