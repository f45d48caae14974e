import keras
import keras_hub
import numpy as np
import pytest

from zoo.encoders import bert
from zoo.errors import InputError

SIZE = {"num_layers": 2, "num_heads": 2, "hidden_dim": 8}
IDS = np.array([[2, 5, 6, 3, 0, 0], [2, 5, 6, 7, 8, 3], [2, 3, 0, 0, 0, 0]], "int32")


def test_states_do_not_depend_on_padding_and_survive_saving(tmp_path):
    backbone = bert(vocabulary_size=20, max_length=6, **SIZE)
    outputs = backbone(IDS)
    assert outputs["features"].shape == (3, 6, 8)
    np.testing.assert_array_equal(outputs["mask"], IDS != 0)
    shorter = bert(vocabulary_size=20, max_length=4, **SIZE)
    shorter.set_weights(backbone.get_weights())
    alone = shorter(IDS[:1, :4])["features"]
    np.testing.assert_allclose(alone[0], outputs["features"][0, :4], atol=1e-5)
    backbone.save(tmp_path / "bert.keras")
    loaded = keras.saving.load_model(tmp_path / "bert.keras")
    np.testing.assert_allclose(loaded(IDS)["features"], outputs["features"], atol=1e-6)


def test_a_local_preset_is_read(tmp_path):
    network = keras_hub.models.BertBackbone(20, intermediate_dim=16, max_sequence_length=8, **SIZE)
    network.save_to_preset(str(tmp_path / "preset"))
    features = bert(tmp_path / "preset", max_length=6)(IDS)["features"]
    mask = (IDS != 0).astype("int32")
    inputs = {"token_ids": IDS, "segment_ids": 0 * IDS, "padding_mask": mask}
    np.testing.assert_allclose(features, network(inputs)["sequence_output"], atol=1e-6)
    with pytest.raises(InputError, match="reads 8 tokens; received 9"):
        bert(tmp_path / "preset", max_length=9)
    with pytest.raises(InputError, match="no such folder"):
        bert(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="not a preset of BERT"):
        bert(tmp_path / "empty")
