import re

import keras
import pytest

import zoo
from halo_search.index import SPACES
from halo_search.index.similarities import BY_NAME, NAMES
from zoo import losses, similarities
from zoo.similarities import by_name

CLASSES = [
    cls
    for name in similarities.__all__
    if isinstance(cls := getattr(similarities, name), type) and cls is not similarities.Similarity
]
KINDS = {"a point", "a Gaussian", "a set", "a token sequence"}


@pytest.mark.parametrize("name", similarities.NAMES)
def test_every_name_leads_to_a_layer_and_back(name):
    assert similarities.name_of(similarities.get(name)) == name
    assert by_name.current_name(type(similarities.get(name)).__name__) == name


def test_every_class_has_a_name_of_its_own():
    names = [cls.identifier for cls in CLASSES]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[a-z][a-z0-9_]*", name) for name in names)
    assert set(similarities.NAMES) == {c.identifier for c in CLASSES if not c.needs_model}


@pytest.mark.parametrize("cls", CLASSES)
def test_what_a_class_states_is_known_elsewhere(cls):
    assert set(cls.embeddings) <= KINDS
    assert cls.embeddings or cls is similarities.AverageSimilarity
    assert cls.space is None or cls.space in SPACES
    assert cls.from_space is None or cls.space
    if cls.function is not None:
        assert by_name.owner_of(cls.function) is cls
        assert getattr(similarities, cls.function.__name__) is cls.function


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("hamming", "must be one of .*csd.*received 'hamming'"),
        ("mean", "'mean' is now called 'euclidean'"),
        ("ClosedFormSampledDistance", "'ClosedFormSampledDistance' is now called 'csd'"),
        ("sgr", "'sgr' needs a model"),
    ],
)
def test_what_there_is_not_is_refused(name, message):
    with pytest.raises(ValueError, match=message):
        similarities.get(name)


class Model:
    def __init__(self, similarity):
        self.similarity = similarity


def test_a_models_own_similarity_is_given():
    own = similarities.Cosine(scale=3.0)
    assert similarities.get("cosine", Model(own)) is own
    assert similarities.get("csd", Model(own)) is not own


def test_match_probability_takes_no_scale_of_another_distance():
    def taken(own):
        layer = similarities.get("match_probability", Model(own))
        return float(layer.scale), float(layer.shift)

    assert taken(similarities.EuclideanDistance(3.0, 2.0)) == (3.0, 2.0)
    assert taken(similarities.SetMatchProbability(4.0, 1.0)) == (4.0, 1.0)
    for squared in ("ClosedFormSampledDistance", "SquaredEuclidean", "SquaredWasserstein2"):
        assert taken(getattr(similarities, squared)(3.0, 2.0)) == (10.0, 10.0)
    assert taken(similarities.Cosine(3.0)) == (10.0, 10.0)


def test_a_call_of_its_own_states_what_goes_with_it():
    with pytest.raises(TypeError, match="must state identifier, from_space, function too"):

        class Incomplete(similarities.ClosedFormSampledDistance):
            space = "csd"

            def call(self, images, captions):
                return super().call(images, captions) ** 3

    class Other(similarities.ClosedFormSampledDistance):
        identifier = space = from_space = function = None

        def call(self, images, captions):
            return super().call(images, captions) ** 3

    assert Other.is_log_odds  # what it does not state is inherited, as in any class
    assert similarities.name_of(Other(name="mine")) == "mine"

    class Renamed(similarities.ClosedFormSampledDistance):
        identifier = "renamed"

    assert Renamed.space == "csd"
    assert type(similarities.get("renamed")) is Renamed


def test_a_name_is_given_once():
    with pytest.raises(ValueError, match="`identifier` must be free; 'csd' is zoo"):

        class Mine(similarities.Similarity):
            identifier = "csd"


def test_a_model_knows_whether_its_logits_are_log_odds():
    def gives(similarity, loss):
        tower = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
        model = zoo.models.DualEncoder(tower, tower, similarity, loss=loss)
        return model.gives_match_probability

    matching = losses.MatchingCrossentropy()
    for name in ("csd", "euclidean", "squared_euclidean", "match_probability"):
        assert gives(similarities.get(name), matching)
        assert not gives(similarities.get(name), losses.TripletRanking())
    for name in ("set_match_probability", "cosine", "kl"):
        assert not gives(similarities.get(name), matching)


def test_commands_know_the_names_without_keras():
    assert set(BY_NAME) < set(NAMES)
    assert similarities.NAMES is NAMES
