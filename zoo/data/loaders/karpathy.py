"""Karpathy's JSON of a captioned data set: `dataset_coco.json`, `dataset_flickr30k.json`."""

from zoo.data.loaders.gather import Record, has_fields

SPLITS = ("train", "val", "test", "restval")


def is_karpathy(content):
    """Whether a JSON file has this format: images with their sentences inside."""
    entries = content.get("images") if isinstance(content, dict) else None
    return isinstance(entries, list) and any(
        has_fields(entry, sentences=object) for entry in entries
    )


def karpathy_records(path, content, split, problems, id_key):
    """The images of a split.

    Args:
        path: of the file, for messages.
        content: what it holds.
        split: one of `SPLITS`, or None for all; `"train"` has `restval` in it.
        problems: where bad entries are reported.
        id_key: the key of an image's id; where it is not there, the file name is the id.
    """
    splits = {None: SPLITS, "train": ("train", "restval")}.get(split, (split,))
    for record, _ in karpathy_entries(path, content, problems, id_key, splits):
        yield record


def karpathy_entries(path, content, problems, id_key, splits=SPLITS):
    """Yields the images of some splits, each with its split; see `karpathy_records`."""
    for number, entry in enumerate(content["images"]):
        where = f"{path}: images[{number}]"
        if not has_fields(entry, filename=str, split=str, sentences=list):
            problems.bad("bad entries", where, "expected 'filename', 'split' and 'sentences'")
        elif entry["split"] not in SPLITS:
            problems.bad("bad entries", where, f"unknown split {entry['split']!r}")
        elif not all(has_fields(sentence, raw=object) for sentence in entry["sentences"]):
            problems.bad("bad entries", where, "expected sentences with 'raw'")
        elif not has_fields({"filepath": "", **entry}, filepath=str):
            problems.bad("bad entries", where, "expected text as 'filepath'")
        elif entry["split"] in splits:
            name = entry["filename"]
            folder = entry.get("filepath")
            image_id = entry.get(id_key, name)
            if not has_fields({"id": image_id}, id=int) and image_id != name:
                problems.bad("bad entries", where, f"expected a number as {id_key!r}")
                continue
            sentences = entry["sentences"]
            numbered = all(has_fields(sentence, sentid=int) for sentence in sentences)
            record = Record(
                (f"{folder}/{name}", name) if folder else (name,),
                image_id,
                [sentence["raw"] for sentence in sentences],
                [sentence["sentid"] for sentence in sentences] if numbered else None,
                where,
            )
            yield record, entry["split"]
