"""A model that `halo export` wrote, by its signatures, here or in an object store."""

import hashlib
import json
import posixpath
from typing import Any

import numpy as np

from zoo.errors import InputError
from zoo.models.hub_files import HUBS

EXPORT_FILE = "export.json"


def is_export(folder: Any) -> bool:
    """Whether a folder holds an exported version."""
    from tensorflow import errors, io

    path = str(folder)
    if path.startswith(HUBS):
        return False
    try:
        return io.gfile.exists(posixpath.join(path, EXPORT_FILE))
    except errors.OpError:  # a store that this TensorFlow does not read
        return False


class ExportedModel:
    """The signatures of an exported version, from files and texts to embeddings.

    ```python
    model = zoo.models.ExportedModel("served/my_model/1")
    captions = zoo.Tower(model, "captions").of_texts(["a dog on a beach"])
    ```

    Args:
        folder: of one version.

    Call arguments:
        side: `"images"` or `"captions"`.
        batch: bytes of pictures, or strings.

    Output: an embedding, with `"uncertainty"` where the export computes it.
    """

    def __init__(self, folder: Any):
        import tensorflow as tf

        self.folder = self.origin = str(folder)
        with tf.io.gfile.GFile(posixpath.join(self.folder, EXPORT_FILE)) as file:
            facts = json.loads(file.read())
        if "tensorflow_text" in facts["loads_with"]:
            import tensorflow_text  # noqa: F401 - the tokenizer's operations
        self._loaded = tf.saved_model.load(self.folder)  # referenced, or its variables are deleted

    def reads(self, side: str) -> str:
        """`"pictures"`, `"texts"` or the dtype of arrays.

        Raises:
            InputError: if it takes no requests of this side.
        """
        spec = self._spec(side)
        kinds = {"images": "pictures", "captions": "texts"}
        return kinds[side] if spec.dtype.name == "string" else f"{spec.dtype.name} arrays"

    def batch_size(self, side: str) -> int | None:
        """The only batch size that it takes, or None."""
        return self._spec(side).shape[0]

    def __call__(self, side: str, batch: Any) -> dict[str, np.ndarray]:
        import tensorflow as tf

        fixed, rows = self.batch_size(side), list(batch)
        if fixed is not None and not 1 <= len(rows) <= fixed:
            raise ValueError(
                f"{self.folder}: takes 1 to {fixed} {side} at once; received {len(rows)}"
            )
        filled = rows + [rows[0]] * ((fixed or len(rows)) - len(rows))
        outputs = self._signature(side)(**{side: tf.constant(filled)})
        return {key: value.numpy()[: len(rows)] for key, value in outputs.items()}

    def sha256(self, side: str) -> str:
        """The hash of a side and of the export's files."""
        import tensorflow as tf

        digest, found = hashlib.sha256(side.encode()), []
        for folder, _, names in tf.io.gfile.walk(self.folder):
            found += [posixpath.join(folder, name) for name in names]
        for path in sorted(found):
            with tf.io.gfile.GFile(path, "rb") as file:
                digest.update(hashlib.sha256(file.read()).digest())
        return digest.hexdigest()

    def _signature(self, side):
        name = f"encode_{side}"
        if name not in self._loaded.signatures:
            found = ", ".join(sorted(self._loaded.signatures))
            raise InputError(f"{self.folder}: expected a signature {name!r}, found {found}")
        return self._loaded.signatures[name]

    def _spec(self, side):
        (spec,) = self._signature(side).structured_input_signature[1].values()
        return spec
