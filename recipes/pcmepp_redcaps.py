"""PCME++ from scratch on image–caption pairs, then zero-shot classification with filtered prompts.

    python recipes/pcmepp_redcaps.py                                        # Toy Birds
    python recipes/pcmepp_redcaps.py --data-dir redcaps --classes-dir CUB_200_2011 --bpe BPE
    python recipes/pcmepp_redcaps.py --method infonce                       # table 6's other model

Chun, "Improved Probabilistic Image-Text Representations", ICLR 2024, section 3.5, table 6 and
appendix C.4. `--data-dir` holds `pairs.tsv`, with the columns `image` and `caption` (RedCaps is not
distributed with its images). `--classes-dir` is a set in CUB's layout, whose `test` classes are
classified; the paper classifies ImageNet. Each class name is put into "a photo of a {}." alone and
into 80 templates, of which the most uncertain prompts are left out: as many of all classes, or as
many as is best for each. Half of the images choose how many, the other half are classified.

Settings are those of table B.1, whose batch of 1,536 and 25 epochs section 3.5 calls "100K
iterations with 1K batch size". The paper says neither how long the warm-up is (an epoch here, as
for COCO) nor whether the last weights are averaged (they are not here).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pcmepp_coco
from zoo import cli, evaluation, plots
from zoo.cli import AS_DEFAULT, Positive, Share, Size, differs, setting
from zoo.data import cub
from zoo.data.records.sources import pictures
from zoo.data.text.prompts import TEMPLATES, class_prompts, templates
from zoo.embeddings import as_embedding
from zoo.metrics.zero_shot import (
    choose_prompts,
    mean_embeddings,
    mean_similarities,
    top_1,
    zero_shot_scores,
)

import numpy as np

ONE_PROMPT = "a photo of a {}."


@dataclass(frozen=True, kw_only=True)
class Settings(pcmepp_coco.Settings):
    """The paper's settings for RedCaps, from scratch: no backbone is slowed down or frozen."""

    out: Path = differs(Path("runs/pcmepp_redcaps"))
    classes_dir: Path | None = setting(None, "set in CUB's layout to classify")
    prompts: Literal[TEMPLATES] = setting(
        "clip",
        "80 templates: CLIP's, or the zoo's for birds",
        source="PCME++, appendix C.4",
        toy="zoo",
    )
    prompt_mean: Literal["embeddings", "similarities"] = setting(
        "embeddings",
        "what is averaged over a class's prompts: their text embeddings, or their similarities",
        source="PCME++, appendix C.4",
    )
    weights: str | None = setting(
        None, "weights of the backbone: a local file, or none as in the paper"
    )
    dim: Size = differs(128)
    pseudo_positive_weight: float | None = setting(
        0.0, "weight of pseudo-positives (alpha); 0: none", source="PCME++, table B.1", toy=None
    )
    kl_weight: float | None = differs(1e-6, source="PCME++, table B.1", toy=1e-4)
    mixed_share: Share | None = setting(
        0.0, "share of images mixed by Mixup or CutMix", source="PCME++, table B.1", toy=None
    )
    drop_rate: Share = differs(0.0, source="PCME++, table B.1", toy=0.2)
    word_dropping: Share = differs(0.0, source="PCME++, table B.1", toy=0.2)
    beta_2: Share = differs(0.98, toy=0.999)
    epsilon: Positive = differs(1e-6, toy=1e-8)
    weight_decay: float = differs(0.2, toy=1e-4)
    schedule: Literal["steps", "cosine"] = setting(
        "cosine",
        "schedule of the learning rate after the linear warm-up",
        source="PCME++, table B.1",
        toy="steps",
    )
    batch_size: Size = differs(1536)
    image_rate: float = differs(1.0, toy=AS_DEFAULT)
    caption_rate: float = differs(1.0, toy=AS_DEFAULT)
    layer_decay: Share = differs(1.0)
    frozen_epochs: int = setting(0, "epochs with the image backbone frozen")
    warm_up_epochs: int = differs(1, source="")  # table B.1 prints no length
    last_epochs: int = setting(
        0, "last epochs, at a tenth of the learning rate, with --schedule steps", toy=6, smoke=1
    )
    averaged_epochs: int | None = setting(
        0, "last epochs whose weights are averaged (SWA); 0: none", toy=None
    )

    def __post_init__(self):
        super().__post_init__()
        if self.toy != "birds":
            raise ValueError(f"--toy must be birds, which have classes; received {self.toy}")

    @property
    def network(self):
        """The name of the image backbone."""
        return self.backbone or ("vit_s_16" if self.data_dir else "tiny")


def main(argv=None):
    settings = cli.parse(Settings, argv, description=__doc__)
    return pcmepp_coco.train_and_evaluate(
        settings,
        describe_data(settings),
        measure_more=lambda run, model: classify_and_draw(settings, run, model),
    )


def describe_data(settings):
    """The description of a folder of pairs, or of Toy Birds, for `zoo.data.open`."""
    if settings.data_dir is None:
        return pcmepp_coco.describe_data(settings)
    return settings.describe_data(
        "pairs", "toy_birds", seed=settings.seed, **settings.picture_options()
    )


def classify(settings, run, model):
    """Zero-shot top-1 of classes that training has not seen, in percent: with one prompt, with all,
    and after uncertain prompts are left out. Empty without classes to classify."""
    if settings.classes_dir is not None:
        records = cub.load(settings.classes_dir, split="test", skip_bad=settings.skip_bad).records
        test = pictures(records, **settings.picture_options())
    elif settings.data_dir is None:
        test = run.test
    else:
        return {}
    sentences = templates(settings.prompts)
    scores, has_uncertainty, labels = prompt_scores(model, test, sentences, settings.prompt_mean)
    alone = prompt_scores(model, test, [ONE_PROMPT], settings.prompt_mean)[0][..., 0]
    # Half of the images of every class choose, the other half are classified.
    chooses = np.zeros(len(labels), bool)
    for label in np.unique(labels):
        chooses[np.flatnonzero(labels == label)[::2]] = True
    num_prompts, by_k = {"all_prompts": len(sentences)}, {}
    if has_uncertainty:  # points have nothing to filter by
        validation = scores[chooses], labels[chooses]
        num_prompts["same_k"] = choose_prompts(*validation)
        num_prompts["best_k_per_class"] = choose_prompts(*validation, per_class=True)
        by_k = {
            name: [
                100 * top_1(zero_shot_scores(scores[half], k + 1), labels[half])
                for k in range(len(sentences))
            ]
            for name, half in (("chosen_on", chooses), ("reported_on", ~chooses))
        }
    accuracy = {"one_prompt": 100 * top_1(alone[~chooses], labels[~chooses])} | {
        name: 100 * top_1(zero_shot_scores(scores[~chooses], k), labels[~chooses])
        for name, k in num_prompts.items()
    }
    chance = 100 / len(np.unique(labels))
    print(f"zero-shot top-1, in % (chance {chance:.1f}):")
    for name, value in accuracy.items():
        print(f"  {name.replace('_', ' ')} {value:.1f}")
    results = {"top_1": accuracy, "kept": num_prompts, "chance": chance}
    return {"zero_shot": results | ({"top_1_by_k": by_k} if by_k else {})}


def classify_and_draw(settings, run, model):
    """The results of `classify`; figure C.1 goes to the run's plots."""
    results = classify(settings, run, model)
    zero_shot = results.get("zero_shot", {})
    if "top_1_by_k" in zero_shot:
        figure = plots.prompts_plot(
            zero_shot["top_1_by_k"]["reported_on"], zero_shot["kept"]["best_k_per_class"]
        )
        plots.save(figure, run.folder.plots / "prompts.png")
    return results


def sum_of_deviations(captions):
    """‖σ‖₁ of Gaussians, by which appendix C.4 sorts prompts; elsewhere uncertainty is ‖σ²‖₁."""
    return np.exp(0.5 * np.asarray(captions["log_variance"], np.float64)).sum(axis=-1)


def prompt_scores(model, test, sentences, prompt_mean):
    """Scores of every image and every class of the split, by its 1, 2, … most certain prompts.

    Returns:
        `(scores, has_uncertainty, labels)`: float32 (images, classes, prompts), whether
        uncertainties order the prompts, and the class of each image, int (images,).
    """
    records = test.records
    present, labels = np.unique(records.image_labels, return_inverse=True)
    prompts = class_prompts([records.class_names[label] for label in present], sentences)
    split = evaluation.encode(model, records, test.source)
    captions = {
        name: np.asarray(value)
        for name, value in as_embedding(model.encode_captions(prompts)).items()
    }
    shape = (len(present), len(sentences))
    uncertainty, has_uncertainty = np.zeros(shape), split.caption_uncertainty is not None
    if has_uncertainty:
        uncertainty = sum_of_deviations(captions).reshape(shape)
    if prompt_mean == "embeddings":
        captions = mean_embeddings(captions, uncertainty)
    scores = np.asarray(model.similarity(split.images, captions)).reshape(-1, *shape)
    if prompt_mean == "similarities":
        scores = mean_similarities(scores, uncertainty)
    return scores, has_uncertainty, labels


if __name__ == "__main__":
    cli.run(main)
