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
average is evaluated. Rerun the command to resume a stopped run.
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
    return train_and_evaluate(settings, describe_data(settings))


def describe_data(settings):
    """The description of COCO; without `--data-dir` of Toy Birds, which has unseen classes, or of
    Toy Scenes, in COCO's layout."""
    picture_options = settings.picture_options()
    if settings.data_dir or settings.toy == "birds":
        return settings.describe_data("coco", "toy_birds", **picture_options)
    return settings.describe_data(
        "coco", "toy_scenes", num_images=settings.toy_images, **picture_options
    )


def train_and_evaluate(settings, data_description, change_splits=None, measure_more=None):
    """Trains, evaluates once on the test split, and returns the results.

    Args:
        settings: a `Settings`.
        data_description: what to read, for `zoo.data.open`.
        change_splits: function of the run that replaces splits before the model is built.
        measure_more: function `(run, model) -> dict` of further results.
    """
    # The weights of the last epochs are averaged, so there is no best one to choose.
    run = training.start(settings, data_description, "last" if settings.averaged_epochs else None)
    if run.finished:
        return training.show(run)
    if change_splits is not None:
        change_splits(run)
    with run.replicas():
        run.model = build(settings, run.train).with_auxiliaries(*settings.ranking_terms())
        train_phases(settings, run)
    return training.finish(
        run, **settings.evaluation(), measure_more=measure_more, report=plots.draw_run
    )


def build(settings, train_split):
    """The untrained model of `--method`; all methods have the same towers."""
    tokenizer = tokenizer_of(settings, train_split.records)
    towers = {
        "image_backbone": image_backbone(settings),
        "tokenizer": tokenizer,
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
            vocabulary_size=tokenizer.vocabulary_size(),
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


def tokenizer_of(settings, records):
    """CLIP's tokenizer, or one of the words of the training captions."""
    if settings.is_clip:
        return clip_tokenizer.read_clip_tokenizer(settings.bpe, settings.max_words)
    return captions.word_tokenizer(records.captions, max_words=settings.max_words)


def caption_pooling(settings):
    """Without GPO CLIP's words are their end of text (`no_gpo` of models/txt_encoder.py)."""
    if settings.pooling == "mean":
        return "last" if settings.is_clip else "mean"
    return None


def image_backbone(settings):
    """CLIP's ViT with its new blocks for the variance, or a convolutional network."""
    if settings.is_clip:
        return encoders.clip_image(
            settings.network,
            settings.weights,
            settings.image_size,
            variance_blocks=settings.variance_blocks if settings.is_probabilistic else 0,
        )
    return encoders.convolutional(settings.network, settings.image_size, settings.weights)


def train_phases(settings, run):
    """The means alone, then the image backbone frozen, then everything, averaged at the end."""

    def training_batches(train_split, seed):
        return batches_of(settings, train_split, run.model.tokenizer, seed)

    def optimizer(model, learning_rate):
        return adamp(settings, model, learning_rate)

    training.run_phases(
        run,
        phases_of(settings, run),
        batches=training_batches,
        optimizer=optimizer,
        seed=settings.seed,
        order=PHASES,
    )


def phases_of(settings, run):
    """The phases; a backbone that is to be frozen is frozen in `means` too."""
    backbone = run.model.image_encoder.get_layer("backbone")
    frozen_model, frozen_splits = run.model, (run.train, run.validation)
    if settings.frozen_epochs and settings.cache_features:
        frozen_model, frozen_splits = run.without_backbone()
    phases = []
    if settings.mean_epochs:
        means, variance_layers = means_alone(settings, frozen_model)
        frozen = [backbone] if settings.frozen_epochs else []
        phases.append(
            training.Phase(
                "means",
                epochs=settings.mean_epochs,
                rate=rising_rate(settings),
                frozen=[*frozen, *variance_layers],
                model=means,
                splits=frozen_splits,
                then=lambda: hand_over(means.similarity, run.model),
            )
        )
    is_last = not settings.training_epochs
    frozen_phase = training.Phase(
        "frozen",
        epochs=settings.frozen_epochs,
        rate=falling_rate(settings) if is_last else settings.learning_rate,
        frozen=pretrained(backbone) if settings.frozen_epochs else [],
        loss=frozen_loss(settings, run.model),
        model=frozen_model,
        splits=frozen_splits,
    )
    training_phase = training.Phase(
        "training",
        epochs=settings.training_epochs,
        rate=falling_rate(settings),
        stateful_callbacks=lambda stream: averaging(settings, stream),
    )
    return [*phases, frozen_phase, training_phase]


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
    """The callback that averages the weights of the last epochs, by its name; none if there are no
    such epochs. BatchNorm's statistics are estimated on up to 20 batches."""
    if not settings.averaged_epochs:
        return {}
    first_epoch = settings.training_epochs - settings.averaged_epochs
    num_batches = min(20, stream.steps_per_epoch)
    return {
        "swa": training.StochasticWeightAveraging(first_epoch, lambda: stream(0).take(num_batches))
    }


def means_alone(settings, model):
    """The model of the means, which shares `model`'s towers, and the variances' layers.

    It stands for what CLIP's weights bring: means that rank better than chance before there is a
    variance.
    """
    towers = model.image_encoder, model.caption_encoder
    if isinstance(model.loss, losses.TripletRanking):  # hardest negatives would collapse here
        all_negatives = losses.TripletRanking(settings.margin, mining="sum")
        means = models.DualEncoder(
            *towers, model.similarity, all_negatives, tokenizer=model.tokenizer
        )
        return means, []
    if isinstance(model.loss, losses.MatchingCrossentropy):
        distance = similarities.SquaredEuclidean(settings.scale, settings.shift)
        loss = losses.MatchingCrossentropy(pair_weight=settings.pair_weight)
        means = models.DualEncoder(*towers, distance, loss, tokenizer=model.tokenizer)
        heads = [tower.get_layer("head") for tower in towers]
        return means, [layer for head in heads for layer in head.variance_parts]
    return model, []


def hand_over(learned, model):
    """Starts the model's logits at those that the means have learned.

    CSD adds the variances to the distance, so that its shift rises by scale · Σσ². The distance of
    PCME is a root, for which another scale and shift are right: it keeps its own.
    """
    if learned is model.similarity or not isinstance(model.similarity, SQUARED):
        return
    sum_of_variances = 0.0
    if isinstance(model.similarity, similarities.ClosedFormSampledDistance):
        heads = [tower.get_layer("head") for tower in (model.image_encoder, model.caption_encoder)]
        sum_of_variances = sum(
            head.dim * math.exp(head.covariance.initial_log_variance) for head in heads
        )
    scale, shift = float(learned.scale), float(learned.shift)
    model.similarity.scale.assign(scale)
    model.similarity.shift.assign(shift + scale * sum_of_variances)


def rising_rate(settings):
    """A linear warm-up, then a constant rate."""

    def schedule(epochs, steps):
        return training.WarmUpThenDrops(settings.learning_rate, settings.warm_up_epochs * steps)

    return schedule


def falling_rate(settings):
    """A linear warm-up, then steps for COCO or a cosine for RedCaps."""
    if settings.schedule == "cosine":
        return training.cosine_decay(settings.learning_rate, settings.warm_up_epochs)

    def schedule(epochs, steps):
        warm_up_steps = settings.warm_up_epochs * steps
        drop_step = (epochs - settings.last_epochs) * steps
        return training.WarmUpThenDrops(settings.learning_rate, warm_up_steps, [drop_step])

    return schedule


def batches_of(settings, train_split, tokenizer, seed):
    """The stream of batches: pairs of classes (Toy Birds) or of captions (COCO), augmented and
    mixed."""
    by_class = train_split.records.class_names is not None
    crops = settings.crop_and_flip and isinstance(train_split.source, sources.Pictures)
    stream = settings.stream(
        batches.class_pairs if by_class else batches.image_caption_pairs,
        train_split,
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


def adamp(settings, model, learning_rate):
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
