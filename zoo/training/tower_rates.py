"""The parameter groups of a dual encoder on pretrained backbones."""

from zoo.encoders.clip import clip_blocks
from zoo.models import DualEncoder
from zoo.training.layerwise import rates_by_depth


def dual_encoder_rates(
    model: DualEncoder,
    image_rate: float = 0.01,
    caption_rate: float = 0.1,
    layer_decay: float = 0.7,
    decay_last_block: bool = False,
) -> dict[str, float]:
    """The factors on the learning rate of PCME++'s parameter groups.

    Heads and the similarity have 1, a backbone has its rate. A CLIP backbone's last block has it
    too, and every block below `layer_decay` of the next, counted by the blocks that there are.
    Embeddings and norms are outside of the blocks and are not decayed.

    Args:
        model: a `DualEncoder` whose towers have a part `"backbone"`; one without has the factor 1.
        image_rate, caption_rate: of the backbones.
        layer_decay: factor from one block to the one below it.
        decay_last_block: whether the last block has that factor once too, as the released code.

    Returns:
        A dict from variable paths to factors, for `LayerwiseAdamP(rates=…)`.

    Reference: PCME++ (Chun, ICLR 2024), section 3.1 ("for each transformer block") and table B.1.

    Released code differs: its last block has `layer_decay` too; it counts 12 blocks in every
        network, which is wrong for ViT-L/14.
    """
    rates = {}
    for tower, rate in (
        (model.image_encoder, image_rate),
        (model.caption_encoder, caption_rate),
    ):
        last = rate * layer_decay if decay_last_block else rate
        for backbone in (layer for layer in tower.layers if layer.name == "backbone"):
            rates |= rates_by_depth([backbone], rate=rate)
            rates |= rates_by_depth(clip_blocks(backbone), layer_decay, last)
    return rates
