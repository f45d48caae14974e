"""Prompts: 80 sentence templates around the name of a class."""

import functools
import json
import pathlib
from collections.abc import Sequence

_FILES = {"zoo": "prompt_templates.json", "clip": "clip_prompt_templates.json"}
TEMPLATES = tuple(_FILES)


@functools.cache
def templates(name: str = "zoo") -> tuple[str, ...]:
    """80 sentences with `{}` for the name of a class: `"zoo"`, of birds, some deliberately
    uninformative, which filtering by uncertainty should leave out; `"clip"`, CLIP's for ImageNet.

    Reference: PCME++ (Chun, ICLR 2024), appendix C.4; Radford et al., ICML 2021.
    """
    path = pathlib.Path(__file__).with_name(_FILES[name])
    return tuple(json.loads(path.read_text(encoding="utf-8")))


def class_prompts(class_names: Sequence[str], sentences: Sequence[str] | None = None) -> list[str]:
    """Every sentence, by default of `templates()`, with every class name: all prompts of the first
    class, then all of the second. `"017.Red_tailed_Hawk"` is read as "red tailed hawk"."""
    sentences = templates() if sentences is None else sentences
    return [sentence.replace("{}", spoken(name)) for name in class_names for sentence in sentences]


def spoken(class_name: str) -> str:
    """A class name as one would say it: no number, no underscores, lower case."""
    number, dot, rest = class_name.partition(".")
    name = rest if dot and number.isdigit() else class_name
    return name.replace("_", " ").lower()
