"""Backbones that end after a layer: their vectors, and that nothing is computed or kept beyond."""

import numpy as np
import pytest
import torch
from PIL import Image

from layerboard.zoo.errors import InputError
from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.features.cut import CutBackbone, Pooled
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import FastResized, FitLongSide, ResizeCrop, Tiles
from tests.benchmark.doubles import CountingBackbone
from tests.zoo.conftest import Loader, Small
from tests.zoo.reduced import grids_of, layers_of, pixels

FAMILIES = (
    *("fs-b16", "deit-b16-distilled", "clip-b32", "mae-b16", "beit-b16", "beit-b16-ft22k-ft1k"),
    *("data2vec-b16", "dinov2-s14", "dinov2-s14-reg", "dinov3-s16", "siglip-b16", "aimv2-l14"),
    *("ijepa-h14", "msn-s16", "swin-t", "swinv2-t", "hiera-t"),
    *("resnet50", "bit-50", "convnext-t", "convnextv2-t", "dinov3-convnext-t"),
)
"""One entry of each architecture."""

CUT_AT_THE_END = ("fs-b16", "clip-b32", "beit-b16", "swin-t", "resnet50", "bit-50")
"""Those that are also cut at their last layer, which is behind a norm or not."""

VIEW = ResizeCrop(72, 64)


def watch(backbone: HookedBackbone) -> list[int]:
    """Numbers of the blocks that run from now on."""
    ran: list[int] = []
    for index, block in enumerate(backbone._network.blocks, start=1):
        block.register_forward_pre_hook(lambda *_, index=index: ran.append(index))
    return ran


@pytest.mark.parametrize("name", FAMILIES)
def test_a_cut_backbone_gives_the_vectors_of_the_whole_one(name: str, small: Small, loader: Loader) -> None:
    spec = small(name).spec
    images = pixels(2, spec.input_size, spec.input_size)
    layers, sizes = [Layer(spec.depth // 2), *spec.layers[-1:][: name in CUT_AT_THE_END]], list[int]()
    for layer in layers:
        backbone = loader(spec)
        expected = layers_of(backbone, images)[str(layer)]  # before anything is cut
        assert isinstance(backbone, HookedBackbone)
        ran = watch(backbone)
        cut = CutBackbone(backbone, layer, "cls" if spec.has_cls else "mean", VIEW)
        vectors = cut(images)
        assert set(ran) == set(range(1, layer.index + 1))
        torch.testing.assert_close(
            vectors, expected.mean if expected.cls is None else expected.cls.float(), rtol=1e-5, atol=1e-5
        )
        assert vectors.shape == (2, cut.dim)
        body, norm = backbone._network.body, backbone._network.final_norm
        kept = [weight for weight in body.parameters() if not weight.is_meta]
        kept += [] if norm is None else [weight for weight in norm.parameters() if not weight.is_meta]
        assert sum({id(weight): weight.numel() for weight in kept}.values()) == cut.parameters
        sizes.append(cut.parameters)
    assert sizes[0] < (sizes[1] if sizes[1:] else sum(weight.numel() for weight in body.parameters()))


def photos() -> list[Image.Image]:
    random = np.random.default_rng(0)
    sizes = [(80, 70), (80, 70), (100, 90)]
    return [Image.fromarray(random.integers(0, 255, (*size, 3), dtype=np.uint8)) for size in sizes]


def test_images_are_shown_through_the_view(loader: Loader) -> None:
    spec = find(["mini-fs"])[0]
    cut = CutBackbone(loader(spec), Layer(2), "cls", VIEW)
    images = photos()
    expected = cut(torch.cat([VIEW.render(image) for image in images]))
    torch.testing.assert_close(cut(images), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(cut(images[0]), expected[:1], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(cut([images[0].convert("RGBA")]), expected[:1], rtol=1e-5, atol=1e-5)
    assert cut([]).shape == (0, 96)


def test_arrays_and_iterables_are_images_too(loader: Loader) -> None:
    cut = CutBackbone(loader(find(["mini-fs"])[0]), Layer(2), "cls", VIEW)
    images = photos()[:2]
    arrays = [np.asarray(image) for image in images]
    grey = Image.fromarray(arrays[0][..., 0])
    expected, of_grey = cut(images), cut(grey)
    for given in (iter(images), (each for each in arrays), np.stack(arrays)):
        torch.testing.assert_close(cut(given), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(cut(arrays[0]), expected[:1], rtol=1e-5, atol=1e-5)
    for array in (arrays[0][..., 0], arrays[0][..., :1]):
        torch.testing.assert_close(cut(array), of_grey, rtol=1e-5, atol=1e-5)
    assert torch.equal(cut.preprocess(arrays[0]), VIEW.render(images[0])[0])
    for wrong, found in ((np.zeros((4, 5, 2), np.uint8), "uint8"), (np.zeros((4, 5, 3)), "float64")):
        with pytest.raises(InputError, match=f"found {found}"):
            cut(wrong)
    with pytest.raises(InputError, match=r"expected images of Pillow, paths, bytes, .* found a int"):
        cut([1])  # type: ignore[list-item]
    with pytest.raises(InputError, match="in tiles, not in one piece"):
        CutBackbone(loader(find(["mini-fs"])[0]), Layer(2), "grid", Tiles(128, 64, 8)).preprocess(images[0])


def test_a_head_is_trained_on_top_of_the_module(loader: Loader) -> None:
    cut = CutBackbone(loader(find(["mini-fs"])[0]), Layer(2), "cls", VIEW)
    pixels = torch.stack([cut.preprocess(image) for image in photos()])
    head = torch.nn.Linear(cut.dim, 2)
    model = torch.nn.Sequential(cut.module, head)
    assert [*model.state_dict()] == ["1.weight", "1.bias"]
    assert sum(weight.numel() for weight in model.parameters()) == 2 * cut.dim + 2
    before, optimizer = cut(pixels), torch.optim.SGD(model.parameters(), lr=0.01)
    labels, losses = torch.tensor([0, 1, 1]), []
    for _ in range(20):
        loss = torch.nn.functional.cross_entropy(model(pixels), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    assert torch.equal(model.train()[0](pixels), before)


def test_grids_keep_their_places_also_of_tiles(loader: Loader) -> None:
    spec = find(["mini-fs"])[0]
    cut = CutBackbone(loader(spec), Layer(2), "grid", VIEW)
    assert cut(photos()).shape == (3, 8, 8, 96)
    fitted = CutBackbone(loader(spec), Layer(2), "grid", FitLongSide(64, 8))
    assert fitted(photos()[:2]).shape == (2, 8, 7, 96)
    with pytest.raises(InputError, match="different sizes; give one at a time"):
        fitted([photos()[0], photos()[0].resize((80, 80))])
    view = Tiles(128, 64, 8)
    tiled = CutBackbone(loader(spec), Layer(2), "grid", view)
    assert tiled(photos()[:1]).shape == (1, 18, 16, 96)
    first = cut(view.render(photos()[0])[:1])[0]
    torch.testing.assert_close(tiled(photos()[:1])[0, :8, :8], first, rtol=1e-5, atol=1e-5)
    fast = CutBackbone(loader(spec), Layer(2), "grid", FastResized(view))
    torch.testing.assert_close(fast(photos()[:1]), tiled(photos()[:1]), rtol=0.1, atol=0.1)
    with pytest.raises(InputError, match="in tiles, which have no one class token"):
        CutBackbone(loader(spec), Layer(2), "cls", view)(photos()[:1])


def test_all_tokens_are_averaged_alike(loader: Loader) -> None:
    backbone = loader(find(["mini-fs"])[0])
    cls, grid, both = (
        CutBackbone(backbone, Layer(2), name, VIEW)(photos()) for name in ("cls", "grid", "all")
    )
    tokens = torch.cat([cls[:, None], grid.flatten(1, 2)], dim=1)
    torch.testing.assert_close(both, tokens.mean(dim=1), rtol=1e-5, atol=1e-5)


def test_both_poolings_and_the_generalised_mean(loader: Loader) -> None:
    backbone = loader(find(["mini-fs"])[0])
    cls, mean, both, gem, grid = (
        CutBackbone(backbone, Layer(9), name, VIEW)(photos())
        for name in ("cls", "mean", "cls+mean", "gem", "grid")
    )
    assert torch.equal(both, torch.cat([cls, mean], dim=1))
    tokens = np.maximum(grid.flatten(1, 2).numpy().astype(np.float64), 1e-6)
    np.testing.assert_allclose(gem, np.cbrt((tokens**3).mean(axis=1)), rtol=1e-5)
    assert (grid < 0).float().mean() > 0.3  # what it loses of a transformer
    negative = LayerFeatures(Layer(1), None, torch.tensor([[[[-3.0, 2.0]], [[-1.0, -2.0]]]]))
    torch.testing.assert_close(negative.gem, torch.tensor([[1e-6, 4.0 ** (1 / 3)]]))


@pytest.mark.parametrize("name", ["fs-b16", "dinov2-s14-reg", "clip-b32", "swin-t"])
def test_a_block_behind_the_final_norm(name: str, small: Small, loader: Loader) -> None:
    """It is what the norm makes of the block, in the one forward; the last one is the layer ``final``."""
    spec = small(name).spec
    backbone, images = loader(spec), pixels(2, spec.input_size, spec.input_size)
    assert isinstance(backbone, HookedBackbone)
    ran = watch(backbone)
    block = Layer(spec.depth - 1)
    layers = [block, Layer(block.index, "block-normed"), Layer(spec.depth, "block-normed")]

    plain, normed, last, final = grids_of(backbone, images, [*layers, Layer(spec.depth, "final")]).values()
    assert ran == [*range(1, spec.depth + 1)]
    norm = backbone._network.final_norm
    assert norm is not None
    torch.testing.assert_close(normed, norm(plain))
    assert not torch.allclose(normed, plain, atol=0.1)
    assert torch.equal(last, final)
    cut = CutBackbone(backbone, layers[1], "mean", VIEW)
    ran.clear()
    torch.testing.assert_close(cut(images), normed.mean(dim=(1, 2)))
    assert ran == [*range(1, spec.depth)]  # cut there, and its norm is kept


@pytest.mark.parametrize(
    ("name", "layer", "pooling", "words"),
    [
        ("mini-resnet", Layer(1), "cls", "has no class token; take the pooling 'mean', 'gem' or 'grid'"),
        ("mini-resnet", Layer(1), "all", "has no class token"),
        ("mini-resnet", Layer(1), "cls+mean", "has no class token"),
        ("mini-resnet", Layer(9, "block-normed"), "mean", r"layer 9\.block-normed: it has no final norm"),
        ("mini-resnet", Layer(13), "mean", "mini-resnet has no layer 13"),
        ("mini-fs", Layer(0, "block-normed"), "mean", r"no layer 0\.block-normed: its blocks are 1 to 12"),
        ("mini-fs", Layer(1), "patchwise", r"take the pooling 'cls', 'cls\+mean', 'all', 'mean', 'gem' or"),
    ],
)
def test_what_a_backbone_has_not_got_is_refused(
    name: str, layer: Layer, pooling: Pooled, words: str, kept: Loader
) -> None:
    with pytest.raises(InputError, match=words):
        CutBackbone(kept(find([name])[0]), layer, pooling, VIEW)


def test_an_object_of_somebodys_own_ends_at_the_layer_too() -> None:
    backbone = CountingBackbone()
    cut = CutBackbone(backbone, Layer(2), "mean", ResizeCrop(32, 32))
    vectors = cut(torch.full((2, 3, 32, 32), 10, dtype=torch.uint8))
    torch.testing.assert_close(vectors[:, :3], torch.full((2, 3), 12.0))
    assert (cut.parameters, cut.dim) == (0, 8)
