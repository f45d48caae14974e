"""Figures and tables of one finished model: PCME's, Pishdad et al.'s, PCME++'s table C.4."""

import json
import random
from types import SimpleNamespace

import keras
import numpy as np
import pytest

import annotation_folder
from halo_search.errors import InputError
from studies import approximate_search, pcme_figures, plausible_matches, similarity_flops
from zoo import evaluation, metrics, models
from zoo.data import Split
from zoo.data.records import Records
from zoo.data.records.sources import Features
from zoo.data.text.captions import WordTokenizer
from zoo.models.run_folder import RunFolder

COLOURS = ("red", "green", "blue", "black", "white", "grey", "brown", "pink", "gold", "tan")
WORDS = WordTokenizer([*COLOURS, "bird", "this", "has", "wing"], max_words=12)


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """`(model, split)` of ten pictures with five captions each, in the layout of COCO's ids."""
    random.seed(0)
    image = keras.Input((8, 8, 3))
    backbone = keras.Model(
        image, keras.layers.Conv2D(4, 3)(keras.layers.Rescaling(1 / 255)(image)), name="backbone"
    )
    model = models.pcme(backbone, WORDS, dim=4, word_dim=4, image_size=8)
    pixels = np.random.default_rng(0).uniform(0, 255, (10, 8, 8, 3)).astype("float32")
    own = np.repeat(np.arange(10), 5)
    records = Records(
        name="ten",
        image_paths=[str(i) for i in range(10)],
        captions=[
            f"a {COLOURS[i]} bird with {n} wing" for i, n in zip(own, range(50), strict=True)
        ],
        caption_image=own,
        image_labels=np.arange(10),
        image_ids=annotation_folder.IMAGES,
        caption_ids=annotation_folder.CAPTIONS,
    )
    return model, Split(records, Features(pixels), picture=lambda index: pixels[index])


@pytest.fixture(autouse=True)
def _opened(known, monkeypatch):
    monkeypatch.setattr(evaluation, "open_run", lambda name, data_dir=None: known)


@pytest.fixture
def annotations(tmp_path):
    folder = tmp_path / "eccv"
    folder.mkdir()
    annotation_folder.write(folder)
    return folder


def draw(figure, tmp_path, *flags):
    numbers = pcme_figures.main([f"--figure={figure}", f"--out={tmp_path / 'out'}", *flags])
    assert (tmp_path / "out" / "figure.png").stat().st_size > 5000
    assert json.loads((tmp_path / "out" / "figure.json").read_text())
    return numbers


def test_the_plane_has_half_of_each_item_and_nearly_all_of_the_generic_caption(
    known, tmp_path, monkeypatch
):
    shown = []
    real = pcme_figures.pcme_drawing.draw_gaussian
    monkeypatch.setattr(
        pcme_figures.pcme_drawing,
        "draw_gaussian",
        lambda *given, **options: (
            shown.append((given[3], options["confidence"])),
            real(*given, **options),
        ),
    )
    draw("5", tmp_path)
    red = pcme_figures.pcme_drawing.RED
    assert [confidence for color, confidence in shown if color == red] == [
        0.99,
        0.99,
    ]  # a panel each
    assert {confidence for color, confidence in shown if color != red} == {0.5}
    assert len(shown) == 2 + 9 + 9 * 3  # an image and three captions of nine labels


def test_f1_appends_and_7_replaces(known, tmp_path):
    seven = draw("7", tmp_path)
    assert set(seven) == {"Erased pixels", "Words that become <unk>"}
    found = draw("F.1", tmp_path)
    assert found["Appended <unk>"]["levels"] == [0, 1, 2, 4, 8]
    model, split = known
    ids = np.array(model.tokenize(split.records.captions.tolist()))
    for count, mean in zip((0, 4), np.array(found["Appended <unk>"]["mean"])[[0, 3]], strict=True):
        given = pcme_figures.with_unknown(WORDS, ids, count)
        log_variance = model.caption_encoder.predict(given, verbose=0)["log_variance"]
        assert mean == pytest.approx(np.mean(log_variance) / 2, abs=1e-5)
    # Nothing is lost at level 0: the two figures show one quantity, one as its logarithm.
    whole = found["Erased pixels"]["mean"][0]
    images = model.image_encoder.predict(np.stack([split.picture(i) for i in range(10)]), verbose=0)
    assert whole == pytest.approx(np.mean(images["log_variance"]) / 2, abs=1e-5)


def test_8_is_of_pairs_of_two_labels(tmp_path):
    found = draw("8", tmp_path)
    assert found["pairs"] == 5  # of ten images
    assert 0 <= found["mix_area"] <= 100


def test_f2_counts_words_by_uncertainty(known, tmp_path):
    found = draw("F.2", tmp_path)
    assert len(found["tf_idf"]) == 5
    assert set().union(*found["tf_idf"]) <= {*COLOURS, *map(str, range(50))}  # not the usual words
    model, split = known
    encoded = evaluation.encode(model, split.records, split.source)
    length = [len(line.split()) for line in split.records.captions]
    rho = metrics.spearman(encoded.caption_uncertainty, length)
    assert found["spearman_of_uncertainty_and_length"] == pytest.approx(rho, nan_ok=True)


@pytest.mark.parametrize(("figure", "side"), [("F.3", "image"), ("F.4", "caption")])
def test_f3_and_f4_are_the_ends_of_the_uncertainties(known, figure, side, tmp_path):
    found = draw(figure, tmp_path)
    model, split = known
    encoded = evaluation.encode(model, split.records, split.source)
    values = getattr(encoded, f"{side}_uncertainty")
    assert sorted(found["uncertainty"]) == found["uncertainty"]
    assert found["uncertainty"][0] == pytest.approx(values.min())
    assert found["uncertainty"][-1] == pytest.approx(values.max())
    np.testing.assert_allclose(values[found["items"]], found["uncertainty"])


def test_6_is_of_the_five_folds(known, annotations, tmp_path):
    model, split = known
    whole = draw("6", tmp_path)
    assert whole["galleries"] == 1
    found = draw("6", tmp_path, f"--annotations-dir={annotations}")
    assert found["galleries"] == 5
    encoded = evaluation.encode(model, split.records, split.source)
    pairs = np.asarray(encoded.pairs(model.similarity).in_memory().rows(0, 10))
    hits = []
    for fold in range(5):  # two images and their ten captions each
        images, captions = np.arange(2) + 2 * fold, np.arange(10) + 10 * fold
        ranks = metrics.rank_queries(
            pairs[np.ix_(images, captions)].T, np.repeat(np.eye(2, dtype=bool), 5, axis=0)
        )
        hits += ranks.hits(1).tolist()
    recall, count = (np.array(found["t2i"][name]) for name in ("recall", "count"))
    assert np.nansum(recall * count) == pytest.approx(sum(hits))
    assert count.sum() == 50


def test_d1_and_e1_have_a_line_each(known, tmp_path):
    model, split = known
    (variances,) = draw("D.1", tmp_path).values()
    encoded = evaluation.encode(model, split.records, split.source)
    expected = np.exp(encoded.images["log_variance"]).mean(axis=0)
    np.testing.assert_allclose(variances["images"], expected, rtol=1e-5)
    found = draw("E.1", tmp_path, "--samples", "1", "5")
    assert set(found["samples"]) == {1, 5}
    assert set(found["without"]) == set(pcme_figures.DEPTH_FREE)


def test_e3_reads_what_runs_measured(tmp_path):
    coco = {f"coco_5k_{s}_pmrp_{z}": 10.0 + z for s in ("i2t", "t2i") for z in (0, 1, 2)}
    runs = [str(tmp_path / name) for name in ("one", "other")]
    for name in runs:
        RunFolder.open(name, {"run": name}).finish({"coco": coco})
    found = draw("E.3", tmp_path, "--runs", *runs)
    assert found == {n: {s: [10.0, 11.0, 12.0] for s in ("i2t", "t2i")} for n in ("one", "other")}
    RunFolder.open(tmp_path / "none", {}).finish({})
    with pytest.raises(InputError, match="expected a finished run with PMRP"):
        pcme_figures.main(["--figure=E.3", "--runs", str(tmp_path / "none")])


def test_plausible_matches_are_those_of_cxc(known, annotations, tmp_path):
    model, split = known
    out = tmp_path / "out"
    found = plausible_matches.main(
        ["--items=2", "--share=0.2", f"--annotations-dir={annotations}", f"--out={out}"]
    )
    encoded = evaluation.encode(model, split.records, split.source)
    order = np.argsort(encoded.image_uncertainty)
    assert {one["item"] for one in found["high_images"]} == set(order[-2:].tolist())
    assert {one["item"] for one in found["low_images"]} == set(order[:2].tolist())
    for one in found["high_images"]:  # its own five, and CxC's sixth, of the next image
        own = list(range(5 * one["item"], 5 * one["item"] + 5))
        assert one["matches"] == [*own, 5 * ((one["item"] + 1) % 10)]
    assert 49 not in {one["item"] for end in ("high", "low") for one in found[f"{end}_captions"]}
    for name in ("high_images", "high_captions", "low_images", "low_captions"):
        assert (out / f"{name}.png").stat().st_size > 5000


def test_an_index_that_finds_all_candidates_ranks_as_the_similarity(known, annotations, tmp_path):
    """Table C.4: with every item a candidate, re-ranking by σ is CSD itself."""
    flags = ["--run=x", f"--out={tmp_path / 'out'}"]
    found = approximate_search.main([*flags, "--depth=50", f"--annotations-dir={annotations}"])
    exact, approximate = found["CSD"]["coco"], found["FAISS, means, then CSD by σ"]["coco"]
    assert approximate == {name: pytest.approx(value) for name, value in exact.items()}
    means = found["FAISS, means"]["coco"]
    assert means == {n: pytest.approx(v) for n, v in found["Mean only"]["coco"].items()}
    table = (tmp_path / "out" / "table.md").read_text()
    assert "| ECCV mAP@R | ECCV R-P |" in table
    assert "RSUM" in table
    few = approximate_search.main([*flags, "--depth=1"])
    whole = few["FAISS, means"]["retrieval"]["this"]
    assert whole["i2t_recall@1"] == whole["i2t_recall@10"]  # what is not found is ranked last


def test_operations_of_a_pair_grow_with_the_elements(tmp_path):
    """DivE, section 4.4: K × K × D products, two operations each, and the elements' lengths."""
    flags = [f"--out={tmp_path}", "--dim=64"]
    found = similarity_flops.main([*flags, "--num-slots=4"])
    assert found["products"] == 4 * 4 * 64
    assert 2 * found["products"] < found["smooth-Chamfer (DivE)"] < 4 * found["products"]
    fewer = similarity_flops.main([*flags, "--num-slots=2"])
    assert fewer["products"] == found["products"] / 4
    assert fewer["cosine"] == found["cosine"]


@pytest.mark.parametrize("with_sigma", [False, True])
def test_each_direction_of_the_faiss_table_searches_its_own_index(with_sigma):
    """Candidates are those of each query: captions find three images, images three captions."""
    rng = np.random.default_rng(0)

    def gaussians(count):
        mean = rng.normal(size=(count, 4)).astype("float32")
        return {"mean": mean, "log_variance": rng.normal(-2, 1, (count, 4)).astype("float32")}

    split = SimpleNamespace(images=gaussians(7), captions=gaussians(12))
    settings = approximate_search.Settings(depth=3)
    i2t, t2i = approximate_search.index_ranking(split, settings, with_sigma)
    assert (i2t.shape, t2i.shape) == ((7, 12), (12, 7))
    for scores, queries, gallery in (
        (i2t, split.images, split.captions),
        (t2i, split.captions, split.images),
    ):
        near = np.square(queries["mean"][:, None] - gallery["mean"][None]).sum(-1).argsort(1)[:, :3]
        found = [set(np.flatnonzero(np.isfinite(row))) for row in scores]
        assert found == [set(row) for row in near]
