import json

import numpy as np
import pytest
from PIL import Image

import zoo
from halo_search.cli.evaluate import main
from halo_search.errors import InputError
from pixel_model import SIZE, pixel_model
from zoo.metrics import evaluate_retrieval
from zoo.models.run_folder import RunFolder


@pytest.fixture(scope="module")
def album(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("album"), np.random.default_rng(0)
    rows = ["image,caption"]
    for row in range(6):
        pixels = rng.integers(0, 256, (SIZE, SIZE, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{row}.png")
        rows += [f"{row}.png,photo {row}", f"{row}.png,photo photo {row}"]
    (folder / "pairs.csv").write_text("\n".join(rows))
    return folder


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "pixels"
    zoo.save_preset(pixel_model(), path)
    return path


def expected(model, found):
    pixels = np.stack([np.asarray(Image.open(path)) for path in found.photos])
    images, captions = model.encode_images(pixels), model.encode_captions(found.captions)
    own = np.arange(len(found.photos))[:, None] == found.caption_image
    return evaluate_retrieval(np.asarray(model.similarity(images, captions)), own)


def test_a_folder_of_photos_with_captions(album, preset, tmp_path, capsys):
    out = tmp_path / "metrics.json"
    main(["--model", str(preset), "--pairs", str(album), "--out", str(out)])
    printed, results = capsys.readouterr().out, json.loads(out.read_text())
    assert f"{album}: a table, pairs.csv: 6 photos, 12 captions" in printed
    assert results.pop("similarity") == "cosine"
    wanted = expected(zoo.from_preset(preset), zoo.data.captioned_folder(album))
    assert results == pytest.approx(wanted)
    main(["--model", str(preset), "--pairs", str(album), "--similarity", "cosine"])
    with pytest.raises(InputError, match=r"--similarity csd takes .*; the model gives a point"):
        main(["--model", str(preset), "--pairs", str(album), "--similarity", "csd"])


def test_the_test_split_of_a_run_and_a_model_that_names_none(album, preset, tmp_path, capsys):
    data = {"loader": "pairs", "root": str(album), "image_size": SIZE, "held_out_share": 0.2}
    run = RunFolder.open(tmp_path / "run", {}, data=data)
    run.save_model(zoo.from_preset(preset))
    main(["--model", str(run.path)])
    assert "t2i_recall@1" in capsys.readouterr().out
    with pytest.raises(InputError, match="pixels: names no test data; give --pairs a folder"):
        main(["--model", str(preset)])
