"""Packaged networks without transformers: every number is that of transformers' own classes, bit for bit."""

import subprocess
import sys

import pytest
import torch
from torch import Tensor

from layerboard.mini.networks import PackagedLoader
from layerboard.zoo.features import LayerFeatures, Shown
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.load.files import FileLoader
from layerboard.zoo.registry.find import all_specs
from layerboard.zoo.spec import Layer
from layerboard.zoo.spec.origin import PACKAGED

SPECS = [spec for spec in all_specs() if spec.origin == PACKAGED]
TAPS = ("mid", "attention", "mlp", "query", "key", "value", "heads", "mlp_hidden", "probabilities")


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_equal_to_transformers(spec, tmp_path):
    taps = TAPS if spec.heads else ("skip", "branch")
    layers = [*spec.layers, *(Layer(block, tap) for block in (1, spec.depth) for tap in taps)]
    loaders = FileLoader(), PackagedLoader()
    theirs, ours = (each.load(spec, torch.device("cpu"), tmp_path) for each in loaders)
    assert ours.fingerprint == theirs.fingerprint
    for height, width in ((64, 64), (64, 48), (144, 192)):
        generator = torch.Generator().manual_seed(height)
        pixels = torch.randint(0, 256, (3, 3, height, width), dtype=torch.uint8, generator=generator)
        for asked in (layers, spec.layers):  # eager attention for probabilities, else fused
            expected, given = (_shown(each, pixels, asked) for each in (theirs, ours))
            assert given.keys() == expected.keys() == {*asked}
            assert all(torch.equal(given[layer], expected[layer]) for layer in asked)


def _shown(
    backbone: Backbone, pixels: Tensor, layers: "list[Layer] | tuple[Layer, ...]"
) -> dict[Layer, Tensor]:
    seen: dict[Layer, Tensor] = {}

    def keep(shown: Shown) -> None:
        of_layer = isinstance(shown, LayerFeatures)
        parts = [shown.cls, shown.grid] if of_layer else [shown.probabilities]
        seen[shown.layer] = torch.cat([part.flatten() for part in parts if part is not None])

    backbone.visit(pixels, keep, layers)
    return seen


@pytest.mark.slow  # a process of its own imports torch
def test_loading_imports_no_transformers():
    code = "import sys, layerboard; [layerboard.load(name) for name in sys.argv[1:]]; print(*sys.modules)"
    names = "mini-fs", "mini-clip", "mini-beit", "mini-resnet", "mini-fs64-noskip6"
    done = subprocess.run([sys.executable, "-c", code, *names], capture_output=True, text=True, check=True)
    assert "transformers" not in done.stdout.split()
