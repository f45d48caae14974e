"""Do people agree, who fits whom, probes of other photos, and tables over seeds."""

import csv
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from halo_search.embeddings.arrays import unit
from halo_search.errors import InputError
from studies import ablations, oracle, people, seed_table
from studies import generic_probes as study
from studies.ambiguity import Points, halves
from studies.judgments import FILE, Grades, Judgments
from zoo.models.run_folder import RunFolder

HEAD = ("caption_of", "caption", "image", "yes", "no", "expert_1", "expert_2", "expert_3")
ROWS = [
    ("a.jpg", "A dog .", "a.jpg", 3, 0, 4, 4, 3),
    ("a.jpg", "A dog .", "b.jpg", 1, 2, 1, 2, 1),
    ("a.jpg", "A dog .", "c.jpg", 2, 1, "", "", ""),
    ("b.jpg", "Two cats .", "a.jpg", 0, 3, 1, 1, 2),
    ("b.jpg", "Two cats .", "c.jpg", "", "", 3, 4, 4),
]


@pytest.fixture
def folder(tmp_path):
    with open(tmp_path / FILE, "w", newline="") as file:
        csv.writer(file).writerows([HEAD, *ROWS])
    return tmp_path


@pytest.fixture
def questions():
    fits = np.array([[1.0, 0.0, 1.0, np.nan], [0.0, 1.0, 1.0, np.nan]])
    images = ["a.jpg", "b.jpg", "c.jpg", "d.jpg"]
    return people.Questions(["a.jpg", "b.jpg"], np.array([0, 3]), images, fits)


SCORES = np.array([[0.9, 0.1, 0.3, 0.2], [0.2, 0.5, 0.4, 0.8]])


def test_each_expert_is_a_row_and_the_crowd_a_share(folder):
    experts, crowd = Grades.read(folder)
    assert experts.values.tolist() == [4, 4, 3, 1, 2, 1, 1, 1, 2, 3, 4, 4]
    np.testing.assert_allclose(crowd.values, [1, 1 / 3, 2 / 3, 0])


@pytest.mark.parametrize("with_own", [False, True])
def test_kendall_is_that_of_the_pairs_that_are_left(folder, questions, with_own):
    experts, _ = Grades.read(folder)
    found = people.kendall(SCORES, questions, experts, "c", with_own)
    scores = [0.9] * 3 * with_own + [0.1] * 3 + [0.2] * 3 + [0.4] * 3
    values = experts.values[0 if with_own else 3 :]
    expected = 100 * kendalltau(scores, values, variant="c").statistic
    assert found(np.ones(2, int)) == pytest.approx(expected)
    second = 100 * kendalltau(scores[-6:], values[-6:], variant="c").statistic
    assert found(np.array([0, 2])) == pytest.approx(
        100 * kendalltau(scores[-6:] * 2, np.tile(values[-6:], 2), variant="c").statistic
    )
    assert second != pytest.approx(expected)


def test_what_knows_how_many_photos_fit():
    rng = np.random.default_rng(0)
    fits = (rng.uniform(size=(30, 9)) < rng.uniform(size=(30, 1))).astype(float)
    questions = people.Questions(list(range(30)), np.arange(30), list(range(9)), fits)
    scores, sigma = rng.normal(size=(30, 9)), rng.normal(size=30)
    found = people.of_counts(people.Answers(scores, sigma, 1.0), questions)
    once = np.ones(30, int)
    counts = fits.sum(axis=1)
    assert found["σ"](once) == pytest.approx(spearmanr(sigma, counts).statistic)
    assert found["best score"](once) == pytest.approx(spearmanr(scores.max(1), counts).statistic)
    assert people.of_counts(people.Answers(scores, None, 1.0), questions)["σ"] is None


def test_an_oracle_of_half_of_the_photos_reads_no_judgment_of_the_others():
    rng, part = np.random.default_rng(0), np.arange(40) < 20
    table = rng.normal(size=(40, 40, 4))
    truth = np.where(rng.random((40, 40)) < 0.3, np.nan, table[..., 0] > 0)
    expected = oracle.weights_within(table, truth, part)
    truth[20:], truth[:, 20:] = 1.0, 0.0
    assert oracle.weights_within(table, truth, part) == expected
    assert set(expected["captions and score"]) == {"greatest", "second", "mean", "score", "bias"}


TOPICS, PHOTOS = 6, 60


def drawn(seed):
    """Photos of topics, of which some are common; three captions each, a photo with two."""
    rng = np.random.default_rng(seed)
    weights = np.arange(1, TOPICS + 1) / np.arange(1, TOPICS + 1).sum()
    topics = rng.choice(TOPICS, PHOTOS, p=weights)
    owners = np.repeat(np.arange(PHOTOS), 3)[1:]
    centres = 2 * np.eye(8)[:TOPICS]
    images = unit(centres[topics] + 0.3 * rng.normal(size=(PHOTOS, 8)))
    captions = unit(centres[topics[owners]] + 0.3 * rng.normal(size=(len(owners), 8)))
    names = [f"images/{seed}-{photo}.jpg" for photo in range(PHOTOS)]
    texts = [f"caption {row}" for row in range(len(owners))]
    sides = (side.astype("float32") for side in (images, captions))
    return Points(*sides, None, unit(captions), owners, names, texts), topics


def judged(points, topics):
    """All pairs of every photo's last caption and every second photo: one topic fits."""
    last = np.flatnonzero(np.append(np.diff(points.owners), 1))
    rows, photos = (side.ravel() for side in np.meshgrid(last, np.arange(0, PHOTOS, 2)))
    own, names = points.owners[rows], np.array(points.names)
    texts = np.array(points.texts)[rows]
    return Judgments(texts, names[own], names[photos], topics[own] == topics[photos])


def test_a_caption_says_nothing_of_itself():
    points, _ = drawn(0)
    table = points.table()
    assert table[0].tolist() == [0, 1, -1]
    assert table[1].tolist() == [2, 3, 4]
    found = points.features(np.array([0, 3]), np.array([0, 1]), table)
    cosines = points.sentences @ points.sentences.T
    np.testing.assert_allclose(found[0, 0, :2], [cosines[0, 1], -1], atol=1e-6)
    np.testing.assert_allclose(found[0, 1, :2], np.sort(cosines[0, 2:5])[:0:-1], atol=1e-6)
    np.testing.assert_allclose(found[1, 1, :2], np.sort(cosines[3, [2, 4]])[::-1], atol=1e-6)
    np.testing.assert_allclose(found[1, 0, 2], points.captions[3] @ points.images[0], atol=1e-6)


def test_halves_share_no_photo_and_learn_from_each_other():
    points, topics = drawn(0)
    judgments = judged(points, topics)
    first, second = halves(points, judgments, 1)
    assert not set(first.gallery) & set(second.gallery)
    for half, other in ((first, second), (second, first)):
        assert set(points.owners[half.questions]) <= set(half.gallery)
        own = points.owners[half.questions][:, None] == half.gallery
        assert (half.people[own] == 1).all()
        assert (half.likely[own] == 1).all()
        assert (np.isnan(half.people) == ((half.gallery % 2 == 1) & ~own)).all()
        same = topics[points.owners[half.questions]][:, None] == topics[half.gallery]
        known = ~np.isnan(half.people)
        np.testing.assert_array_equal(half.people[known], same[known])
        assert half.likely[same].mean() > half.likely[~same].mean() + 0.5
        # The judgments of this half are changed: its oracle stays, the other's does not.
        in_half = np.isin(judgments.images, np.array(points.names)[half.gallery])
        changed = judgments._replace(fits=judgments.fits ^ in_half)
        again = list(halves(points, changed, 1))
        place = 0 if half is first else 1
        np.testing.assert_allclose(again[place].oracle.plain()[0], half.oracle.plain()[0])
        assert not np.allclose(
            again[1 - place].oracle.plain()[0], other.oracle.plain()[0], atol=0.1
        )


DIM = 16


@pytest.fixture(scope="module")
def world():
    """Photos of which a caption each is known, and what fits is what is near."""
    rng = np.random.default_rng(0)
    images = rng.normal(size=(320, DIM)).astype("f4")
    captions = (images + 1.1 * rng.normal(size=images.shape)).astype("f4")
    rows = np.arange(len(images))
    fit = study._fit(({"mean": images}, {"mean": captions}), rows, captions, rows, rows)
    sides = {"mean": images}, {"mean": captions}
    return study.World("made", "Made", *sides, rows, fit, None, 120, 30)


@pytest.fixture(scope="module", params=["alike", "other contents"])
def found(world, request):
    return list(study.galleries(world, request.param, 0))


def test_a_gallery_is_judged_alone_and_with_own_photos(found):
    assert {row[3] for row, _ in found} == {"t2i", "i2t"}
    for _, one in found:
        said, low, high = one.judged(0.0, 0.3)
        assert low < said < high
        assert 0 < one.true < 1


def test_a_shift_lowers_what_is_said_and_a_spread_widens_it(found):
    one = next(one for row, one in found if "+" not in row[-1])
    plain, lower, wider = (one.judged(*of) for of in ((0.0, 0.1), (-0.5, 0.1), (0.0, 2.0)))
    assert lower[0] < plain[0] == wider[0]
    assert wider[1] < plain[1] < plain[2] < wider[2]


def test_models_and_their_rows_count_alike():
    few = [study.Answers(0.5, shift, None) for shift in (-0.2, -0.4)]
    many = [study.Answers(0.5, -0.9, None)] * 50
    assert study.elsewhere([[few], [many]]) == pytest.approx((-0.6, 0.3))


def results(i2t, uncertain=True):
    found = {"retrieval": {"cosine": {"i2t_r_precision": i2t, "t2i_r_precision": 2 * i2t}}}
    if uncertain:
        worth = {"spearman_of_bins": -i2t / 100}
        found["uncertainty"] = {"i2t": worth, "t2i": worth}
    return found


def finish(out, name, seed, metrics):
    RunFolder.open(seed_table.folder(out, name, seed), {"seed": seed}).finish(metrics)


def test_means_and_deviations_of_the_finished_runs(tmp_path):
    settings = SimpleNamespace(out=tmp_path, seeds=(0, 1, 2))
    for seed, value in ((0, 10.0), (1, 14.0)):
        finish(tmp_path, "A: with α = 0.1", seed, results(value))
    finish(tmp_path, "B", 2, results(1.0, uncertain=False))
    values = [
        lambda found, side=side: found["retrieval"]["cosine"][f"{side}_r_precision"]
        for side in seed_table.DIRECTIONS
    ]
    columns = [seed_table.Column("R-P i2t / t2i", tuple(values)), seed_table.bins()]
    assert seed_table.markdown(["A: with α = 0.1", "B", "never run"], columns, settings) == (
        "| | R-P i2t / t2i | bins i2t / t2i | seeds |\n"
        "|---|---|---|---|\n"
        "| A: with α = 0.1 | 12.0 ± 2.8 / 24.0 ± 5.7 | −0.12 ± 0.03 / −0.12 ± 0.03 | 2 |\n"
        "| B | 1.0 / 2.0 |  | 1 |\n"
    )


def test_a_table_says_which_runs_are_missing(tmp_path, capsys):
    flags = ["--sweep=pcmepp_methods", "--rows", "PCME++", "InfoNCE", "--no-run"]
    flags += ["--seeds", "0", "1", f"--out={tmp_path / 'runs'}"]
    nothing = r"expected finished runs; missing: PCME\+\+ \(seed 0, 1\); InfoNCE \(seed 0, 1\)"
    with pytest.raises(InputError, match=nothing):
        ablations.main(flags)
    RunFolder.open(tmp_path / "runs" / "pcmepp-seed-1", {}).finish(results(1.0))
    ablations.main(flags)
    printed = list(filter(None, capsys.readouterr().out.splitlines()))
    said = "Missing: PCME++ (seed 0); InfoNCE (seed 0, 1). Train them without `--no-run`."
    assert printed[-1] == said
    assert any(line.startswith("| PCME++ | 1.0 / 2.0") for line in printed)
    assert sum(line.startswith("|---") for line in printed) == 1, "no table of COCO's benchmark"


def test_every_row_is_run_with_every_seed(tmp_path):
    calls = []
    rows = {"one": seed_table.Row(calls.append, ("--dim=3",)), "two": seed_table.Row(calls.append)}
    seed_table.run_rows(rows, SimpleNamespace(out=tmp_path, seeds=(4, 5)), ("--smoke",))
    assert calls == [
        ["--dim=3", "--smoke", "--seed=4", f"--out={tmp_path / 'one-seed-4'}"],
        ["--smoke", "--seed=4", f"--out={tmp_path / 'two-seed-4'}"],
        ["--dim=3", "--smoke", "--seed=5", f"--out={tmp_path / 'one-seed-5'}"],
        ["--smoke", "--seed=5", f"--out={tmp_path / 'two-seed-5'}"],
    ]
