"""Tiny random dual encoders of KerasHub, one a family, with preprocessors of tiny vocabularies."""

import io
import random

import keras
import numpy as np

SIZE, LENGTH, WORDS = 16, 9, 50
FAMILIES = ("clip", "siglip", "siglip2", "metaclip2")
_SENTENCES = [
    "a small red bird sits on a branch",
    "two dogs run on the beach in 2019",
    "the woman's hat isn't blue , it is green",
    "children play football near the old town hall",
    "snow and rain over the high mountains",
]
TEXTS = [
    "a red bird",
    "Two DOGS, in 2019!",
    "the woman's hat isn't blue",
    "children play football near the old town hall in snow and rain over the mountains",
    "été über alles",
    "",
]


IMAGES = np.random.default_rng(1).integers(0, 256, (4, SIZE, SIZE, 3), dtype="uint8")


def tiny_hub(family, seed=0):
    """`(backbone, preprocessor)` of KerasHub, random."""
    import keras_hub

    random.seed(seed)
    models, layers = keras_hub.models, keras_hub.layers
    size = {"hidden_dim": 16, "num_layers": 2, "num_heads": 2, "intermediate_dim": 32}
    vision = {"patch_size": 8, "image_shape": (SIZE, SIZE, 3), **size}
    text = {"embedding_dim": 16, "max_sequence_length": LENGTH, **size}
    if family == "clip":
        vocabulary, merges = _byte_pairs()
        backbone = models.CLIPBackbone(
            models.CLIPVisionEncoder(**vision),
            models.CLIPTextEncoder(vocabulary_size=len(vocabulary), **text),
            projection_dim=8,
        )
        preprocessor = models.CLIPPreprocessor(
            models.CLIPTokenizer(vocabulary, merges, pad_with_end_token=True),
            layers.CLIPImageConverter(
                (SIZE, SIZE), scale=[0.01, 0.02, 0.03], offset=[-1.0, 0.5, 0.1]
            ),
            sequence_length=LENGTH,
        )
    elif family == "metaclip2":
        backbone = models.MetaCLIP2Backbone(
            models.MetaCLIP2VisionEncoder(**vision),
            models.MetaCLIP2TextEncoder(vocabulary_size=WORDS + 1, **text),
            projection_dim=8,
        )
        preprocessor = models.MetaCLIP2CausalLMPreprocessor(
            models.MetaCLIP2Tokenizer(sentence_pieces(unk_id=0, bos_id=1, eos_id=2, pad_id=-1)),
            layers.MetaCLIP2ImageConverter(
                (SIZE, SIZE), scale=[0.01, 0.02, 0.03], offset=[-1.0, 0.5, 0.1]
            ),
            sequence_length=LENGTH,
        )
    else:
        backbone = models.SigLIPBackbone(
            models.SigLIPVisionEncoder(**vision),
            models.SigLIPTextEncoder(vocabulary_size=WORDS, projection_dim=16, **text),
        )
        if family == "siglip":
            pieces = sentence_pieces(unk_id=0, eos_id=1, bos_id=-1, pad_id=-1)
            tokenizer = models.SigLIPTokenizer(pieces)
        else:  # SigLIP 2 has Gemma's tokenizer, and reads letters as they are
            pieces = sentence_pieces(
                pad_id=0, eos_id=1, bos_id=2, unk_id=3, pad_piece="<pad>", eos_piece="<eos>",
                bos_piece="<bos>", user_defined_symbols=["<start_of_turn>", "<end_of_turn>"],
            )  # fmt: skip
            tokenizer = models.GemmaTokenizer(pieces)
        converter = layers.SigLIPImageConverter(
            (SIZE, SIZE), scale=1 / 127.5, offset=-1.0, crop_to_aspect_ratio=False
        )
        preprocessor = models.SigLIPPreprocessor(
            tokenizer, converter, LENGTH, canonicalize_text=family == "siglip"
        )
    _unlike_new(backbone, np.random.default_rng(seed))
    return backbone, preprocessor


def theirs(backbone, preprocessor, images, texts):
    """KerasHub's own `(ids, unit images, unit texts, logits (images, texts))`, called eagerly."""
    read = preprocessor({"images": images.astype("float32"), "prompts": texts})
    inputs = {name: np.asarray(read[name]) for name in ("images", "token_ids")}
    points = [
        np.asarray(backbone.get_vision_embeddings(keras.ops.convert_to_tensor(inputs["images"]))),
        np.asarray(backbone.get_text_embeddings(keras.ops.convert_to_tensor(inputs["token_ids"]))),
    ]
    points = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in points]
    return inputs["token_ids"], *points, np.asarray(backbone(inputs)["vision_logits"])


def compared(model, backbone, preprocessor):
    """KerasHub's images, texts and logits, to which the model's are equal."""
    ids, images, texts, logits = theirs(backbone, preprocessor, IMAGES, TEXTS)
    read = model.tokenize(TEXTS)
    np.testing.assert_array_equal(read, ids)
    found = model.encode_images(IMAGES), model.encode_captions(read)
    np.testing.assert_allclose(found[0], images, atol=1e-5)
    np.testing.assert_allclose(found[1], texts, atol=1e-5)
    np.testing.assert_allclose(model.similarity(*found), logits, rtol=1e-5, atol=1e-5)
    return images, texts, logits


def sentence_pieces(sentences=tuple(_SENTENCES * 4), vocab_size=WORDS, **options):
    """A SentencePiece model of 50 pieces, as bytes."""
    import sentencepiece

    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=written,
        vocab_size=vocab_size,
        minloglevel=2,
        **options,
    )
    return written.getvalue()


def siglip_pieces(sentences, vocab_size=40):
    """One as SigLIP's, of some sentences: </s> is 1 and fills rows, <unk> is 2."""
    ids = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    return sentence_pieces(sentences, vocab_size, hard_vocab_limit=False, **ids)


def _byte_pairs():
    from zoo.encoders.subwords import END, START, _byte_symbols

    symbols = list(_byte_symbols())
    merges = ["t h", "th e</w>", "r e", "re d</w>", "b i", "d o", "i n</w>", "o n</w>", "' s</w>"]
    words = [*symbols, *(s + "</w>" for s in symbols), *("".join(m.split()) for m in merges)]
    return {word: row for row, word in enumerate([*words, START, END])}, merges


def _unlike_new(backbone, rng):
    """Every weight random, none at its initial value; positions stay 0, 1, …"""
    for weight in backbone.weights:
        if "int" in weight.dtype:
            weight.assign(np.arange(weight.shape[-1])[None])
        elif weight.path.endswith("logit_scale"):
            weight.assign(np.log(20.0))
        elif weight.path.endswith("logit_bias"):
            weight.assign(-3.0)
        else:
            weight.assign(weight + rng.normal(0, 0.1, weight.shape))
