"""Real checkpoints of the Hub load, and are what their entries say."""

import os
from pathlib import Path

import pytest
import torch

from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.registry.find import find

pytestmark = [
    pytest.mark.network,
    pytest.mark.skipif(
        os.environ.get("LAYERBOARD_NETWORK_TESTS") != "1",
        reason="downloads checkpoints; set LAYERBOARD_NETWORK_TESTS=1 and HF_HUB_OFFLINE=0",
    ),
]

NAMES = (
    *("fs-b16", "clip-b16", "dino-s16", "moco-b16", "mae-b16", "beit-b16", "resnet50"),
    *("dinov2-s14", "dinov2-s14-reg", "siglip-b16", "aimv2-l14", "data2vec-b16", "msn-s16"),
    *("bit-50", "convnext-t", "convnextv2-t", "swin-t", "swinv2-t"),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_real_checkpoint_shows_every_layer(name: str, tmp_path: Path) -> None:
    (spec,) = find([name])
    backbone = load_backbone(spec, device=torch.device("cpu"), cache_dir=tmp_path)
    seen: list[LayerFeatures] = []
    side = spec.input_size
    pixels = torch.randint(0, 256, (2, 3, side, side), dtype=torch.uint8)
    backbone.visit(pixels, seen.append)  # checks widths, tokens and layers against the entry
    assert [features.layer for features in seen] == list(spec.layers)
    assert all(features.grid.isfinite().all() for features in seen)
    assert backbone.revision
