"""Taps of networks whose blocks have the usual parts: what they show adds up to the stream."""

import pytest
import torch

from layerboard.zoo.spec import Layer, Tap
from tests.zoo.own.module import networks as nets
from tests.zoo.own.module.networks import SIZE, WIDTH
from tests.zoo.own.module.test_network import given, loaded
from tests.zoo.reduced import grids_of

EVERY: tuple[Tap, ...] = ("input", "norm1", "heads", "attention", "mid", "norm2", "mlp_hidden", "mlp")
WITHOUT_HEADS: tuple[Tap, ...] = tuple(tap for tap in EVERY if tap != "heads")
PIXELS = torch.randint(0, 256, (2, 3, SIZE, SIZE), dtype=torch.uint8, generator=torch.Generator())


class UsualFirst(nets.UsualTorch):
    """On tokens [tokens batch dim]."""

    @staticmethod
    def attention() -> torch.nn.Module:
        return torch.nn.MultiheadAttention(WIDTH, 3)


@pytest.mark.parametrize(
    ("net", "taps", "heads"),
    [
        (nets.Vit(kind=nets.Usual), EVERY, 3),
        (nets.Vit(kind=nets.UsualTorch), WITHOUT_HEADS, 3),
        (nets.TokensFirst(kind=UsualFirst), WITHOUT_HEADS, 3),
        (nets.Vit(prefix=0, kind=nets.Mixer), WITHOUT_HEADS, None),
    ],
    ids=["fused", "torch", "tokens-first", "mixer"],
)
def test_what_attention_and_mlp_add_is_what_the_stream_gains(
    net: nets.Vit, taps: tuple[Tap, ...], heads: int | None
) -> None:
    network = given(net.eval())
    assert (network.spec.inside, network.spec.heads) == (taps, heads)
    assert f"  taps inside each block: {', '.join(taps[:-1])} and mlp" in network.lines
    backbone = loaded(network)
    asked = [Layer(index, tap) for index in (1, 2, 3) for tap in (*taps, "block")]
    shown = grids_of(backbone, PIXELS, asked)
    for index, block in enumerate(net.blocks, start=1):
        of = {tap: shown[str(Layer(index, tap))] for tap in (*taps, "block")}
        torch.testing.assert_close(of["input"] + of["attention"], of["mid"])
        torch.testing.assert_close(of["mid"] + of["mlp"], of["block"])
        assert float(of["attention"].abs().max()) > 0
        torch.testing.assert_close(block.norm1(of["input"]), of["norm1"])
        torch.testing.assert_close(block.norm2(of["mid"]), of["norm2"])
        hidden = block.mlp[1](block.mlp[0](of["norm2"]))
        torch.testing.assert_close(hidden, of["mlp_hidden"])
        if "heads" in of:
            projected = block.attn.proj(of["heads"]) * block.gamma
            torch.testing.assert_close(projected, of["attention"])


@pytest.mark.parametrize("kind", [nets.Block, nets.Beside, nets.Calling, nets.InWindows])
def test_blocks_of_another_form_have_no_taps(kind: type[nets.Block]) -> None:
    spec = given(nets.Vit(prefix=0, kind=kind)).spec
    assert (spec.taps, spec.inside) == (None, ())


def test_blocks_that_differ_have_no_taps() -> None:
    net = nets.Vit(kind=nets.Usual)
    net.blocks[1].norm3 = net.blocks[1].norm1
    del net.blocks[1].norm1
    net.blocks[1].norm1 = torch.nn.Identity()  # the first block has a norm there
    assert given(net).spec.taps is None
