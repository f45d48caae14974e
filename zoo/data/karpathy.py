"""Karpathy's JSON of a captioned data set: `dataset_coco.json`, `dataset_flickr30k.json`."""

from zoo.data.gathering import Item, has_keys

SPLITS = ("train", "val", "test", "restval")


def is_karpathy(content):
    """Whether a JSON file has this format: images with their sentences inside."""
    entries = content.get("images") if isinstance(content, dict) else None
    return bool(entries) and isinstance(entries[0], dict) and "sentences" in entries[0]


def karpathy_items(path, content, split, problems, id_key):
    """The images of a split.

    Args:
        path: of the file, for messages.
        content: what it holds.
        split: one of `SPLITS`, or None for all; `"train"` has `restval` in it.
        problems: where bad entries are reported.
        id_key: the key of an image's id; where it is not there, the file name is the id.
    """
    splits = {None: SPLITS, "train": ("train", "restval")}.get(split, (split,))
    for number, entry in enumerate(content["images"]):
        where = f"{path}: images[{number}]"
        if not has_keys(entry, "filename", "split", "sentences"):
            problems.bad("bad entries", where, "expected 'filename', 'split' and 'sentences'")
        elif entry["split"] not in SPLITS:
            problems.bad("bad entries", where, f"unknown split {entry['split']!r}")
        elif not all(has_keys(sentence, "raw") for sentence in entry["sentences"]):
            problems.bad("bad entries", where, "expected sentences with 'raw'")
        elif entry["split"] in splits:
            name = entry["filename"]
            folder = entry.get("filepath")
            sentences = entry["sentences"]
            yield Item(
                (f"{folder}/{name}", name) if folder else (name,),
                entry.get(id_key, name),
                [sentence["raw"] for sentence in sentences],
                [s["sentid"] for s in sentences] if all("sentid" in s for s in sentences) else None,
                where,
            )
