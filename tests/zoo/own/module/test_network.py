"""Networks of anybody's own: what is read from each layout, and what is refused."""

import gc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from layerboard.zoo.errors import InputError
from layerboard.zoo.features import AttentionMaps, LayerFeatures, Shown
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.features.taps import probabilities_of
from layerboard.zoo.load.backbone import identify, load_backbone
from layerboard.zoo.own.module.network import NetworkCopy, given_network
from layerboard.zoo.own.module.options import ModuleOptions
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import BackboneSpec, Dtype, Layer, Stage
from layerboard.zoo.spec.origin import MODULE
from tests.zoo.own.module import networks as nets
from tests.zoo.own.module.networks import PATCH, SIZE, WIDTH
from tests.zoo.reduced import layers_of

GRID = SIZE // PATCH
CALLED = "recomputed from the call of scaled_dot_product_attention in each block"
CPU = torch.device("cpu")


def given(net: nn.Module, **told: object) -> NetworkCopy:
    return given_network(net, ModuleOptions(**{"name": "own", "image_size": SIZE, **told}))  # type: ignore[arg-type]


def loaded(network: NetworkCopy) -> Backbone:
    return load_backbone(network.spec, device=CPU, cache_dir=Path("nowhere"))


def noise(side: int = SIZE) -> Tensor:
    """Two images."""
    return torch.randint(0, 256, (2, 3, side, side), dtype=torch.uint8, generator=torch.Generator())


def shown(network: NetworkCopy, side: int = SIZE) -> dict[str, LayerFeatures]:
    """Features of every layer of a batch of two, by layer."""
    return layers_of(loaded(network), noise(side))


def normalised(side: int = SIZE) -> Tensor:
    """The images as a network takes them."""
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    return (noise(side) / 255 - mean[:, None, None]) / std[:, None, None]


def by_hand(net: nets.Vit, side: int = SIZE) -> list[Tensor]:
    """Layers of a small transformer, computed without hooks."""
    layers = [net.embed(normalised(side))]
    for block in net.blocks:
        layers.append(block(layers[-1]))
    return [*layers, net.norm(layers[-1])]


@pytest.mark.parametrize("prefix", [0, 1, 5])
def test_tokens_are_told_apart_from_what_is_before_them(prefix: int) -> None:
    net = nets.Vit(prefix)
    network = given(net)
    spec = network.spec
    assert (spec.prefix_tokens, spec.has_cls, spec.has_final) == (prefix, prefix > 0, True)
    assert spec.stages == (Stage(3, WIDTH, PATCH),)
    tokens = "1 prefix token" if prefix == 1 else f"{prefix} prefix tokens"
    first, *_ = network.lines
    assert first == (
        f"own: 3 blocks of net.blocks, {tokens} + 4x4 grid of patch 8, 12 channels, final norm net.norm"
    )
    for side in (SIZE, 2 * SIZE):
        for one, expected in zip(shown(network, side).values(), by_hand(net, side), strict=True):
            grid = expected[:, prefix:].unflatten(1, (side // PATCH, side // PATCH))
            torch.testing.assert_close(one.grid, grid)
            assert (one.cls is None) == (prefix == 0)
            assert one.cls is None or torch.allclose(one.cls, expected[:, 0], atol=1e-5)


@pytest.mark.parametrize("kind", [nets.Called, nets.TokensFirst])
def test_blocks_are_called_and_answer_in_any_way(kind: type[nets.Vit]) -> None:
    net = kind()
    network = given(net)
    for one, expected in zip(shown(network).values(), by_hand(nets.Vit()), strict=False):
        torch.testing.assert_close(one.grid, expected[:, 1:].unflatten(1, (GRID, GRID)))
    assert network.spec.has_final == (kind is nets.Called)
    if kind is nets.TokensFirst:
        assert "tokens [tokens batch dim]" in network.lines[1]
        assert "no norm takes the output of the last block" in str(network)


class Layered(nets.Block):
    """With a list of layers inside its MLP, which ends with them."""

    def __init__(self) -> None:
        super().__init__()
        layers = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(2)))
        self.mlp = nn.Sequential(layers)  # type: ignore[assignment]


@pytest.mark.parametrize("kind", [nets.Mixing, Layered])
def test_heads_beside_each_other_and_layers_of_an_mlp_are_no_blocks(kind: type[nets.Block]) -> None:
    assert "3 blocks of net.blocks," in given(nets.Vit(kind=kind)).lines[0]


def test_feature_maps_of_stages() -> None:
    net = nets.ConvNet()
    network = given(net)
    spec = network.spec
    assert spec.stages == (Stage(2, 8, 4), Stage(3, 16, 8))
    assert (spec.stem_width, spec.stem_stride, spec.has_cls, spec.prefix_tokens) == (6, 2, False, 0)
    assert network.lines[0] == (
        "own: 5 blocks of net.layer*, 0 prefix tokens + 8x8/4x4 grid of patch 4/8, 8/16 channels, "
        "final norm net.bn"
    )
    layers = shown(network)
    assert [tuple(one.grid.shape[1:]) for one in layers.values()] == [
        (16, 16, 6),
        *2 * [(8, 8, 8)],
        *4 * [(4, 4, 16)],
    ]
    net.train(False)
    torch.testing.assert_close(
        layers["final"].grid, net.bn(layers["5"].grid.permute(0, 3, 1, 2)).movedim(1, 3)
    )
    assert not spec.fixed_size
    assert shown(network, 48)["5"].grid.shape == (2, 6, 6, 16)


def test_maps_with_channels_last_and_as_many_channels_as_cells() -> None:
    network = given(nets.Swin())
    assert network.spec.stages == (Stage(2, 8, 4), Stage(2, 8, 8))
    assert "4 blocks of net.layers.*.blocks, 0 prefix tokens + 8x8/4x4 grid" in network.lines[0]
    assert "feature maps [batch height width dim]" in network.lines[1]
    torch.testing.assert_close(shown(network)["final"].grid, nets.Swin()(normalised()))


def test_a_size_of_its_own_that_has_no_whole_cells_is_rounded() -> None:
    net = nets.ConvNet()
    vars(net)["pretrained_cfg"] = {"input_size": (3, 44, 44), "mean": (0, 0, 0), "std": (1, 1, 1)}
    network = given(net, image_size=None)
    assert network.spec.input_size == SIZE
    assert network.lines[2].startswith("  images of 32 px (from its pretrained_cfg, 44, in whole cells)")
    with pytest.raises(InputError, match="for a batch of 3 images of 44 px, which is no square grid"):
        given(net, image_size=44)
    vars(net)["pretrained_cfg"]["input_size"] = (3, 32, 48)
    with pytest.raises(InputError, match="takes images of 32 x 48 px; only square ones are shown"):
        given(net, image_size=None)


class Necked(nets.Vit):
    """With another list of blocks behind the norm."""

    def __init__(self) -> None:
        super().__init__()
        self.neck = nn.Sequential(nets.Block(), nets.Block())

    def forward(self, images: Tensor) -> Tensor:
        x = self.embed(images)
        for block in self.blocks:
            x = block(x)
        return self.neck(self.norm(x))  # type: ignore[no-any-return]


def test_of_two_lists_none_is_obvious_and_both_are_offered() -> None:
    offer = r"give blocks='blocks\.\*' \(3 Block\), 'neck\.\*' \(2 Block\), or another pattern of names in "
    with pytest.raises(InputError, match=f"Necked has several lists of modules of one class, .*; {offer}"):
        given(Necked())
    for blocks, depth in (("blocks.*", 3), ("neck.*", 2)):
        network = given(Necked(), blocks=blocks)
        assert network.spec.depth == depth
        assert f"{depth} blocks of net.{blocks.partition('.')[0]}," in network.lines[0]


@pytest.mark.parametrize("module", ["neck", "neck.1.norm"])
def test_of_two_lists_that_is_taken_which_timm_names_or_names_a_part_of(module: str) -> None:
    net = Necked()
    vars(net)["feature_info"] = [{"module": module}]
    assert "2 blocks of net.neck," in given(net).lines[0]


class Hybrid(nets.Vit):
    """With a longer stem of convolutions."""

    def __init__(self) -> None:
        super().__init__(kind=nets.Fused)
        self.stem = nn.Sequential(*(nets.ConvBlock(3) for _ in range(5)))

    def embed(self, images: Tensor) -> Tensor:
        return super().embed(self.stem(images))


def test_blocks_of_tokens_win_over_a_longer_stem_and_what_is_left_is_said() -> None:
    network = given(Hybrid())
    assert "3 blocks of net.blocks, 1 prefix token + 4x4 grid" in network.lines[0]
    assert "  not taken for blocks: 5 modules of net.stem" in network.lines
    assert "5 blocks of net.stem, 0 prefix tokens" in given(Hybrid(), blocks="stem").lines[0]


class Apart(nn.Module):
    """Blocks that are attributes, in no list, with noise of the network's own between them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 4, 4)
        self.stage1, self.stage2 = nets.ConvBlock(8), nets.ConvBlock(8, 2, 16)

    def forward(self, images: Tensor) -> Tensor:
        return self.stage2(self.stage1(self.stem(images)) + 1)  # type: ignore[no-any-return]


def test_blocks_in_no_list_are_offered_by_their_names() -> None:
    with pytest.raises(
        InputError, match=r"Apart has several lists .*; give blocks='stage\*' \(2 ConvBlock\), or"
    ):
        given(Apart())
    assert given(Apart(), blocks="stage*").spec.stages == (Stage(1, 8, 4), Stage(1, 16, 8))


class Encoder(nn.Module):
    """A transformer of torch's own layers, as many a tutorial has it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.patches = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.cls_token = nn.Parameter(torch.randn(1, 1, WIDTH))
        layer = nn.TransformerEncoderLayer(WIDTH, 3, 24, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(WIDTH), enable_nested_tensor=False)

    def forward(self, images: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).mT
        return self.encoder(torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1))  # type: ignore[no-any-return]


def of_transformers() -> nn.Module:
    from transformers import ViTConfig, ViTModel

    config = ViTConfig(
        hidden_size=WIDTH,
        num_hidden_layers=2,
        num_attention_heads=3,
        intermediate_size=24,
        image_size=SIZE,
        patch_size=PATCH,
    )
    return ViTModel(config, add_pooling_layer=False)


class Wrapped(nn.Module):
    """Another network with a head, whose forward gives logits."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.backbone, self.head = net, nn.Linear(WIDTH, 10)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.backbone(images))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (Encoder, "2 blocks of net.encoder.layers, 1 prefix token + 4x4 grid of patch 8"),
        (of_transformers, "2 blocks of net."),
        (
            lambda: Wrapped(nets.Vit()),
            "3 blocks of net.backbone.blocks, 1 prefix token + 4x4 grid of patch 8",
        ),
        (lambda: nn.DataParallel(nets.Vit()), "3 blocks of net.blocks, 1 prefix token + 4x4 grid of patch 8"),
    ],
)
def test_usual_networks_need_no_word(make: Callable[[], nn.Module], words: str) -> None:
    network = given(make(), image_size=SIZE)
    assert words in network.lines[0]
    assert (network.spec.prefix_tokens, network.spec.has_cls, network.spec.has_final) == (1, True, True)


class Square(nn.Module):
    """Maps of as many channels as rows, in every layer."""

    def __init__(self, block: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 4, 4)
        self.blocks = nn.Sequential(block(), block())

    def forward(self, images: Tensor) -> Tensor:
        return self.blocks(self.stem(images))  # type: ignore[no-any-return]


def test_maps_with_as_many_channels_as_rows_are_read_by_what_a_change_of_the_image_moves() -> None:
    def anywhere() -> nn.Module:
        return nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 8))

    assert given(Square(lambda: nets.ConvBlock(8))).spec.stages == (Stage(2, 8, 4),)
    for network in (given(Square(anywhere)), given(Square(anywhere), layout="maps")):
        assert network.spec.stages == (Stage(2, 8, 4),)
        assert "feature maps [batch dim height width]" in network.lines[1]


@pytest.mark.parametrize(
    ("blocks", "depth", "words"),
    [
        (lambda net: net.layer2, 3, "net.layer2"),
        (lambda net: [net.layer1, net.layer2], 2, "net.layer*"),
        (lambda net: "layer*.*", 5, "net.layer*"),
        (lambda net: "net.layer1", 2, "net.layer1"),
        (lambda net: [net.layer2[2]], 1, "net.layer2.2"),
        (lambda net: ["layer1.1", "layer2.*"], 4, "net.layer*"),
    ],
)
def test_blocks_are_named_in_several_ways(blocks: object, depth: int, words: str) -> None:
    net = nets.ConvNet()
    network = given(net, blocks=blocks(net))  # type: ignore[operator]
    assert network.spec.depth == depth
    assert f" of {words}," in network.lines[0]
    assert "blocks as given" in network.lines[1]


def test_a_norm_is_named_or_refused() -> None:
    net = nets.Vit()
    assert not given(net, final_norm=False).spec.has_final
    assert given(net, final_norm="net.norm").spec.has_final
    assert given(net, final_norm=net.norm).lines[0].endswith("final norm net.norm")
    for norm, message in (
        ("normal", "names no module of Vit"),
        (nn.LayerNorm(WIDTH), "is no module inside Vit"),
        (net.patches, "final_norm patches makes .12, 2, 1. of .3, 17, 12.; a norm keeps the shape"),
    ):
        with pytest.raises(InputError, match=message):
            given(net, final_norm=norm)


@pytest.mark.parametrize(
    ("net", "told", "message"),
    [
        (nets.ClassTokenLast(), {}, "tokens 16 .from 0. are the same for all images; such tokens"),
        (nets.Masked(), {}, "do not follow row by row|with the images beside it, .* or by chance"),
        (nets.Vit(), {"prefix_tokens": 2}, "which contradicts layout= or prefix_tokens="),
        (nets.Vit(), {"layout": "maps"}, "which contradicts layout= or prefix_tokens="),
        (nets.Vit(), {"image_size": 33}, "is .3 17 12. for a batch of 3 images of 33 px, which is no square"),
        (nets.Vit(), {"image_size": (32, 48)}, "image_size takes the side of square images"),
        (
            nets.Vit(),
            {"blocks": "layers.*"},
            "blocks='layers..' names no module of Vit; give blocks='blocks..' .3 Block",
        ),
        (nets.Vit(), {"blocks": ()}, "is empty; give blocks='blocks..' .3 Block"),
        (nets.Vit(), {"blocks": [3]}, "a block should be a module of the network; found 3"),
        (nets.Vit(), {"blocks": [nets.Block()]}, "a block, a Block, is no module inside Vit"),
        (nets.Vit().to("meta"), {}, "more of the Vit are on the meta device; load weights first"),
        (nets.Vit(), {"name": "two words"}, "needs a name of letters, digits"),
        (nets.Vit(), {"family": "random"}, "which is that of the random floor"),
        (
            nets.Vit(),
            {"std": (0, 1, 1)},
            "mean and std take three finite numbers each, red, green, blue, std above 0",
        ),
        (nets.Vit(), {"mean": (0, 1)}, "mean and std take three finite numbers each"),
        (nn.Sequential(nn.Conv2d(3, 4, 1)), {}, "Sequential has no list of modules .*; give blocks="),
        ("net", {}, "a network should be a torch.nn.Module; found 'net'"),
    ],
)
def test_what_contradicts_is_refused(net: nn.Module, told: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        given(net, **told)


class Remembering(nets.Block):
    """With what was seen before in its output."""

    seen: Tensor | float = 0.0

    def forward(self, x: Tensor) -> Tensor:
        self.seen = 0.9 * self.seen + x.mean()
        return super().forward(x) + self.seen


@pytest.mark.parametrize(
    ("net", "layer"), [(nets.Vit(kind=nets.AttendingFirst), "1"), (nets.Vit(kind=Remembering), "1")]
)
def test_features_that_are_not_of_the_image_alone_are_refused(net: nn.Module, layer: str) -> None:
    message = f"the features of an image change by .* at layer {layer} with the images beside it, such as by"
    with pytest.raises(InputError, match=message):
        given(net)


def test_blocks_that_do_not_run_once_in_order_are_refused() -> None:
    net = nets.Vit()
    with pytest.raises(InputError, match=r"blocks run in the order blocks.0, blocks.1, blocks.2"):
        given(net, blocks=list(net.blocks)[::-1])
    net.blocks.append(nets.Block())
    net.blocks.append(net.blocks[1])
    with pytest.raises(InputError, match=r"block blocks.1 runs 2 times in one forward"):
        given(net, blocks=list(net.blocks)[:4])


def test_a_network_that_cannot_run_is_one_sentence() -> None:
    net = nets.Vit(fixed=True)
    with pytest.raises(
        InputError, match=r"Vit does not take images .1 3 64 64.: ValueError: 'images of 32 px"
    ):
        given(net, image_size=64)
    fixed = given(net)
    assert fixed.spec.fixed_size
    assert fixed.lines[-1] == "  images of other sizes: no, its forward fails on 48 x 40 px"


def test_the_network_itself_is_left_alone() -> None:
    net = nets.Vit().train()
    network = given(net)
    assert net.training
    assert all(one.requires_grad for one in net.parameters())
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in net.modules())
    before = shown(network)["3"].grid
    with torch.no_grad():
        net.patches.weight.zero_()
    torch.testing.assert_close(shown(network)["3"].grid, before)


def test_the_fingerprint_is_of_weights_features_and_places() -> None:
    def print_of(network: NetworkCopy, dtype: Dtype = "float32") -> str:
        return identify(replace(network.spec, dtype=dtype), cache_dir=Path("nowhere")).fingerprint

    same = [
        given(nets.Vit()),
        given(nets.Vit().train()),
        given(nets.Vit(), name="another", family="any word"),
    ]
    changed = nets.Vit()
    with torch.no_grad():
        changed.norm.bias[0] += 1e-3
    eps = nets.Vit()
    eps.norm.eps = 1e-3
    others = [given(changed), given(eps), given(nets.Vit(), blocks="blocks.1"), given(nets.Vit(5))]
    assert len({one.revision for one in same}) == 1
    assert len({one.revision for one in [*same, *others]}) == 5
    assert print_of(same[0]) != print_of(same[0], "float16")
    assert print_of(same[0]) != print_of(given(nets.Vit(), mean=(0, 0, 0)))


def test_a_network_is_found_as_long_as_somebody_holds_it() -> None:
    network = given(nets.Vit())
    reference = network.reference
    (spec,) = find([reference])
    assert isinstance(spec, BackboneSpec)
    assert (spec.name, spec.origin) == ("own", MODULE)
    del network
    gc.collect()
    with pytest.raises(
        InputError, match="the network own is not in this process; keep what from_module gave"
    ):
        find([reference])
    taken = given(nets.Vit(), name="mini-fs")
    with pytest.raises(InputError, match="The registry has a backbone of the name 'mini-fs'"):
        find([taken.reference])


@pytest.mark.parametrize(
    ("kind", "net", "words"),
    [
        (nets.Attending, nets.Vit, "3 heads, shown by attn of each block"),
        (nets.AttendingFirst, nets.TokensFirst, "3 heads, shown by attn of each block"),
        (nets.Fused, nets.Vit, f"3 heads, {CALLED}"),
        (nets.Calling, nets.Vit, f"4 heads, {CALLED}"),
    ],
)
def test_attention_probabilities(kind: type[nets.Block], net: type[nets.Vit], words: str) -> None:
    """Those of torch's attention and of one as timm's, beside features that are the same without them."""
    own, plain = (
        net(kind=kind).eval(),
        nets.Vit(kind=nets.Attending if kind is nets.AttendingFirst else kind).eval(),
    )
    network = given(own)
    assert network.spec.heads == int(words[0])
    assert f"  attention probabilities of {words}" in network.lines
    backbone = loaded(network)
    seen: list[Shown] = []
    asked = [Layer(index, tap) for index in (1, 2, 3) for tap in ("probabilities", "block")]
    backbone.visit(noise(), seen.append, asked)
    assert [one.layer for one in seen] == asked
    expected, features = by_hand(plain), shown(network)
    for before, block, maps, after in zip(expected, plain.blocks, seen[::2], seen[1::2], strict=False):
        assert isinstance(maps, AttentionMaps)
        assert isinstance(after, LayerFeatures)
        torch.testing.assert_close(maps.probabilities, block.probabilities(before))
        torch.testing.assert_close(after.grid, features[str(after.layer)].grid)
    assert "has no layer 1.heads" in backbone.refusal([Layer(1, "heads")])


@pytest.mark.parametrize(
    "options", [{}, {"scale": 0.1}, {"is_causal": True}, {"attn_mask": "bias"}, {"attn_mask": "some"}]
)
@pytest.mark.parametrize("heads", [(6, 6), (6, 2), (1, 1)])
def test_probabilities_of_a_call_are_what_torch_multiplies_values_with(
    options: dict[str, object], heads: tuple[int, int]
) -> None:
    draw = torch.Generator().manual_seed(0)
    (query, key), value = (torch.randn(2, count, 5, 4, generator=draw) for count in heads), torch.eye(5)
    masks = {
        "bias": torch.randn(5, 5, generator=draw),
        "some": torch.eye(5) + torch.rand(5, 5, generator=draw) > 0.6,
    }
    words = {name: masks.get(str(option), option) for name, option in options.items()}
    parts: tuple[Tensor, ...] = (query, key, value.expand(2, heads[1], 5, 5))
    if heads == (1, 1):
        parts = tuple(part[:, 0] for part in parts)
    else:
        words["enable_gqa"] = heads[1] < heads[0]
    expected = nn.functional.scaled_dot_product_attention(*parts, **words)  # type: ignore[arg-type]
    found = probabilities_of(*parts, **words)  # type: ignore[arg-type]
    torch.testing.assert_close(found, expected.view(2, heads[0], 5, 5))


def test_a_forward_pass_that_is_interrupted_leaves_nothing_behind() -> None:
    network, seen = given(nets.Vit(kind=nets.Calling)), []
    backbone = loaded(network)

    def interrupt(shown: Shown) -> None:
        seen.append(shown)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        backbone.visit(noise(), interrupt, [Layer(1, "probabilities")])
    shown(network)
    assert len(seen) == 1


class CallingTwice(nets.Calling):
    """With a second call, so that neither is the attention of the block."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(super().forward(x))


@pytest.mark.parametrize("kind", [nets.Twice, nets.InWindows, CallingTwice])
def test_attention_that_is_not_over_all_tokens_of_a_block(kind: type[nets.Block]) -> None:
    """It is known, so that the network is no ConvNet, and not shown."""
    network = given(nets.Vit(prefix=0, kind=kind))
    assert (network.spec.heads is None, network.spec.is_convnet) == (False, False)
    assert "cannot be read" in loaded(network).refusal([Layer(1, "probabilities")])


def test_what_it_does_not_show_is_one_sentence() -> None:
    network = given(nets.Vit())
    backbone = loaded(network)
    assert backbone.refusal([Layer(1, "probabilities")]).endswith(
        "cannot be read: that takes one nn.MultiheadAttention, Attention of timm, or call of "
        "scaled_dot_product_attention in each block, over all of its tokens."
    )
    assert "has no layer 1.mlp" in backbone.refusal([Layer(1, "mlp")])
    (field,) = backbone.receptive_fields(noise(), [Layer(3)], lambda _: [0])
    assert field.strength.shape == (SIZE, SIZE)
    filters = backbone.weights().filters
    assert filters is not None
    assert filters.shape == (WIDTH, 3, PATCH, PATCH)
