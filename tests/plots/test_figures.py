import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.stats import norm

from halo_search.errors import InputError
from zoo.metrics import recall_by_uncertainty, risk_coverage, spearman
from zoo.plots import (
    confidence_ellipses,
    image_to_text_sheet,
    principal_plane,
    prompts_plot,
    recall_by_uncertainty_plot,
    risk_coverage_plot,
    save,
    text_to_image_sheet,
    training_curves,
    uncertainty_against_matches,
)
from zoo.plots.ellipses import ellipse_axes

RNG = np.random.default_rng(0)


def texts(figure):
    figure.draw_without_rendering()
    found = figure.findobj(matplotlib.text.Text)
    return " | ".join(text.get_text() for text in found if text.get_visible())


def test_training_curves_pair_validation():
    history = {
        "phase": ["warm_up", "warm_up", "fine_tuning"],
        "epoch": [1.0, 2.0, 1.0],
        "loss": [3.0, 2.0, 1.0],
        "val_loss": [3.5, 2.5, 1.5],
        "val_rsum": [np.nan, 10.0, 20.0],
        "seconds": [1.0, 1.0, 1.0],
    }
    figure = training_curves(history)
    loss, rsum = figure.axes
    np.testing.assert_array_equal(loss.lines[0].get_xydata(), [[1, 3], [2, 2], [3, 1]])
    np.testing.assert_array_equal(loss.lines[1].get_ydata(), history["val_loss"])
    np.testing.assert_array_equal(rsum.lines[0].get_ydata(), history["val_rsum"])
    assert "seconds" not in texts(figure)
    assert len(training_curves({"loss": [1.0]}).axes) == 1
    with pytest.raises(ValueError, match="curves"):
        training_curves({"epoch": [1]})


def test_recall_bins_are_drawn_in_percent_with_wilson_intervals():
    similarity = RNG.normal(size=(60, 40))
    relevance = RNG.random((60, 40)) < 0.2
    relevance[:, 0] = True
    bins = recall_by_uncertainty(similarity, relevance, RNG.random(60), bins=6)
    figure = recall_by_uncertainty_plot(i2t=bins)
    (axis,) = figure.axes
    (container,) = axis.containers
    np.testing.assert_allclose(container[0].get_ydata(), 100 * bins["recall"])
    (segments,) = container[2]
    share, count = bins["recall"][0], bins["count"][0]
    # The interval by its definition: where the score test just does not reject the share.
    z = norm.ppf(0.975)
    edges = segments.get_segments()[0][:, 1] / 100
    for p in edges:
        if 0 < p < 1:
            assert abs(share - p) / np.sqrt(p * (1 - p) / count) == pytest.approx(z, rel=1e-6)
    rho = spearman(np.arange(6), bins["recall"])
    assert f"{abs(rho):.2f}" in texts(figure)
    assert "n = 60" in texts(figure)
    with pytest.raises(ValueError, match="neither"):
        recall_by_uncertainty_plot()


def test_uncertainty_against_matches_has_its_spearman():
    matches = RNG.integers(1, 200, 300)
    uncertainty = np.log(matches) + RNG.normal(size=300)
    figure = uncertainty_against_matches(uncertainty, matches)
    axis = figure.axes[0]
    assert f"{spearman(uncertainty, matches):.2f}" in axis.get_title("left")
    assert axis.get_xscale() == "log"
    np.testing.assert_allclose(
        axis.collections[0].get_offsets(), np.stack([matches, uncertainty], 1)
    )
    assert texts(uncertainty_against_matches([1.0, 2.0], [1, 1])).count("undefined") == 1
    with pytest.raises(ValueError, match="at least 1"):
        uncertainty_against_matches([1.0, 2.0], [0, 1])


def test_risk_coverage_draws_the_curve_and_the_exact_oracle():
    error = (RNG.random(50) < 0.3).astype(float)
    curve = risk_coverage(RNG.random(50), error)
    figure = risk_coverage_plot(t2i=curve)
    risk, random, oracle = figure.axes[0].lines
    np.testing.assert_allclose(risk.get_ydata(), 100 * curve["risk"])
    np.testing.assert_allclose(random.get_ydata(), 100 * error.mean())
    best = np.cumsum(np.sort(error)) / np.arange(1, 51)
    np.testing.assert_allclose(oracle.get_ydata(), 100 * best, atol=1e-10)
    with pytest.raises(ValueError, match="neither"):
        risk_coverage_plot()


def test_ellipses_hold_their_share_of_the_gaussian():
    covariance = np.array([[[2.0, 1.2], [1.2, 1.0]]])
    width, height, angle = (a[0] for a in ellipse_axes(covariance, 0.8))
    samples = RNG.multivariate_normal([0, 0], covariance[0], size=200_000)
    turn = np.radians(angle)
    x = samples @ [np.cos(turn), np.sin(turn)] / (width / 2)
    y = samples @ [-np.sin(turn), np.cos(turn)] / (height / 2)
    assert np.mean(x**2 + y**2 < 1) == pytest.approx(0.8, abs=0.005)
    with pytest.raises(ValueError, match="confidence"):
        ellipse_axes(covariance, 1.0)


def test_the_plane_is_that_of_the_principal_axes_and_projects_covariances():
    mean = RNG.normal(size=(40, 5)) * [5, 0.1, 0.1, 2, 0.1]
    log_variance = RNG.normal(size=(40, 5))
    plane = principal_plane(mean)
    np.testing.assert_allclose(plane.axes.T @ plane.axes, np.eye(2), atol=1e-12)
    assert np.abs(plane.axes[[0, 3], [0, 1]]).min() > 0.99
    assert plane.explained.sum() > 0.98
    _, covariance = plane.project(mean, log_variance)
    expected = plane.axes.T @ np.diag(np.exp(log_variance[7])) @ plane.axes
    np.testing.assert_allclose(covariance[7], expected)
    flat = principal_plane(mean[:, :2])
    np.testing.assert_array_equal(flat.project(mean[:, :2], log_variance[:, :2])[0], mean[:, :2])
    with pytest.raises(ValueError, match="at least 2"):
        principal_plane(mean[:1])


def test_confidence_ellipses_fit_into_the_axes_and_name_the_classes():
    def gaussian(n):
        return {"mean": RNG.normal(size=(n, 6)), "log_variance": RNG.normal(size=(n, 6)) - 2}

    figure = confidence_ellipses(
        gaussian(18),
        np.arange(18) % 16,
        gaussian(4),
        np.arange(4),
        names={0: "Blue jay"},
        generic=("a bird", gaussian(1)),
    )
    axis = figure.axes[0]
    words = texts(figure)
    assert "Blue jay" in words
    assert "2 more classes" in words
    assert "a bird" in words
    assert len(axis.patches) == 23
    for patch in axis.patches:
        low, high = patch.get_extents().transformed(axis.transData.inverted()).get_points()
        assert axis.get_xlim()[0] <= low[0] <= high[0] <= axis.get_xlim()[1]
        assert axis.get_ylim()[0] <= low[1] <= high[1] <= axis.get_ylim()[1]


def test_sheets_mark_matches_by_more_than_colour():
    pictures = [[RNG.random((8, 6, 3)) * 255 for _ in range(3)] for _ in range(2)]
    correct = np.array([[True, False, False], [False, True, True]])
    captions = ["a bird for $5 or $6 " * 12, "a bird"]
    sheet = text_to_image_sheet(captions, pictures, correct, [0.1, -2.0], np.ones((2, 3)))
    words = texts(sheet)
    assert words.count("✓") == 3 + 1  # and once in the legend
    assert words.count("✗") == 3 + 1
    assert "uncertainty −2" in words
    assert "$5" in words
    frames = [patch for axis in sheet.axes for patch in axis.patches]
    assert len({(frame.get_linestyle(), frame.get_linewidth()) for frame in frames}) == 2

    sheet = image_to_text_sheet(
        [row[0] for row in pictures], [[*captions, "blue"]] * 2, correct, scores=np.ones((2, 3))
    )
    words = texts(sheet)
    assert words.count("✓") == 3 + 1
    assert words.count("s = 1.00") == 6
    assert "uncertainty" not in words


def test_a_dark_picture_is_named_as_the_datas():
    """Toy Birds at dusk look as if the figure had lost them."""
    light, dusk = np.full((8, 8, 3), 180.0), np.full((8, 8, 3), 85.0)
    captions, correct = ["a bird"], [[True, False, True]]
    assert "dark" in texts(text_to_image_sheet(captions, [[light, dusk, light]], correct))
    assert "dark" not in texts(
        text_to_image_sheet(captions, [[light, 0.7 * light, light]], correct)
    )
    assert "dark" in texts(image_to_text_sheet([light, dusk, light], [captions] * 3, [[True]] * 3))


def test_no_global_state_is_left_and_files_are_written_whole(tmp_path):
    before = dict(matplotlib.rcParams)
    path = save(training_curves({"loss": [2.0, 1.0]}), tmp_path / "plots" / "loss.png")
    assert dict(matplotlib.rcParams) == before
    assert plt.get_fignums() == []
    assert path.read_bytes()[:4] == b"\x89PNG"
    assert [p.name for p in path.parent.iterdir()] == ["loss.png"]
    path.parent.joinpath("file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        save(training_curves({"loss": [1.0]}), path.parent / "file" / "loss.png")


def test_medians_lie_at_the_middle_of_their_bin():
    """Captions of few and of many images: each bin has its own place, the geometric mean."""
    matches = np.repeat([1, 2, 40, 400], 20)
    uncertainty = np.repeat([0.0, 1.0, 5.0, 9.0], 20)
    (axis,) = uncertainty_against_matches(uncertainty, matches).axes
    (middle,) = (line for line in axis.lines if line.get_label() == "median and quartiles")
    x, y = middle.get_data()
    np.testing.assert_allclose(x, [2**0.5, 40, 400])
    np.testing.assert_allclose(y, [0.5, 5, 9])


def test_prompts_are_counted_from_one_and_every_class_is_in_the_histogram():
    same, classes = prompts_plot([8.0, 9.5, 9.3], [1, 3, 3, 2]).axes
    accuracy, best, everything = same.lines
    np.testing.assert_array_equal(accuracy.get_xydata(), [[1, 8.0], [2, 9.5], [3, 9.3]])
    np.testing.assert_array_equal(best.get_xydata(), [[2, 9.5]])
    assert set(everything.get_ydata()) == {9.3}
    assert [bar.get_height() for bar in classes.patches] == [1, 1, 2]
    assert [bar.get_x() + bar.get_width() / 2 for bar in classes.patches] == [1, 2, 3]
