"""Trained models by name or by folder."""

import os

import keras

from halo_search.errors import InputError
from zoo.models.dual_encoder import DualEncoder
from zoo.models.hub_models import backbone_model
from zoo.presets.folders import list_presets
from zoo.presets.openers import open_named
from zoo.presets.saving import save_preset

__all__ = ["from_preset", "list_presets", "save_preset"]


def from_preset(
    name_or_path: str | os.PathLike | keras.Model,
    compile: bool = False,
    preprocessor: keras.layers.Layer | None = None,
) -> DualEncoder:
    """Loads a trained `DualEncoder`, of the zoo or of others.

    ```python
    model = zoo.from_preset("toy_birds_pfe")
    ```

    Everything that takes a model takes what this takes: `Tower`, `Retriever.build`, and `MODEL` or
    `--model` of the commands.

    Args:
        name_or_path: a name out of `list_presets()`; a folder that `save_preset` wrote, or the run
            folder of a recipe; a `.keras` file; a KerasHub name of CLIP, SigLIP, SigLIP 2 or
            MetaCLIP 2, such as `"siglip2_base_patch16_224"`; a folder of KerasHub or of Hugging
            Face with one of these; a published checkpoint, see `zoo.from_checkpoint`; any of these
            folders on a hub, `"hf://user/model"` or `"kaggle://user/model/keras/variation"`; or a
            `CLIPBackbone`, `SigLIPBackbone` or `MetaCLIP2Backbone`, whose layers are then shared.
        compile: whether the model comes back compiled as it was saved, to train or `evaluate` it
            further. Encoding, ranking and searching need no optimizer.
        preprocessor: the KerasHub preprocessor of a backbone; None gives its family's usual pixels
            and no tokenizer.

    Returns:
        The model. Of KerasHub and Hugging Face it is of points: embeddings of length one, and a
        similarity that gives their logits.

    Raises:
        InputError: if there is neither such a name nor such a folder or file, it cannot be
            fetched, or the file is damaged or not a model of the zoo.
        MissingPackageError: if the model needs a package of an extra that is not installed.
    Released code differs: KerasHub's image converter makes squares bicubically or bilinearly
        without antialiasing; here `zoo.data.images.prepare` crops or stretches as the converter
        does, with antialiasing.
    """
    if isinstance(name_or_path, keras.Model):
        return backbone_model(name_or_path, preprocessor)
    if preprocessor is not None:
        raise InputError(
            "`preprocessor` needs a backbone that is given as a model; "
            f"{str(name_or_path)!r} has its preprocessor"
        )
    return open_named(name_or_path, compile)
