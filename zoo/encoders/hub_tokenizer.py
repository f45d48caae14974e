"""The tokenizer of a KerasHub preset as a layer from strings to rows of ids."""

import base64
from typing import Any

import keras
import tensorflow as tf

from zoo.encoders.subwords import SPACE, SubwordTokenizer
from zoo.errors import require

CLIP, LOWER, CANONICAL, WEB, NOTHING = CLEANINGS = (
    *("clip", "lower", "canonical", "web", "nothing"),
)
_PUNCTUATION = r"[!-/:-@\[-`{-~]"  # Python's `string.punctuation`


@keras.saving.register_keras_serializable(package="halo")
class HubTokenizer(SubwordTokenizer):
    """Strings to ids as a KerasHub preprocessor makes them, the same in eager and in graph mode.

    Saved with its vocabulary in whatever model holds it.

    Args:
        tokenizer: KerasHub's `CLIPTokenizer`, or one of SentencePiece.
        max_words: the length of every row; longer captions are cut.
        ends: the ids of the start and of the end; None where there is none.
        padding: the id that fills a row: SigLIP's is the end's.
        cleaning: of the text. `"clip"` is that of CLIP; `"lower"` lowers ASCII letters, as
            MetaCLIP 2; `"canonical"` takes out punctuation too, as KerasHub's SigLIP; `"web"` is
            OpenCLIP's and big_vision's: `_` is a space, all letters are lowered; `"nothing"`.

    Call arguments:
        inputs: strings `(batch,)`, as they come.

    Output: int32 `(batch, max_words)`.
    """

    def __init__(
        self,
        tokenizer: keras.layers.Layer,
        max_words: int,
        ends: tuple[int | None, int | None],
        padding: int = 0,
        cleaning: str = NOTHING,
        **kwargs: Any,
    ):
        if cleaning not in CLEANINGS:
            raise ValueError(f"`cleaning` must be one of {CLEANINGS}; received {cleaning!r}")
        super().__init__(tokenizer, ends, max_words, padding, **kwargs)
        self.cleaning = cleaning

    @classmethod
    def of(cls, preprocessor: keras.layers.Layer, most: int) -> "HubTokenizer":
        """That of a KerasHub preprocessor of CLIP, SigLIP or MetaCLIP 2.

        Args:
            preprocessor: KerasHub's.
            most: ids that the network has positions for.
        """
        tokenizer = preprocessor.tokenizer
        if hasattr(tokenizer, "merges"):
            cleaning = CLIP
        elif getattr(preprocessor, "canonicalize_text", False):
            cleaning = CANONICAL
        else:
            cleaning = LOWER if getattr(preprocessor, "to_lower", False) else NOTHING
        ends = (
            tokenizer.start_token_id if preprocessor.add_start_token else None,
            tokenizer.end_token_id if preprocessor.add_end_token else None,
        )
        return cls(
            tokenizer,
            min(preprocessor.sequence_length, most),
            tuple(None if one is None else int(one) for one in ends),
            int(tokenizer.pad_token_id),
            cleaning,
            name="tokenizer",
        )

    def vocabulary_size(self) -> int:
        """Number of token ids."""
        return self.tokenizer.vocabulary_size()

    def call(self, inputs):
        try:
            return super().call(inputs)
        except tf.errors.NotFoundError:
            # SentencePiece's resource is gone where TensorFlow's caches were cleared, as
            # `keras.utils.set_random_seed` does.
            self.tokenizer.set_proto(self.tokenizer.proto)
            self._trace()
            return super().call(inputs)

    def tokens(self, text):
        if self.cleaning == CLIP:
            return self.clip_tokens(text)
        if self.cleaning == LOWER:
            text = tf.strings.lower(text)
        elif self.cleaning == CANONICAL:
            keras_hub = require("keras_hub", extra="text")
            # It reads nothing of the preprocessor, and its pattern stands nowhere else.
            text = keras_hub.models.SigLIPPreprocessor.canonicalize_inputs(None, text)
        elif self.cleaning == WEB:
            text = tf.strings.regex_replace(text, "_", " ")
            text = tf.strings.regex_replace(text, _PUNCTUATION, "")
            text = tf.strings.lower(text, encoding="utf-8")
            text = tf.strings.strip(tf.strings.regex_replace(text, f"[{SPACE}]+", " "))
        return self.tokenizer(text)

    def get_config(self) -> dict[str, Any]:
        tokenizer = self.tokenizer
        if hasattr(tokenizer, "merges"):
            words = {"vocabulary": dict(tokenizer.vocabulary), "merges": list(tokenizer.merges)}
        else:
            words = {"proto": base64.b64encode(tokenizer.proto).decode("ascii")}
        return {
            "name": self.name,
            "tokenizer": keras.saving.serialize_keras_object(tokenizer),
            "words": words,
            "max_words": self.max_words,
            "ends": list(self.ends),
            "padding": self.padding,
            "cleaning": self.cleaning,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "HubTokenizer":
        config = dict(config)
        words = config.pop("words")
        require("keras_hub", extra="text")  # whose classes the config names
        tokenizer = keras.saving.deserialize_keras_object(config.pop("tokenizer"))
        if "proto" in words:
            tokenizer.set_proto(base64.b64decode(words["proto"]))
        else:
            tokenizer.set_vocabulary_and_merges(words["vocabulary"], words["merges"])
        return cls(tokenizer, **config)
