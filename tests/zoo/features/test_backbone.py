"""What every backbone promises, whatever its architecture."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import get_args

import pytest
import torch
from torch import Tensor

from layerboard.zoo.errors import InputError
from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.load.backbone import identify, load_backbone
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import Dtype, Layer
from tests.zoo.conftest import CPU, Loader, Small
from tests.zoo.reduced import grids_of, pixels

MINI = (
    *("mini-fs", "mini-clip", "mini-mae", "mini-beit", "mini-resnet"),
    *("mini-fs64-noskip6", "mini-random", "mini-pixels"),
)
"""One of each architecture, and the floors."""


def grids(backbone: Backbone, images: Tensor) -> list[Tensor]:
    return [grid.float() for grid in grids_of(backbone, images).values()]


@pytest.mark.parametrize("name", MINI)
def test_shapes_of_every_layer_at_an_odd_size(name: str, kept: Loader) -> None:
    backbone = kept(find([name])[0])
    spec, seen = backbone.spec, list[Layer]()
    patch = spec.patch_size
    height, width = 9 * patch, 13 * patch

    def check(features: LayerFeatures) -> None:
        stage = spec.stage_of(features.layer)
        seen.append(features.layer)
        assert features.grid.shape == (2, height // stage.stride, width // stage.stride, stage.width)
        assert features.mean.shape == (2, stage.width)
        assert (features.cls is None) != spec.has_cls
        assert features.cls is None or features.cls.shape == (2, stage.width)
        assert features.grid.isfinite().all()

    backbone.visit(pixels(2, height, width), check)
    assert tuple(seen) == spec.layers


@pytest.mark.slow
@pytest.mark.parametrize("name", ["beit-b16", "resnet50"])
def test_compiled_blocks_give_the_same_features(
    name: str, small: Small, loader: Loader, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = small(name).spec
    backbone, images = loader(spec), pixels(2, 64, 64)
    expected = grids(backbone, images)
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    backbone.compile()
    assert bool(backbone.compiled) == (name != "resnet50")
    for count in (2, 1):
        for plain, layer in zip(expected, grids(backbone, images[:count]), strict=True):
            torch.testing.assert_close(layer, plain[:count], rtol=1e-5, atol=1e-5)
    if spec.heads:
        assert [*grids_of(backbone, images, [Layer(3, "attention")])] == ["3.attention"]


def test_what_cannot_be_compiled_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> Tensor:
        raise NotImplementedError("no kernel")

    backbone = load_backbone(find(["mini-mae"])[0], device=CPU, cache_dir=tmp_path)
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=broken))
    backbone.compile()
    with pytest.raises(InputError, match=r"mini-mae cannot be compiled .*no kernel.*; leave --compile out"):
        grids(backbone, pixels(1, 64, 64))


FROM_FILES = ("swin-t", "swinv2-t", "hiera-t", "bit-50", "dinov3-convnext-t", "aimv2-l14", "capi-l14-in1k")


@pytest.mark.parametrize("name", [*MINI, *FROM_FILES])
def test_the_batch_does_not_matter(name: str, small: Small, cache: Path) -> None:
    """In float64, since what is asked is whether images touch each other, not how a processor rounds."""
    spec = small(name).spec if name in FROM_FILES else find([name])[0]
    backbone = load_backbone(replace(spec, dtype="float64"), device=CPU, cache_dir=cache)
    images = pixels(2, spec.input_size, spec.input_size + spec.patch_size)
    together, alone = grids_of(backbone, images), [grids_of(backbone, image[None]) for image in images]
    for layer, grid in together.items():
        assert grid.dtype == torch.float64 or spec.is_floor
        separate = torch.cat([layers[layer] for layers in alone])
        torch.testing.assert_close(grid, separate, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", ["mini-dino", "mini-resnet", "mini-random"])
def test_only_the_layers_asked_for_in_order(name: str, kept: Loader) -> None:
    backbone = kept(find([name])[0])
    images = pixels(1, 64, 64)
    everything = grids_of(backbone, images)
    seen = grids_of(backbone, images, {backbone.spec.layers[-1], Layer(7), Layer(0)})
    assert [*seen] == ["0", "7", str(backbone.spec.layers[-1])]
    assert all(torch.equal(grid, everything[layer]) for layer, grid in seen.items())


def test_a_view_of_the_live_activation_not_a_copy(kept: Loader) -> None:
    backbone = kept(find(["mini-dino"])[0])
    bases: list[bool] = []
    backbone.visit(
        pixels(1, 64, 64), lambda f: bases.append(f.cls is not None and f.grid._base is f.cls._base)
    )
    assert all(bases)


def test_hooks_are_gone_after_a_visitor_fails(kept: Loader) -> None:
    backbone = kept(find(["mini-fs"])[0])

    def fail(features: LayerFeatures) -> None:
        raise KeyError(features.layer)

    with pytest.raises(KeyError):
        backbone.visit(pixels(1, 64, 64), fail)
    assert len(grids(backbone, pixels(1, 64, 64))) == len(backbone.spec.layers)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *(("mini-clip", "bfloat16"), ("mini-clip", "float16"), ("mini-clip", "amp-bfloat16")),
        *(("mini-beit", "amp-bfloat16"), ("mini-resnet", "bfloat16"), ("mini-random", "float16")),
    ],
)
def test_lower_precision_is_close(name: str, dtype: Dtype, cache: Path, kept: Loader) -> None:
    (spec,) = find([name])
    backbone = load_backbone(replace(spec, dtype=dtype), device=CPU, cache_dir=cache)
    images = pixels(1, 3 * 16, 5 * 16)
    for low, full in zip(grids(backbone, images), grids(kept(spec), images), strict=True):
        assert (low - full).norm() < 0.05 * full.norm()


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (pixels(1, 60, 64), "takes images whose sides are multiples of 8 px, not 64 x 60 px"),
        (pixels(1, 64, 64).float(), "takes uint8 pixels"),
        (pixels(1, 64, 64)[:, :1], "takes uint8 pixels"),
    ],
)
def test_wrong_pixels(images: Tensor, message: str, kept: Loader) -> None:
    with pytest.raises(InputError, match=message):
        kept(find(["mini-dino"])[0]).visit(images, lambda _: None)


def test_a_network_unlike_its_entry_is_found_by_its_first_batch(loader: Loader) -> None:
    backbone = loader(find(["mini-dino"])[0])
    backbone.spec = replace(backbone.spec, prefix_tokens=5)  # type: ignore[misc]
    with pytest.raises(
        InputError, match="layer 0 should be 5 prefix tokens and 8 x 8 patch tokens of width 96"
    ):
        backbone.visit(pixels(1, 64, 64), lambda _: None)


def test_missing_device(cache: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a CUDA device")
    with pytest.raises(InputError, match="no CUDA device"):
        load_backbone(find(["mini-dino"])[0], device=torch.device("cuda"), cache_dir=cache)


def test_fingerprints_tell_backbones_and_dtypes_apart(cache: Path, small: Small) -> None:
    specs = (*find(["mini-?e*", "random"]), small("dino-s16").spec, small("resnet50").spec)
    prints = [
        identify(replace(spec, dtype=dtype), cache_dir=cache).fingerprint
        for spec in specs
        for dtype in get_args(Dtype)
    ]
    assert len(set(prints)) == len(prints)


def test_fingerprint_of_local_weights_follows_their_content(
    cache: Path, small: Small, loader: Loader
) -> None:
    reduced = small("dino-s16")
    first = identify(reduced.spec, cache_dir=cache)
    backbone = loader(reduced.spec)
    assert (backbone.revision, backbone.fingerprint) == (first.revision, first.fingerprint)
    moved = reduced.folder.rename(reduced.folder.with_name("moved"))
    spec = replace(reduced.spec, repository=str(moved))
    assert identify(spec, cache_dir=cache) == first
    path = moved / "model.safetensors"
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    path.write_bytes(path.read_bytes()[:-1] + b"\7")
    os.utime(path, ns=times)  # of the same size and time, as a copy with kept times leaves it
    assert identify(spec, cache_dir=cache) != first
