"""Networks of timm: by a small double of the library everywhere, and by timm itself where it is installed."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from layerboard.benchmark.plan.backbones import with_weights
from layerboard.zoo.errors import InputError
from layerboard.zoo.load.backbone import describe_backbone, identify, load_backbone
from layerboard.zoo.own import timm_models
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import Layer, Stage
from layerboard.zoo.spec.origin import TIMM
from tests.zoo.own.module.networks import SIZE, WIDTH, Vit
from tests.zoo.reduced import grids_of, layers_of, pixels

CPU = torch.device("cpu")
SETTINGS = {
    "input_size": (3, SIZE, SIZE),
    "mean": (0.1, 0.2, 0.3),
    "std": (0.4, 0.5, 0.6),
    "license": "mit",
    "hf_hub_id": "timm/vit_small.tag",
    "url": "https://example.org/vit_small.pth",
}


def create_model(
    name: str,
    pretrained: bool = False,
    pretrained_cfg_overlay: dict[str, Any] | None = None,
    dynamic_img_size: bool = False,
) -> nn.Module:
    """What timm does of that name: options, ``pretrained_cfg``, weights of a file, all of them needed."""
    architecture, _, tag = name.partition(".")
    if architecture == "plain" and dynamic_img_size:
        raise TypeError("got an unexpected keyword argument 'dynamic_img_size'")
    net = Vit(fixed=not dynamic_img_size)
    vars(net)["pretrained_cfg"] = {**SETTINGS, "tag": tag, "hf_hub_id": f"timm/{name}"}
    if pretrained:
        assert pretrained_cfg_overlay is not None
        net.load_state_dict(load_file(pretrained_cfg_overlay["file"]), strict=True)
    return net


@pytest.mark.usefixtures("double")
def test_what_timm_names_cannot_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network whose blocks are in no list, such as a RegNet's."""
    net = nn.Sequential(nn.Conv2d(3, 4, 8, 8))
    monkeypatch.setattr(sys.modules["timm"], "create_model", lambda name, **options: net)
    words = (
        r"^timm:plain: Sequential has no list of modules of one class, .*; give blocks=, .*, to "
        r"layerboard.from_module\(timm.create_model\('plain', pretrained=True\), \.\.\.\), since timm"
    )
    with pytest.raises(InputError, match=words):
        find(["timm:plain"])


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    """Nothing that was found out of another library is remembered."""
    timm_models.timm_network.cache_clear()
    yield
    timm_models.timm_network.cache_clear()


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library of that name with what is used of it."""
    timm = ModuleType("timm")
    vars(timm).update(
        create_model=create_model,
        is_model=lambda name: name in ("vit_small", "plain"),
        list_models=lambda pattern: ["vit_small"] if pattern == "*vit*" else [],
    )
    monkeypatch.setitem(sys.modules, "timm", timm)


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    """A file of other weights than the network is built with."""
    net = Vit()
    tensors = {name: tensor + 0.01 for name, tensor in net.state_dict().items()}
    save_file(tensors, tmp_path / "weights.safetensors")
    return tmp_path / "weights.safetensors"


@pytest.mark.usefixtures("double")
def test_facts_are_timm_s_and_the_network_s() -> None:
    for text in ("timm:vit_small.tag", "timm:vit_small@tag"):
        (spec,) = find([text])
        assert (spec.name, spec.origin, spec.repository) == (text, TIMM, "timm/vit_small.tag")
    assert (spec.mean, spec.std) == ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    assert (spec.input_size, spec.fixed_size, spec.licence) == (SIZE, False, "mit")
    assert (spec.family, spec.supervision, spec.paper) == ("networks", "timm tag tag", "timm tag")
    assert spec.has_cls
    assert spec.stages == (Stage(3, WIDTH, 8),)
    lines = describe_backbone(spec, None).splitlines()
    assert lines[0].startswith("timm:vit_small@tag: 3 blocks of net.blocks, 1 prefix token + 4x4 grid")
    assert "(from its pretrained_cfg)" in lines[2]
    assert find(["timm:plain"])[0].fixed_size


@pytest.mark.usefixtures("double")
def test_weights_are_a_file_s_and_the_identity_is_theirs(weights: Path, tmp_path: Path) -> None:
    (spec,) = with_weights(find(["timm:vit_small.tag"]), {"timm:vit_small.tag": weights})
    assert (spec.origin, spec.repository) == (TIMM, str(weights))
    identity = identify(spec, cache_dir=tmp_path)
    assert identity.revision.startswith("sha256:")
    backbone = load_backbone(spec, device=CPU, cache_dir=tmp_path)
    assert backbone.fingerprint == identity.fingerprint
    images = pixels(2, SIZE, 2 * SIZE)
    features = layers_of(backbone, images, [Layer(3), Layer(3, "final")])["3"]
    net = Vit()
    net.load_state_dict(load_file(weights))
    expected = by_hand(net, images)
    assert features.cls is not None
    torch.testing.assert_close(features.cls, expected[:, 0])
    torch.testing.assert_close(features.grid, expected[:, 1:].unflatten(1, (4, 8)))


def by_hand(net: Vit, images: Tensor) -> Tensor:
    """The last block's output."""
    mean, std = (torch.tensor(SETTINGS[name])[:, None, None] for name in ("mean", "std"))
    x = net.embed((images / 255 - mean) / std)
    for block in net.blocks:
        x = block(x)
    return x


@pytest.mark.usefixtures("double")
def test_what_is_wrong_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"timm has no network 'vit'; did you mean vit_small\?"):
        find(["timm:vit"])
    (tmp_path / "wrong.safetensors").write_bytes(b"no weights")
    (spec,) = with_weights(find(["timm:vit_small"]), {"timm:vit_small": tmp_path / "wrong.safetensors"})
    with pytest.raises(InputError, match=r"wrong.safetensors is not a readable safetensors file"):
        load_backbone(spec, device=CPU, cache_dir=tmp_path)
    narrow = {name: tensor[:4] for name, tensor in Vit().state_dict().items()}
    save_file(narrow, tmp_path / "wrong.safetensors")
    with pytest.raises(InputError, match=r"with the weights .*: .*patches.weight: .*\[4, 3, 8, 8\].*\[12, 3"):
        load_backbone(spec, device=CPU, cache_dir=tmp_path)
    save_file(Vit().state_dict() | {"more": torch.zeros(1)}, tmp_path / "wrong.safetensors")
    with pytest.raises(InputError, match=r"Unexpected key\(s\) in state_dict: .*more"):
        load_backbone(spec, device=CPU, cache_dir=tmp_path)
    (spec,) = find(["timm:vit_small"])
    with pytest.raises(InputError, match="the Hub cannot be reached"):
        identify(spec, cache_dir=tmp_path)


def test_without_timm_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(InputError, match=r"need timm; install it with: pip install 'layerboard\[timm\]'"):
        find(["timm:vit_small"])


@pytest.mark.filterwarnings("ignore")
def test_timm_itself(tmp_path: Path) -> None:
    try:
        import timm
    except Exception as error:  # it is absent, or its torchvision does not fit torch
        pytest.skip(f"timm cannot be imported: {error}")
    name = "vit_tiny_patch16_224.augreg_in21k_ft_in1k"
    net = timm.create_model(name)
    save_file(net.state_dict(), tmp_path / "weights.safetensors")
    text = f"timm:{name}"
    (spec,) = with_weights(find([text]), {text: tmp_path / "weights.safetensors"})
    assert (spec.depth, spec.width, spec.prefix_tokens, spec.fixed_size) == (12, 192, 1, False)
    assert (spec.mean, spec.family) == ((0.5, 0.5, 0.5), "vit")
    backbone = load_backbone(spec, device=CPU, cache_dir=tmp_path)
    images = pixels(1, 224, 224)
    (grid,) = grids_of(backbone, images, [Layer(12, "final")]).values()
    with torch.no_grad():
        expected = net.eval().forward_features((images / 255 - 0.5) / 0.5)
    torch.testing.assert_close(grid.flatten(1, 2), expected[:, 1:], atol=1e-4, rtol=1e-4)
