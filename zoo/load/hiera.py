"""What a configuration of Hiera says of its stages."""

from transformers import HieraConfig

from zoo.errors import InputError
from zoo.spec import Stage


def hiera_stages(config: HieraConfig) -> tuple[Stage, ...]:
    """Stages of a Hiera that pools before each of them but the first, down to one cell a mask unit.

    The repositories of the pre-training (``-mae-hf``) say that the last stage is not pooled, since their
    decoder wants it finer; the others hold the same weights and pool it.

    Raises:
        InputError: It pools elsewhere, otherwise than by twos, or ends with units of more cells.
    """
    pools = len(config.depths) - 1
    first = int(config.patch_stride[0])
    expected = {
        "num_query_pool": (config.num_query_pool, pools),
        "query_stride": (tuple(config.query_stride), (2, 2)),
        "masked_unit_size": (tuple(config.masked_unit_size), (2**pools, 2**pools)),
        "patch_stride": (tuple(config.patch_stride), (first, first)),
    }
    wrong = [f"{what} is {found}, not {said}" for what, (found, said) in expected.items() if found != said]
    if wrong:
        raise InputError(
            f"A Hiera of {pools + 1} stages should pool by twos before each but the first, but the "
            f"configuration's {'; '.join(wrong)}; in place of a checkpoint of the pre-training, "
            "facebook/hiera-*-mae-hf, give the one without -mae, which holds the same weights."
        )
    widths = (int(config.embed_dim * config.embed_dim_multiplier**index) for index in range(pools + 1))
    stages = enumerate(zip(config.depths, widths, strict=True))
    return tuple(Stage(int(blocks), width, first * 2**index) for index, (blocks, width) in stages)
