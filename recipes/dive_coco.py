"""DivE on COCO, or on Toy Scenes when no data are given; PVSE and the ablations by flags.

    python recipes/dive_coco.py                                    # Toy Scenes' regions, a minute
    python recipes/dive_coco.py --features resnet152               # their pictures
    python recipes/dive_coco.py --data-dir coco_precomp --features regions
    python recipes/dive_coco.py --data-dir coco --image-weights imagenet
    python recipes/dive_coco.py --data-dir coco --features resnext_bert \\
        --image-weights resnext101_32x8d.safetensors --bert bert_base --bert-vocabulary vocab.txt
    python recipes/dive_coco.py --method pvse                      # PIE-Net and MIL instead
    python recipes/dive_coco.py --similarity chamfer --num-slots 2 # ablations
    python recipes/dive_coco.py --ensemble runs/one runs/other --out runs/both

Kim et al., "Improving Cross-Modal Retrieval with Set of Diverse Embeddings", CVPR 2023.
`--data-dir` holds Karpathy's `dataset_coco.json` and the images, or SCAN's files for
`--features regions`. Rerun the command to resume a stopped run. Besides the usual results,
metrics.json has what the sets are like: circular variance, retrieval by one element alone, and how
far the elements specialise.

The paper prints how it trains on regions; for pictures it refers to PVSE and VSE∞ and to a
supplement that we do not have, so `dive_settings.PROTOCOLS` takes what is of pictures from the code
of the three.
"""

from dive_settings import Settings
from halo_search.errors import InputError
from zoo import cli, encoders, evaluation, losses, models, plots, training
from zoo.data import batches, captions, read_bert_tokenizer
from zoo.data.pipeline.augmentation import SizeAugmentation
from zoo.models.run_folder import RunFolder

SMALL_BERT = {"num_layers": 2, "num_heads": 4, "hidden_dim": 64}


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return train_and_evaluate(settings, describe_data(settings, "coco"))


def describe_data(settings, loader):
    """The description of regions, or of pictures by a loader of `zoo.data.LOADERS`; on toy data, of
    Toy Scenes in the loader's layout."""
    picture_options = settings.picture_options()
    if settings.features == "regions":
        loader, picture_options = "regions", {}
    layout = {} if settings.data_dir else {"layout": loader}
    return settings.describe_data(loader, "toy_scenes", **picture_options, **layout)


def train_and_evaluate(settings, data_description):
    """Trains and evaluates once on the test split; or with `--ensemble` averages finished runs."""
    if settings.ensemble:
        folder = RunFolder.open(settings.out, settings, data=data_description)
        return training.finish_ensemble(folder, settings.ensemble, **settings.benchmark())
    run = training.start(settings, data_description)
    if run.finished:
        return training.show(run)
    with run.replicas():
        run.model = build(settings, run.train).with_auxiliaries(*settings.ranking_terms())
        train_phases(settings, run)
    return training.finish(
        run, **settings.evaluation(), measure_more=measure_sets, report=plots.draw_run
    )


def build(settings, train_split):
    """The untrained model: DivE, or PVSE on the same towers."""
    tokenizer, caption_backbone = tokenizer_and_bert(settings, train_split.records)
    word_vectors, word_dim = captions.word_vectors(
        settings.glove, tokenizer, settings.word_dim, settings.seed
    )
    towers = {
        "image_backbone": image_backbone(settings, train_split.source),
        "caption_backbone": caption_backbone,
        "tokenizer": tokenizer,
        "dim": settings.dim,
        "similarity": settings.set_similarity,
        "alpha": settings.alpha,
        "margin": settings.margin,
        "discrepancy_weight": settings.discrepancy_weight,
        "diversity_weight": settings.set_diversity_weight,
        "word_dim": word_dim,
        "word_vectors": word_vectors,
        "dropout": settings.dropout,
        "drop_rate": settings.drop_rate,
        "seed": settings.seed,
    }
    if settings.method == "pvse":
        return models.pvse(num_embeddings=settings.num_slots, **towers)
    return models.dive(
        num_slots=settings.num_slots,
        num_iterations=settings.num_iterations,
        normalize_over=settings.normalize_over,
        num_heads=settings.num_heads,
        head_dim=settings.head_dim,
        **towers,
    )


def image_backbone(settings, source):
    """The network over pictures, or the shape of precomputed regions, (regions, channels)."""
    if settings.features == "regions":
        return source.shape
    return encoders.convolutional(settings.network, source.shape[0], settings.image_weights)


def tokenizer_and_bert(settings, records):
    """The tokenizer, and for `resnext_bert` BERT; on toy data a small BERT over words. Raises
    InputError if a flag of BERT is missing."""
    if settings.features != "resnext_bert":
        return captions.word_tokenizer(records.captions, max_words=settings.max_words), None
    if settings.data_dir is None:
        tokenizer = captions.word_tokenizer(records.captions, max_words=settings.max_words)
        size = {"vocabulary_size": tokenizer.vocabulary_size(), **SMALL_BERT}
        return tokenizer, encoders.bert(max_length=settings.max_words, **size)
    if settings.bert is None or settings.bert_vocabulary is None:
        raise InputError("--features resnext_bert needs --bert and --bert-vocabulary")
    tokenizer = read_bert_tokenizer(settings.bert_vocabulary, settings.max_words)
    return tokenizer, encoders.bert(settings.bert, max_length=settings.max_words)


def train_phases(settings, run):
    """The hinges of all negatives first, against collapse, then of the hardest.

    The network over pictures is frozen for the first epochs, at a constant rate as in PVSE's way to
    train; then the rate falls: as a cosine, or to a tenth after `--drop-epoch`.
    """

    def training_batches(train_split, seed):
        return batches_of(settings, train_split, run.model.tokenizer, seed)

    def optimizer(model, learning_rate):
        return training.LayerwiseAdamW(
            learning_rate,
            weight_decay=settings.weight_decay,
            global_clipnorm=settings.clip_norm,
            rates=rates(settings, model),
        )

    training.run_phases(
        run,
        phases_of(settings, run.model),
        batches=training_batches,
        optimizer=optimizer,
        seed=settings.seed,
    )


def phases_of(settings, model):
    """The three phases: all negatives, mined negatives over a frozen network, everything."""
    constant_rate = settings.learning_rate
    first_epochs = max(settings.warm_up_epochs, settings.frozen_epochs)
    falling_rate = training.cosine_decay(constant_rate)
    if settings.drop_epoch is not None:
        epochs_before_drop = max(settings.drop_epoch - first_epochs, 0)
        falling_rate = training.drop_after(constant_rate, epochs_before_drop)
    frozen = [model.image_encoder.get_layer("backbone")] if settings.frozen_epochs else []
    all_negatives = losses.TripletRanking(settings.margin, "sum", reduction="mean")
    mined_negatives = losses.TripletRanking(settings.margin, settings.mining, reduction="mean")
    return [
        training.Phase(
            "warm_up",
            epochs=settings.warm_up_epochs,
            rate=constant_rate,
            loss=all_negatives,
            frozen=frozen,
        ),
        training.Phase(
            "frozen",
            epochs=first_epochs - settings.warm_up_epochs,
            rate=constant_rate,
            loss=mined_negatives,
            frozen=frozen,
        ),
        training.Phase(
            "training",
            epochs=settings.epochs - first_epochs,
            rate=falling_rate,
            loss=mined_negatives,
        ),
    ]


def batches_of(settings, train_split, tokenizer, seed):
    """The stream of batches: images with several of their captions, augmented."""
    crops = settings.crop_and_flip and settings.features != "regions"
    augmentation = SizeAugmentation(
        crop=settings.crop if crops else None, flip=crops, word_dropping=settings.word_dropping
    )
    return settings.stream(
        batches.images_with_captions,
        train_split,
        tokenizer,
        seed,
        augmentation,
        captions_per_image=settings.captions_per_image,
    )


def rates(settings, model):
    """The factor on the learning rate of each trainable variable, in order.

    `--set-rate` is of all of an image's layers but the network over pictures, so of the map of
    regions too, and of a caption's slots (`img_pie_lr_scale` and `txt_pie_lr_scale` of train.py).
    """
    image_encoder, caption_encoder = model.image_encoder, model.caption_encoder
    caption_slots = caption_encoder.get_layer("head").get_layer("caption_set")
    # A later group replaces the factor of an earlier one.
    groups = [(image_encoder, settings.set_rate), (caption_slots, settings.set_rate)]
    if settings.features != "regions":
        groups.append((image_encoder.get_layer("backbone"), settings.image_rate))
    if settings.features == "resnext_bert":
        groups.append((caption_encoder.get_layer("backbone"), settings.caption_rate))
    factors = {id(weight): rate for part, rate in groups for weight in part.trainable_variables}
    return [factors.get(id(weight), 1.0) for weight in model.trainable_variables]


def measure_sets(run, model):
    """What the sets of the test split are like, and their attention where it has pictures."""
    split = run.test
    sets = evaluation.encode_sets(model, split.records, split.source)
    size = encoders.map_size(model.image_encoder)
    if split.picture is not None and size is not None:
        figure = plots.attention_sheet_of(sets, split.records, split.picture, size)
        plots.save(figure, run.folder.plots / "attention.png")
    return {"sets": evaluation.measure_sets(sets, model.similarity)}


if __name__ == "__main__":
    cli.run(main)
