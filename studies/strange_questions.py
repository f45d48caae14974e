"""Questions that a model of birds, or of any one kind of thing, cannot know: are they declined?

    python -m studies.strange_questions toy_birds_pfe --photos PHOTOS

asks a calibrated model invented words, other languages, plain colours and, if given, other photos,
and says which share it declines, beside that of the test split's own queries.
"""

import os
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from zoo.cli import OneLineParser, run
from zoo.confidence import KnownQueries
from zoo.data import images
from zoo.errors import InputError
from zoo.evaluation import EncodedSplit, encode, open_run, probes_of, resizing_of
from zoo.evaluation.known import facts_of_split, query_facts
from zoo.files import RunFolder
from zoo.files.decoding import SUFFIXES
from zoo.files.text_files import existing_folder
from zoo.models import DualEncoder

LENGTHS, EACH = (1, 2, 3, 4, 5, 6, 8), 20  # of texts of invented words
PICTURES = 30  # plain squares, and photos of other things
_CONSONANTS, _VOWELS = "bdfgklmnprstvwxz", "aeiou"
# "A small bird with a red head and black wings."
OTHER_LANGUAGES = (
    "Ein kleiner Vogel mit rotem Kopf und schwarzen Flügeln.",
    "Un petit oiseau avec une tête rouge et des ailes noires.",
    "Un pájaro pequeño con la cabeza roja y las alas negras.",
    "Un uccellino con la testa rossa e le ali nere.",
    "Um pequeno pássaro com a cabeça vermelha e asas pretas.",
    "Een kleine vogel met een rode kop en zwarte vleugels.",
    "Mały ptak z czerwoną głową i czarnymi skrzydłami.",
    "Malý pták s červenou hlavou a černými křídly.",
    "En liten fågel med rött huvud och svarta vingar.",
    "En lille fugl med rødt hoved og sorte vinger.",
    "En liten fugl med rødt hode og svarte vinger.",
    "Pieni lintu, jolla on punainen pää ja mustat siivet.",
    "Egy kis madár piros fejjel és fekete szárnyakkal.",
    "O pasăre mică cu capul roșu și aripi negre.",
    "Kırmızı başlı ve siyah kanatlı küçük bir kuş.",
    "Ένα μικρό πουλί με κόκκινο κεφάλι και μαύρα φτερά.",
    "Маленькая птица с красной головой и чёрными крыльями.",
    "Маленький птах із червоною головою та чорними крилами.",
    "Малка птица с червена глава и черни крила.",
    "ציפור קטנה עם ראש אדום וכנפיים שחורות.",
    "طائر صغير برأس أحمر وأجنحة سوداء.",
    "پرنده ای کوچک با سر قرمز و بال های سیاه.",
    "लाल सिर और काले पंखों वाला एक छोटा पक्षी।",
    "লাল মাথা এবং কালো ডানাওয়ালা একটি ছোট পাখি।",
    "சிவப்பு தலையும் கருப்பு சிறகுகளும் கொண்ட ஒரு சிறிய பறவை.",
    "นกตัวเล็กที่มีหัวสีแดงและปีกสีดำ",
    "Một con chim nhỏ với đầu đỏ và cánh đen.",
    "Seekor burung kecil dengan kepala merah dan sayap hitam.",
    "Burung kecil berkepala merah dan bersayap hitam.",
    "Isang maliit na ibon na may pulang ulo at itim na pakpak.",
    "Ndege mdogo mwenye kichwa chekundu na mabawa meusi.",
    "赤い頭と黒い翼を持つ小さな鳥。",
    "一只红头黑翅膀的小鸟。",
    "빨간 머리와 검은 날개를 가진 작은 새.",
    "Lítill fugl með rautt höfuð og svarta vængi.",
    "Éan beag le ceann dearg agus sciatháin dhubha.",
    "Aderyn bach gyda phen coch ac adenydd du.",
    "Txori txiki bat buru gorria eta hego beltzak dituena.",
    "Un ocell petit amb el cap vermell i les ales negres.",
    "Mala ptica s crvenom glavom i crnim krilima.",
    "Мала птица са црвеном главом и црним крилима.",
    "Malý vták s červenou hlavou a čiernymi krídlami.",
    "Majhna ptica z rdečo glavo in črnimi krili.",
    "Väike lind punase pea ja mustade tiibadega.",
    "Mazs putns ar sarkanu galvu un melniem spārniem.",
    "Mažas paukštis su raudona galva ir juodais sparnais.",
    "Një zog i vogël me kokë të kuqe dhe krahë të zinj.",
    "Malgranda birdo kun ruĝa kapo kaj nigraj flugiloj.",
    "Avis parva capite rubro et alis nigris.",
    "'n Klein voëltjie met 'n rooi kop en swart vlerke.",
)


def main(argv=None):
    """The shares of questions that one run declines because it does not know them."""
    options = _parser().parse_args(argv)
    model, test = open_run(options.run, options.data_dir)
    own = probes_of(options.run)
    if own is None or not own.known:
        raise InputError(
            f"{options.run}: has no probes that know what training has seen; make them with "
            "`halo confidence probes`"
        )
    encoded = encode(model, test.records, test.source)
    resizing = resizing_of(options.run)
    result = unknown_study(model, own.known, encoded, resizing, options.photos, options.seed)
    for name, one in result.items():
        print(f"{name}: declined {one['declined']} of {one['queries']} ({one['share']:.1%})")
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        RunFolder(options.out).write_json("unknown.json", result)


def unknown_study(
    model: DualEncoder,
    known: dict[str, KnownQueries],
    encoded: EncodedSplit,
    resizing: dict[str, Any],
    photos: str | os.PathLike | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Which share of strange questions is declined, and of a split's own.

    Args:
        model: a `DualEncoder` of pictures with a tokenizer.
        known: by direction, `zoo.confidence.KnownQueries`, as of the model's probes.
        encoded: the `EncodedSplit` of the test split.
        resizing: `{"mode", "crop_fraction"}`, see `zoo.evaluation.resizing_of`.
        photos: a folder of photos of other things, of which 30 are drawn, or None.
        seed: of invented words, colours and photos.

    Returns:
        A dict by kind of question: `queries`, `declined` and `share`. With captions known: 140
        texts of `invented words`, 50 sentences of `other languages`, the split's `captions`; with
        images known: 30 `plain colours`, `other photos` and the split's `images`.

    Raises:
        InputError: if the folder has fewer than 30 photos that can be read.
    """
    rng, asked = np.random.default_rng(seed), {}
    if "t2i" in known:
        for name, texts in (
            ("invented words", invented_texts(rng)),
            ("other languages", OTHER_LANGUAGES),
        ):
            embeddings = model.tower("captions").of_texts(texts)
            asked[name] = known["t2i"], query_facts(model, embeddings, texts)
        asked["captions"] = known["t2i"], facts_of_split(model, encoded, "t2i")
    if "i2t" in known:
        size = model.image_encoder.input_shape[1] or 224
        pictures = {"plain colours": plain_colours(rng, size)}
        if photos is not None:
            pictures["other photos"] = _photos(rng, photos, size, resizing)
        for name, pixels in pictures.items():
            asked[name] = known["i2t"], query_facts(model, model.tower("images").of_arrays(pixels))
        asked["images"] = known["i2t"], facts_of_split(model, encoded, "i2t")
    result = {}
    for name, (of_side, facts) in asked.items():
        declined = of_side.declined(**facts)
        result[name] = {
            "queries": len(declined),
            "declined": int(declined.sum()),
            "share": float(declined.mean()),
        }
    return result


def invented_texts(rng: np.random.Generator) -> list[str]:
    """140 texts of 1 to 8 invented words, twenty of each length of `LENGTHS`."""

    def word():
        count = rng.integers(2, 4)
        return "".join(
            rng.choice(list(_CONSONANTS)) + rng.choice(list(_VOWELS)) for _ in range(count)
        )

    return [
        " ".join(f"{word()}{rng.choice(list(_CONSONANTS))}" for _ in range(length))
        for length in LENGTHS
        for _ in range(EACH)
    ]


def plain_colours(rng: np.random.Generator, size: int) -> np.ndarray:
    """30 pictures of one colour each, float32 `(30, size, size, 3)`."""
    colours = rng.integers(0, 256, (PICTURES, 1, 1, 3))
    return np.broadcast_to(colours, (PICTURES, size, size, 3)).astype(np.float32)


def _photos(rng, folder, size, resizing):
    folder = existing_folder(Path(folder).expanduser(), "folder of photos")
    paths = sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    if len(paths) < PICTURES:
        raise InputError(f"{folder}: expected {PICTURES} photos at least, found {len(paths)}")
    chosen = rng.choice(len(paths), PICTURES, replace=False)
    pixels = [
        images.prepare(tf.io.read_file(str(paths[i])), size, **resizing) for i in sorted(chosen)
    ]
    return np.stack(pixels).astype(np.float32)


def _parser():
    parser = OneLineParser(prog="python -m studies.strange_questions", description=__doc__)
    parser.add_argument("run", metavar="RUN", help="a run folder, or the name of a preset")
    parser.add_argument("--photos", type=Path, help="folder of photos of other things")
    parser.add_argument("--data-dir", type=Path, help="the run's data set, if it has moved")
    parser.add_argument("--seed", type=int, default=0, help="of all randomness (default 0)")
    parser.add_argument("--out", type=Path, help="folder for unknown.json")
    return parser


if __name__ == "__main__":
    run(main)
