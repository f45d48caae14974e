"""PCME++ from scratch on image–caption pairs, then zero-shot classification with filtered prompts.

    python recipes/pcmepp_redcaps.py                                        # Toy Birds
    python recipes/pcmepp_redcaps.py --data-dir redcaps --classes-dir CUB_200_2011 --bpe BPE

Chun, "Improved Probabilistic Image-Text Representations", ICLR 2024, section 4.4. `--data-dir`
holds `pairs.tsv`, with the columns `image` and `caption` (RedCaps is not distributed with its
images). `--classes-dir` is a set in CUB's layout, whose `test` classes are classified. Each class
name is put into 80 templates, and the most uncertain prompts are left out: as many of all classes,
or as many as is best for each. Half of the images choose how many, the other half are classified.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import pcmepp_coco
from zoo import cli, evaluation
from zoo.cli import setting
from zoo.data import cub, datasets
from zoo.data.prompts import class_prompts, templates
from zoo.embeddings import as_embedding
from zoo.metrics.zero_shot import choose_prompts, top_1, zero_shot_scores


@dataclass(frozen=True, kw_only=True)
class Settings(pcmepp_coco.Settings):
    """PCME++'s settings, from scratch, so that no backbone is slowed down or frozen."""

    out: Path = setting(
        Path("runs/pcmepp_redcaps"), "run folder to write or resume", identity=False
    )
    classes_dir: Path | None = setting(None, "set in CUB's layout to classify")
    image_rate: float = setting(1.0, "factor of the image backbone")
    caption_rate: float = setting(1.0, "factor of the text backbone")
    layer_decay: float = setting(1.0, "factor from a block to the one below")
    frozen_epochs: int = setting(0, "image backbone frozen")

    def __post_init__(self):
        super().__post_init__()
        if self.toy != "birds":
            raise ValueError(f"--toy must be birds, which have classes; received {self.toy}")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return pcmepp_coco.train(
        settings,
        data(settings),
        measure_more=lambda run, model: classify(settings, run, model),
    )


def data(settings):
    if settings.data_dir is None:
        return pcmepp_coco.data(settings)
    options = {"image_size": settings.image_size, "seed": settings.seed}
    return settings.data("pairs", "toy_birds", **options)


def classify(settings, run, model):
    """Top-1 of classes that training has not seen, before and after filtering, in percent."""
    if settings.classes_dir is not None:
        records = cub.load(settings.classes_dir, split="test", skip_bad=settings.skip_bad).records
        test = datasets.pictures(records, settings.image_size)
    elif settings.data_dir is None:
        test = run.test
    else:
        return {}
    if not settings.is_probabilistic:
        return {}  # points have no uncertainty to filter by
    similarity, uncertainty, labels = prompt_similarities(model, test)
    # Half of the images of every class choose, the other half are classified.
    chooses = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        chooses[np.flatnonzero(labels == label)[::2]] = True
    validation = similarity[chooses], uncertainty, labels[chooses]
    kept = {
        "all_prompts": len(templates()),
        "same_k": choose_prompts(*validation),
        "best_k_per_class": choose_prompts(*validation, per_class=True),
    }
    accuracy = {
        name: 100 * top_1(zero_shot_scores(similarity[~chooses], uncertainty, k), labels[~chooses])
        for name, k in kept.items()
    }
    chance = 100 / len(np.unique(labels))
    print(f"zero-shot top-1, in % (chance {chance:.1f}):")
    for name, value in accuracy.items():
        print(f"  {name.replace('_', ' ')} {value:.1f}")
    return {"zero_shot": {"top_1": accuracy, "kept": kept, "chance": chance}}


def prompt_similarities(model, test):
    """Every image with every prompt of the classes that are there.

    Returns:
        `(images, classes, prompts)` similarities, `(classes, prompts)` uncertainties, and the
        images' columns.
    """
    records = test.records
    present, labels = np.unique(records.image_labels, return_inverse=True)
    prompts = class_prompts([records.class_names[label] for label in present])
    split = evaluation.encode(model, records, test.source)
    captions = as_embedding(model.encode_captions(prompts))
    similarity = np.asarray(model.similarity(split.images, captions))
    shape = (len(present), len(templates()))
    uncertainty = np.asarray(model.uncertainty(captions)).reshape(shape)
    return similarity.reshape(-1, *shape), uncertainty, labels


if __name__ == "__main__":
    cli.run(main)
