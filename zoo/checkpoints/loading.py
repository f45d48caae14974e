"""`from_checkpoint`: an ordinary model of a file in the layout of an official code."""

import os
import pathlib

import keras

from halo_search.errors import InputError
from halo_search.files.json_files import read_object
from zoo.checkpoints.family import Source
from zoo.checkpoints.open_clip import PCMEPP, PROLIP
from zoo.checkpoints.vsepp import PCME, PVSE, SGRAF, VSE_INFINITY, VSEPP, VSRN
from zoo.encoders.weight_arrays import SAFETENSORS, SUFFIXES, WeightArrays
from zoo.models.dual_encoder import DualEncoder

# The names of an earlier one include those of a later one.
_ALL = (PROLIP, PCMEPP, PCME, PVSE, SGRAF, VSE_INFINITY, VSRN, VSEPP)
FAMILIES = {family.name: family for family in _ALL}
CONFIG_FILE = "config.json"
_EXPECTED = "arrays of a published checkpoint"


def from_checkpoint(
    path: str | os.PathLike,
    family: str | None = None,
    tokenizer: keras.layers.Layer | str | os.PathLike | None = None,
) -> DualEncoder:
    """Loads a checkpoint that the authors of a paper published, as an ordinary model.

    ```python
    model = zoo.from_checkpoint("ProLIP-ViT-B-16-DC-1B-12_8B/", tokenizer="spiece.model")
    zoo.save_preset(model, "prolip_b16")
    ```

    | family | what was published | tokenizer |
    |---|---|---|
    | `"prolip"` | ProLIP, LongProLIP on Hugging Face | SigLIP's SentencePiece; CLIP's for H/14 |
    | `"pcmepp"` | PCME++ on Hugging Face | CLIP's merges |
    | `"pcme"` | PCME of COCO (ResNet-152) | its vocabulary, `coco_vocab.pkl` or JSON |
    | `"sgraf"` | SGRAF's and DAA's SAF and SGR, over regions | VSE++'s vocabulary, JSON |
    | `"vse_infinity"` | VSE∞ with BERT, over WSL's ResNeXt or regions | BERT's `vocab.txt` |
    | `"vsepp"`, `"pvse"` | VSE++ and PVSE with a ResNet | their vocabularies, JSON |
    | `"vsrn"` | VSRN of COCO and Flickr30K, over regions | VSE++'s vocabulary, JSON |

    Args:
        path: a `.safetensors` or `.npz` file of the official code's state dict, or a file of
            PyTorch (`.pth`), which needs torch and is read without running code in it; or a folder
            with one such file, and with `config.json` and the tokenizer's file where there are.
            Arrays of several state dicts in a list are named `img_enc.…`, `txt_enc.…`, `sim_enc.…`.
        family: one of the above (else a ValueError); None reads it from the names of the arrays.
        tokenizer: a layer from strings to token ids, or the path of the family's file. None takes
            the file in the folder; without one the model takes token ids and no strings.

    Returns:
        A `DualEncoder`, not compiled, in float32.

    Raises:
        InputError: if there is no such file, it is cut off, it holds code, its arrays are of no
            family or of another than `family`, some are missing, left over, not finite or of
            another shape, or `config.json` describes a network that cannot be hosted exactly.
        MissingPackageError: without torch for `.pth`, or keras-hub for the tokenizer.
    Relations: `family_of` says which family a file is of, without reading its arrays.
    """
    if family is not None and family not in FAMILIES:
        raise ValueError(f"`family` must be one of {sorted(FAMILIES)}; received {family!r}")
    file = _weights_file(path)
    arrays = WeightArrays(file, _EXPECTED)
    recognised = _family(arrays)
    if recognised is None or family not in (None, recognised):
        raise InputError(_other(arrays, family, recognised))
    beside = file.parent / CONFIG_FILE
    config = read_object(beside) if beside.is_file() else {}
    folder = file.parent if pathlib.Path(path).expanduser().is_dir() else None
    try:
        return FAMILIES[recognised].build(Source(arrays, config, tokenizer, folder))
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = " ".join(str(error).split())
        raise InputError(f"{file}: arrays of no {recognised} network: {reason}") from error


def family_of(path: str | os.PathLike) -> str | None:
    """The family of a published checkpoint, by the names of its arrays, one of `from_checkpoint`'s;
    None if it is no such file or folder. Raises InputError if it is damaged, or holds code, and
    MissingPackageError for a `.pth` file without torch."""
    try:
        file = _weights_file(path)
    except InputError:
        return None
    return _family(WeightArrays(file, _EXPECTED))


def read_published(path: pathlib.Path) -> DualEncoder | None:
    """A published checkpoint as `zoo.from_preset` opens it, or None of anything else."""
    return None if family_of(path) is None else from_checkpoint(path)


def _weights_file(path):
    """The one file of weights that a path names, or that lies in its folder."""
    path = pathlib.Path(os.fspath(path)).expanduser()
    if path.is_file() and path.suffix in SUFFIXES:
        return path
    if not path.is_dir():
        raise InputError(
            f"{path}: expected a file of weights ({', '.join(SUFFIXES)}), or a folder with one"
        )
    files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
    # Where both lie there they are the same weights, and this one needs no torch.
    files = [file for file in files if file.suffix == SAFETENSORS] or files
    if len(files) != 1:
        names = ", ".join(file.name for file in files[:3]) or "none"
        raise InputError(f"{path}: expected one file of weights; it has {len(files)}: {names}")
    return files[0]


def _family(arrays):
    """The first family whose array names the file has, or None."""
    names = set(arrays)
    return next((name for name, candidate in FAMILIES.items() if candidate.fits(names)), None)


def _other(arrays, family, recognised):
    """The message for a file that is not of `family`; `recognised` is the family that it is of, or
    None."""
    first = ", ".join(repr(name) for name in list(arrays)[:3])
    if family is None:
        return (
            f"{arrays.path}: its arrays are of no published family ({', '.join(FAMILIES)}); the "
            f"first are {first}"
        )
    marks = ", ".join(repr(mark) for mark in FAMILIES[family].marks)
    other = (
        f"; they are those of `family` {recognised!r}" if recognised else f"; the first are {first}"
    )
    return f"{arrays.path}: `family` {family!r} has arrays {marks}, which this file lacks{other}"
