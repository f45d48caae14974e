"""The systems of `birds.py`, each built from the settings and the same towers.

Each builder is a function `(settings, towers, word_vectors) -> DualEncoder`, where `towers` are
arguments that all have: `image_backbone`, `tokenizer`, `dim` and `word_dim`.
"""

from dataclasses import replace

from zoo import losses, models, similarities


def _pcme(settings, towers, word_vectors, **options):
    """PCME, or the variant that `options` name; the log variance starts at −6 unless it is set."""
    bias = -6.0 if settings.log_variance_bias is None else settings.log_variance_bias
    return models.pcme(
        **towers,
        word_vectors=word_vectors,
        kl_weight=settings.kl_weight,
        uniformity_weight=settings.uniformity_weight,
        log_variance_bias=bias,
        seed=settings.seed,
        **options,
    )


def _pcmepp(settings, towers, _):
    """PCME++, which starts from no word vectors."""
    return models.pcmepp(
        **towers,
        scale=settings.scale,
        shift=settings.shift,
        pseudo_positive_weight=settings.pseudo_positive_weight,
        kl_weight=settings.kl_weight,
        log_variance_bias=settings.log_variance_bias,
        drop_rate=settings.drop_rate,
        drop_varies=False,
        seed=settings.seed,
    )


def _csd_softmax(settings, towers, _):
    """PCME++'s Gaussians, trained by a softmax over the logits of CSD."""
    model = _pcmepp(settings, towers, _)
    return models.DualEncoder(
        model.image_encoder,
        model.caption_encoder,
        similarity=model.similarity,
        loss=losses.InfoNCE(),
        auxiliaries=model.auxiliaries,
        tokenizer=model.tokenizer,
        uncertainty_measure=model.uncertainty_measure,
        name="csd_softmax",
    )


def _infonce(settings, towers, _):
    return models.infonce(
        **towers,
        temperature=settings.temperature,
        drop_rate=settings.drop_rate,
        drop_varies=False,
        seed=settings.seed,
    )


def _vse_infinity(settings, towers, _):
    return models.vse_infinity(
        **towers,
        margin=settings.margin,
        mining=settings.mining,
        drop_rate=settings.drop_rate,
        drop_varies=False,
        seed=settings.seed,
    )


def _vse(settings, towers, word_vectors):
    return models.vsepp(
        **towers, word_vectors=word_vectors, margin=settings.margin, mining=settings.mining
    )


def _gaussian_vsepp(settings, towers, _):
    return models.gaussian_vsepp(
        **towers,
        margin=settings.margin,
        mining=settings.mining,
        similarity=similarities.get("wasserstein_2"),
    )


def _sets(settings, towers, word_vectors, method):
    """DivE or PVSE, by `method`: `num_slots` elements per item."""
    sizes = {
        models.dive: {"num_slots": settings.num_slots},
        models.pvse: {"num_embeddings": settings.num_slots},
    }
    return method(
        **towers,
        word_vectors=word_vectors,
        margin=settings.margin,
        mining=settings.mining,
        seed=settings.seed,
        **sizes[method],
    )


BUILDERS = {
    "pcme": _pcme,
    "moment_matched": lambda *args: _pcme(*args, method="moment_matched"),
    "mean_only": lambda *args: _pcme(*args, covariance=None),
    "pcmepp": _pcmepp,
    "csd_softmax": _csd_softmax,
    "infonce": _infonce,
    "vse0": lambda settings, *args: _vse(replace(settings, mining="sum"), *args),
    "vsepp": _vse,
    "vse_infinity": _vse_infinity,
    "gaussian_vsepp": _gaussian_vsepp,
    "pvse": lambda *args: _sets(*args, models.pvse),
    "dive": lambda *args: _sets(*args, models.dive),
}
