"""PCME++ on COCO, or on Toy Birds when no data are given; its baselines and ablations by flags.

    python recipes/pcmepp_coco.py                                # Toy Birds, minutes on two cores
    python recipes/pcmepp_coco.py --data-dir coco --backbone vit_b_16 --weights clip.safetensors \\
        --bpe bpe_simple_vocab_16e6.txt.gz
    python recipes/pcmepp_coco.py --toy scenes --max-words 48 --batch-size 128 --steps-per-epoch 32
    python recipes/pcmepp_coco.py --method infonce               # a baseline
    python recipes/pcmepp_coco.py --pseudo-positive-weight 0     # an ablation

Chun, "Improved Probabilistic Image-Text Representations", ICLR 2024. `--data-dir` holds
`dataset_coco.json` (Karpathy's) and the images of train2014 and val2014. The image backbone is
frozen at first, then everything is trained, the weights of the last epochs are averaged, and the
average is evaluated. The same command resumes a run that was stopped.
"""

import dataclasses
import math

from pcmepp_settings import DISTANCES, Settings
from zoo import cli, encoders, losses, models, plots, similarities, training
from zoo.data import batches, captions, sources
from zoo.data.pipeline.augmentation import SizeAugmentation
from zoo.data.text import clip_tokenizer

PHASES = ("frozen", "means", "training")  # as their seeds count them
SQUARED = (
    similarities.ClosedFormSampledDistance,
    similarities.SquaredEuclidean,
    similarities.SquaredWasserstein2,
)


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return train(settings, data(settings))


def data(settings):
    """COCO; without data Toy Birds, which has unseen classes, or Toy Scenes, in COCO's layout."""
    shown = settings.pictures()
    if settings.data_dir or settings.toy == "birds":
        return settings.data("coco", "toy_birds", **shown)
    return settings.data("coco", "toy_scenes", num_images=settings.toy_images, **shown)


def train(settings, data, prepare=lambda run: None, measure_more=None, make=None):
    """Builds, by `make(settings, train)` in place of `build`, fits and evaluates; `prepare(run)`
    may replace splits, and `measure_more(run, model)` is a dict of further results."""
    # The weights of the last epochs are averaged, so there is no best one to choose.
    run = training.start(settings, data, "last" if settings.averaged_epochs else None)
    if run.finished:
        return training.show(run)
    prepare(run)
    with run.replicas():
        model = (make or build)(settings, run.train)
        run.model = model.with_auxiliaries(*settings.ranking_terms())
        train_phases(settings, run)
    more = {"measure_more": measure_more, "report": plots.draw_run}
    return training.finish(run, **settings.evaluation(), **more)


def tokenizer(settings, records):
    if settings.is_clip:
        return clip_tokenizer.read_clip_tokenizer(settings.bpe, settings.max_words)
    return captions.word_tokenizer(records.captions, max_words=settings.max_words)


def build(settings, train):
    words = tokenizer(settings, train.records)
    towers = {
        "image_backbone": image_backbone(settings),
        "tokenizer": words,
        "dim": settings.dim,
        "word_dim": settings.word_dim,
        "pooling": settings.pooling,
        "caption_pooling": caption_pooling(settings),
        "drop_rate": settings.drop_rate,
        "drop_varies": settings.drop_varies,
        "seed": settings.seed,
    }
    if settings.is_clip:
        towers["caption_backbone"] = encoders.clip_text(
            settings.network,
            settings.weights,
            vocabulary_size=words.vocabulary_size(),
            max_length=settings.max_words,
            variance_blocks=settings.variance_blocks if settings.is_probabilistic else 0,
        )
    if settings.method == "infonce":
        return models.infonce(temperature=settings.temperature, **towers)
    if settings.method == "vse_infinity":
        return models.vse_infinity(margin=settings.margin, **towers)
    return models.pcmepp(
        distance=DISTANCES[settings.method],
        scale=settings.scale,
        shift=settings.shift,
        num_samples=settings.num_samples,
        pseudo_positive_weight=settings.pseudo_positive_weight,
        kl_weight=settings.kl_weight,
        kl_reduction=settings.kl_reduction,
        reduction=settings.pair_reduction,
        pair_weight=settings.pair_weight,
        log_variance_bias=settings.log_variance_bias,
        **towers,
    )


def caption_pooling(settings):
    """Without GPO CLIP's words are their end of text (`no_gpo` of models/txt_encoder.py)."""
    if settings.pooling == "mean":
        return "last" if settings.is_clip else "mean"
    return None


def image_backbone(settings):
    if settings.is_clip:
        return encoders.clip_image(
            settings.network,
            settings.weights,
            settings.image_size,
            variance_blocks=settings.variance_blocks if settings.is_probabilistic else 0,
        )
    return encoders.convolutional(settings.network, settings.image_size, settings.weights)


def train_phases(settings, run):
    """The means alone, the image backbone frozen, then everything, averaged at the end.

    A backbone that is to be frozen is so while the means are alone too.
    """
    model = run.model
    backbone = model.image_encoder.get_layer("backbone")
    early, splits = model, (run.train, run.validation)
    if settings.frozen_epochs and settings.cache_features:
        early, splits = run.without_backbone()
    rate, phases = settings.learning_rate, []
    if settings.mean_epochs:
        means, variances = means_alone(settings, early)
        phases.append(
            training.Phase(
                "means",
                settings.mean_epochs,
                rate=lambda epochs, steps: training.WarmUpThenDrops(
                    rate, settings.warm_up_epochs * steps
                ),
                frozen=[*([backbone] if settings.frozen_epochs else []), *variances],
                model=means,
                splits=splits,
                then=lambda: hand_over(means.similarity, model),
            )
        )
    is_last = not settings.training_epochs
    phases += [
        training.Phase(
            "frozen",
            settings.frozen_epochs,
            rate=falling_rate(settings) if is_last else rate,
            frozen=pretrained(backbone) if settings.frozen_epochs else [],
            loss=frozen_loss(settings, model),
            model=early,
            splits=splits,
        ),
        training.Phase(
            "training",
            settings.training_epochs,
            rate=falling_rate(settings),
            stateful_callbacks=lambda stream: averaging(settings, stream),
        ),
    ]

    def stream(train, seed):
        return training_batches(settings, model.tokenizer, train, seed)

    def adamp(model, rate):
        return optimizer(settings, model, rate)

    training.fit(run, phases, stream, adamp, settings.seed, order=PHASES)


def frozen_loss(settings, model):
    """The loss while the image backbone is frozen; None for the model's own.

    VSE∞ mines hardest negatives only after that (`vse_mean_warmup_epochs` of the released code).
    """
    if settings.hinges_while_frozen and isinstance(model.loss, losses.TripletRanking):
        return losses.TripletRanking(settings.margin, mining="sum")
    return None


def pretrained(backbone):
    """The layers that a backbone has weights for: CLIP's new blocks of the variance train."""
    return [layer for layer in backbone.layers if "variance" not in layer.name]


def averaging(settings, stream):
    """The weights of the last epochs are averaged."""
    if not settings.averaged_epochs:
        return {}
    steps, first = stream.steps_per_epoch, settings.training_epochs - settings.averaged_epochs
    own = training.StochasticWeightAveraging(first, lambda: stream(0).take(min(20, steps)))
    return {"swa": own}


def means_alone(settings, model):
    """What CLIP's weights bring: means that rank better than chance before there is a variance.
    Returns the model of the means, which shares `model`'s towers, and the variances' layers."""
    towers = model.image_encoder, model.caption_encoder
    if isinstance(model.loss, losses.TripletRanking):  # hardest negatives would collapse here
        sum_of_hinges = losses.TripletRanking(settings.margin, mining="sum")
        words = model.tokenizer
        return models.DualEncoder(*towers, model.similarity, sum_of_hinges, tokenizer=words), []
    if isinstance(model.loss, losses.MatchingCrossentropy):
        distance = similarities.SquaredEuclidean(settings.scale, settings.shift)
        loss = losses.MatchingCrossentropy(pair_weight=settings.pair_weight)
        means = models.DualEncoder(*towers, distance, loss, tokenizer=model.tokenizer)
        return means, [part for tower in towers for part in tower.get_layer("head").variance_parts]
    return model, []


def hand_over(learned, model):
    """Begins with the logits that the means have learned: CSD's shift makes up for its Σσ²."""
    if learned is model.similarity:
        return
    if not isinstance(model.similarity, SQUARED):
        return  # PCME's distance is a root, for which another scale and shift are right
    total = 0.0
    if isinstance(model.similarity, similarities.ClosedFormSampledDistance):
        heads = (tower.get_layer("head") for tower in (model.image_encoder, model.caption_encoder))
        total = sum(head.dim * math.exp(head.covariance.initial_log_variance) for head in heads)
    scale, shift = float(learned.scale), float(learned.shift)
    model.similarity.scale.assign(scale)
    model.similarity.shift.assign(shift + scale * total)


def falling_rate(settings):
    """A linear warm-up, then steps for COCO or a cosine for RedCaps."""
    if settings.schedule == "cosine":
        return training.cosine_decay(settings.learning_rate, settings.warm_up_epochs)

    def steps_down(epochs, steps):
        drop = (epochs - settings.last_epochs) * steps
        rising = settings.warm_up_epochs * steps
        return training.WarmUpThenDrops(settings.learning_rate, rising, [drop])

    return steps_down


def training_batches(settings, tokenizer, train, seed):
    """Pairs of classes (Toy Birds) or of captions (COCO), augmented and mixed."""
    by_class = train.records.class_names is not None
    crops = settings.crop_and_flip and isinstance(train.source, sources.Pictures)
    stream = settings.stream(
        batches.class_pairs if by_class else batches.image_caption_pairs,
        train,
        tokenizer,
        seed,
        SizeAugmentation(
            crop=settings.crop if crops else None,
            flip=crops,
            word_dropping=settings.word_dropping,
        ),
    )
    if not settings.mixed_share:
        return stream
    mixing = {
        "share": settings.mixed_share,
        "alpha": settings.mixing_beta,
        "mixup": settings.mixup,
        "whole_batches": settings.mix_whole_batches,
    }
    return dataclasses.replace(stream, mixing=mixing)


def optimizer(settings, model, learning_rate):
    """AdamP with the paper's groups: backbones slower, their first blocks slowest of all."""
    rates = training.dual_encoder_rates(
        model,
        settings.image_rate,
        settings.caption_rate,
        settings.layer_decay,
        settings.decay_last_block,
    )
    optimizer = training.LayerwiseAdamP(
        learning_rate,
        rates=rates,
        beta_2=settings.beta_2,
        epsilon=settings.epsilon,
        weight_decay=settings.weight_decay,
        global_clipnorm=settings.clip_norm,
    )
    optimizer.exclude_from_weight_decay(var_list=model.similarity.trainable_variables)
    return optimizer


if __name__ == "__main__":
    cli.run(main)
