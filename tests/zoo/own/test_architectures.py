"""Every network of timm that a suite or a page names opens with random weights, smaller than it is."""

import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from layerboard.benchmark.plan.suites import SUITES
from layerboard.zoo.errors import InputError
from layerboard.zoo.features import BackboneIdentity
from layerboard.zoo.features.hooked import HookedBackbone
from layerboard.zoo.own.timm_models import build_timm, timm_network
from layerboard.zoo.spec import Layer
from tests.zoo.reduced import grids_of, pixels
from workshop.site.pages import DOCS

pytest.importorskip("timm", exc_type=ImportError)
pytestmark = pytest.mark.filterwarnings("ignore")

PAGES = "\n".join(path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md")))
NAMED = {name for suite in SUITES for name in suite.backbones if name.startswith("timm:")}
NAMED |= {*re.findall(r"\btimm:[a-z]+_\w+(?:\.\w+)?", PAGES)}
KINDS = {  # whether a network is a ConvNet, has attention, and shows this
    "resnetv2_50": (True, False, False),
    "convnext_femto": (True, False, False),
    "vit_small_r26_s32_224": (False, True, True),
    "swin_tiny_patch4_window7_224": (False, True, False),
    "mixer_s32_224": (False, False, False),
    "mobilevitv2_050": (False, True, False),  # hybrids: attention in some blocks, among convolutions
    "edgenext_xx_small": (False, True, False),
    "coatnet_nano_rw_224": (False, True, False),
    "lambda_resnet26t": (False, True, False),  # its kernels have three axes
    "resnest14d": (True, False, False),  # weights its branches by a softmax
}
SMALLER = {"depth": 2, "num_blocks": 2, "embed_dim": 96, "layers": (1, 1, 2, 1), "width_factor": 1}


@pytest.fixture(autouse=True)
def _smaller(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Networks are built with fewer blocks and channels than their names say."""

    def build(whole: Callable[..., nn.Module], *given: object, **options: Any) -> nn.Module:
        return whole(*given, **{name: SMALLER.get(name, value) for name, value in options.items()})

    for module in [module for name, module in sys.modules.items() if name.startswith("timm.models.")]:
        if whole := vars(module).get("build_model_with_cfg"):
            monkeypatch.setattr(module, "build_model_with_cfg", partial(build, whole))
    timm_network.cache_clear()
    yield
    timm_network.cache_clear()


@pytest.mark.parametrize("name", sorted(NAMED))
def test_what_is_named_opens_and_shows_every_layer(name: str) -> None:
    examined = timm_network(name)
    spec = examined.spec
    network = examined.network(build_timm(name))
    backbone = HookedBackbone(spec, network, BackboneIdentity("", ""), torch.device("cpu"))
    grids = grids_of(backbone, pixels(1, spec.input_size, spec.input_size))
    assert [*grids] == [str(layer) for layer in spec.layers]
    assert all(grid.isfinite().all() for grid in grids.values())
    assert backbone.weights().filters is not None
    is_vit = "vit_" in name or "deit" in name
    assert (backbone.weights().positions is not None, spec.has_cls, spec.heads is not None) == (is_vit,) * 3
    assert not is_vit or not backbone.refusal([Layer(1, "probabilities"), Layer(1, "heads")])


@pytest.mark.parametrize("name", KINDS)
def test_a_network_is_asked_what_it_is(name: str) -> None:
    spec = timm_network(f"timm:{name}").spec
    lines = "\n".join(timm_network(f"timm:{name}").lines)
    shown = "attention probabilities of" in lines
    assert ("not taken for blocks: 8 modules of net.patch_embed" in lines) == ("r26" in name)
    assert (spec.is_convnet, spec.heads is not None, shown) == KINDS[name]


def test_tokens_of_hiera_which_do_not_follow_row_by_row_are_refused() -> None:
    with pytest.raises(InputError, match="of Hiera are tokens that do not follow row by row, as all must"):
        timm_network("timm:hiera_tiny_224")
