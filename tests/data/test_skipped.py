import json
import struct
import zlib

from PIL import Image

from pairs import load_pairs
from zoo.data import write_skipped


def _png_head(width, height):
    data = b"\x89PNG\r\n\x1a\n"
    for chunk in (b"IHDR" + struct.pack(">II5B", width, height, 8, 2, 0, 0, 0), b"IDAT"):
        data += struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return data


def _bad_photos(folder):
    picture = Image.linear_gradient("L").convert("RGB").resize((30, 20))
    picture.save(folder / "whole.jpg")
    whole = (folder / "whole.jpg").read_bytes()
    (folder / "truncated.jpg").write_bytes(whole[:-40])
    (folder / "zero.jpg").write_bytes(b"")
    (folder / "page.jpg").write_bytes(b"<html>")
    (folder / "huge.png").write_bytes(_png_head(30_000, 30_000))
    (folder / "long.png").write_bytes(_png_head(30_000, 2_500))
    picture.save(folder / "tiff.jpg", format="TIFF")
    refused = sorted(path.name for path in folder.iterdir() if path.name != "whole.jpg")
    clear = picture.copy()
    clear.putalpha(128)
    clear.save(folder / "clear.webp", lossless=True)
    frames = {"save_all": True, "append_images": [picture.rotate(180)]}
    picture.save(folder / "moving.webp", **frames)
    picture.convert("CMYK").save(folder / "cmyk.jpg")
    picture.convert("L").save(folder / "grey.jpg")
    picture.convert("I;16").save(folder / "deep.png")
    picture.save(folder / "moving.gif", **frames)
    picture.save(folder / "plain.webp", lossless=True)
    picture.resize((1, 1)).save(folder / "pixel.png")
    decoded = sorted(path.name for path in folder.iterdir() if path.name not in refused)
    return refused, decoded


def test_the_list_in_the_run_folder(tmp_path):
    refused, decoded = _bad_photos(tmp_path)
    rows = [f"{name},a caption\n" for name in (*refused, *decoded)]
    (tmp_path / "pairs.csv").write_text("image,caption\n" + "".join(rows) + "../x.jpg,out\n")
    records = load_pairs(tmp_path / "pairs.csv", skip_bad=True).records
    assert list(records.image_ids) == decoded
    counts = write_skipped(tmp_path / "run", records)
    assert counts == {"pairs.csv": {"unsafe file names": 1, "bad images": len(refused)}}
    lines = (tmp_path / "run" / "skipped.jsonl").read_text().splitlines()
    listed = [json.loads(line) for line in lines]
    assert all(row.keys() == {"data", "kind", "where", "why"} for row in listed)
    images = [row["where"] for row in listed if row["kind"] == "bad images"]
    assert sorted(images) == [str(tmp_path / name) for name in refused]
    assert listed[0]["where"].endswith(f"pairs.csv:{len(rows) + 2}")
    assert "6 bad images" in records.summary()


def test_splits_of_one_table_list_a_missing_photo_once(photos):
    (photos / "pairs.csv").write_text("image,caption\na.jpg,x\nb.png,y\ngone.jpg,z\n")
    whole = load_pairs(photos / "pairs.csv").records
    counts = write_skipped(photos / "run", whole.select([0]), whole.select([1]))
    assert counts == {"pairs.csv": {"missing photos": 1}}
    (line,) = (photos / "run" / "skipped.jsonl").read_text().splitlines()
    assert json.loads(line)["where"] == str(photos / "gone.jpg")
