"""Folders of pretrained text networks: on the disk, or fetched once by their name."""

import os
import pathlib

import keras

from zoo.errors import InputError
from zoo.files.environment import cache_folder

SITE = "https://huggingface.co"
OWNER = "sentence-transformers"  # of a name without one
# The weights come last: where they are, everything has been asked for.
FILES = ("1_Pooling/config.json", "config.json", "tokenizer.json", "model.safetensors")
OPTIONAL = FILES[:1]


def text_folder(name_or_folder: str | os.PathLike) -> pathlib.Path:
    """The folder of a checkpoint, or that of a name on Hugging Face, `"all-MiniLM-L6-v2"` or
    `"intfloat/e5-small-v2"`, which is fetched the first time it is named.

    Raises:
        InputError: if there is no such folder, and nothing of that name can be fetched.
    """
    path = pathlib.Path(os.fspath(name_or_folder)).expanduser()
    name = str(name_or_folder)
    is_name = name.count("/") <= 1 and not name.startswith((".", "/", "~"))
    if path.exists() or not name or not is_name:
        return path
    name = name if "/" in name else f"{OWNER}/{name}"
    folder = cache_folder("text", *name.split("/"))
    if (folder / FILES[-1]).exists():
        return folder
    for file in FILES:
        place = folder / file
        if place.exists():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            keras.utils.get_file(
                place.name,
                f"{SITE}/{name}/resolve/main/{file}",
                cache_dir=place.parent,
                cache_subdir=".",
            )
        except Exception as error:  # `get_file` raises a bare Exception when offline
            if file in OPTIONAL and "404" in str(error):
                continue
            raise InputError(
                f"{name_or_folder}: no such folder, and {name} could not be fetched ({error})"
            ) from error
    return folder
