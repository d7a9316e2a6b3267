"""Which network of a file is taken: prefixes of trainings, and files that hold two networks."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from layerboard.benchmark.plan.backbones import with_weights
from layerboard.zoo.errors import InputError
from layerboard.zoo.load.backbone import describe_backbone, identify
from layerboard.zoo.load.files import locate
from layerboard.zoo.load.network import read_network_of
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import BackboneSpec, Layer
from tests.zoo.conftest import Loader
from tests.zoo.layouts import Tensors
from tests.zoo.published import Published, publish
from tests.zoo.reduced import grids_of, pixels, reduce

Under = Callable[[Tensors, Tensors], object]


def under(prefix: str, tensors: Tensors) -> Tensors:
    return {f"{prefix}{name}": tensor for name, tensor in tensors.items()}


def chunked(tensors: Tensors) -> Tensors:
    """Blocks in chunks of two, as a sharded training keeps them."""
    return {
        f"blocks.{int(name.split('.')[1]) // 2}.{name[7:]}" if name.startswith("blocks.") else name: tensor
        for name, tensor in tensors.items()
    }


def shown(spec: BackboneSpec, loader: Loader) -> torch.Tensor:
    """What the last block shows of one image."""
    (grid,) = grids_of(loader(spec), pixels(1, *[spec.input_size] * 2), [Layer(spec.depth)]).values()
    return grid


@pytest.fixture
def published(tmp_path: Path) -> Published:
    return publish("dino", tmp_path)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory, loader: Loader) -> torch.Tensor:
    """What the network shows whose file has plain names."""
    return shown(publish("dino", tmp_path_factory.mktemp("plain")).spec, loader)


@pytest.mark.parametrize(
    "content",
    [
        lambda net: under("_orig_mod.", net),
        lambda net: under("module._orig_mod.module.", net),
        lambda net: {"state_dict": under("model.", net), "hyper_parameters": {"lr": 0.1}},
        lambda net: {"state_dict": under("model.net.encoder.", net)},
        lambda net: under("net.", net) | {"fc.weight": torch.ones(2, 2)},
        lambda net: {"model_state_dict": under("backbone.", net), "optimizer": {"state": {0: {}}}},
        lambda net: {name.replace("blocks.1.", "blocks.1._orig_mod."): t for name, t in net.items()},
        lambda net: {"model": {"state_dict": {"weights": under("_fsdp_wrapped_module.", net)}}},
        lambda net: {"model_ema": net, "epoch": 3},
        lambda net: {"model": under("student.backbone.", net) | under("teacher.backbone.", chunked(net))},
    ],
)  # fmt: skip
def test_prefixes_of_trainings_are_taken_off(
    content: Callable[[Tensors], object], published: Published, plain: torch.Tensor, loader: Loader
) -> None:
    torch.save(content(published.tensors), published.spec.repository)
    assert torch.equal(shown(published.spec, loader), plain)


@pytest.mark.parametrize("prefix", ["wrapped_by_me.", "state_dict.det.", "0.", "tower.visual."])
def test_another_prefix_is_named_with_what_takes_it_off(
    prefix: str, published: Published, plain: torch.Tensor, loader: Loader
) -> None:
    spec = published.spec
    torch.save(under(prefix, published.tensors), spec.repository)
    option = f"{spec.repository}#{prefix[:-1]}"
    with pytest.raises(
        InputError, match=f"names of a known layout after '{prefix}'.* {spec.name}={option}, "
    ):
        identify(spec, cache_dir=Path())
    assert torch.equal(shown(replace(spec, repository=option), loader), plain)


TWO: dict[str, tuple[Under, str, str]] = {
    "timm": (lambda own, mean: {"state_dict": own, "state_dict_ema": mean}, "state_dict", "state_dict_ema"),
    "deit": (lambda own, mean: {"model": own, "model_ema": mean}, "model", "model_ema"),
    "solo": (
        lambda own, mean: {"state_dict": under("backbone.", own) | under("momentum_backbone.", mean)},
        "backbone",
        "momentum_backbone",
    ),
    "dino": (lambda own, mean: {"student": own, "teacher": mean}, "student", "teacher"),
    "moco": (
        lambda own, mean: under("module.base_encoder.", own) | under("module.momentum_encoder.", mean),
        "base_encoder",
        "momentum_encoder",
    ),
    "lightning": (
        lambda own, mean: {"state_dict": under("model.", own) | under("ema_model.module.", mean)},
        "state_dict.model",
        "ema_model",
    ),
    "byol": (
        lambda own, mean: {"online_encoder": under("net.", own), "target_encoder": under("net.", mean)},
        "online_encoder",
        "target_encoder.net",
    ),
    "root": (lambda own, mean: own | under("ema.", mean), ".", "ema"),
}


@pytest.mark.parametrize(
    ("name", "network"), [*((name, "average") for name in TWO), ("solo", "trained"), ("root", "trained")]
)
def test_of_two_networks_the_one_that_the_entry_means(
    name: str, network: str, published: Published, plain: torch.Tensor, loader: Loader
) -> None:
    content, own, mean = TWO[name]
    other = {key: tensor + 0.5 for key, tensor in published.tensors.items()}
    first, second = (other, published.tensors) if network == "average" else (published.tensors, other)
    spec = replace(published.spec, network=network)
    path = Path(spec.repository)
    torch.save(content(first, second), path)
    (taken,) = with_weights([spec], {spec.name: path})
    assert torch.equal(shown(taken, loader), plain)
    line = describe_backbone(taken, None)
    assert f"{path} holds 2 networks; " in line
    rest = own if network == "average" else mean
    (otherwise,) = with_weights([spec], {spec.name: Path(f"{path}#{rest}")})
    assert not torch.equal(shown(otherwise, loader), plain)
    assert identify(otherwise, cache_dir=Path()) != identify(taken, cache_dir=Path())
    said = line.partition("for another give ")[2].split()[1].partition("#")[2]
    assert f".{rest}." in f".{said}."


LABELS = (
    *(("online_encoder", "target_encoder"), ("base_encoder", "momentum_encoder"), ("encoder_q", "encoder_k")),
    *(("query_encoder", "key_encoder"), ("online_network", "target_network"), ("module", "averaged_module")),
    *(("model", "ema_model"), ("net", "ema"), ("net", "netEMA"), ("model", "swa_model")),
    *(("current_model", "average_model"), ("student", "teacher"), ("model.backbone", "ema.backbone")),
)
"""What trainings call a network, and its average."""


@pytest.mark.parametrize(("own", "mean"), LABELS)
def test_networks_are_told_apart_by_their_labels(own: str, mean: str, published: Published) -> None:
    """In one dictionary, and in two, with the tensors of the one that is meant."""
    spec, net = published.spec, published.tensors
    other = {name: tensor + 1 for name, tensor in net.items()}
    in_one: object = {"state_dict": under(f"{own}.", net) | under(f"{mean}.", other)}
    for number, content in enumerate((in_one, {own: net, mean: other, "epoch": 3})):
        path = Path(f"{spec.repository}.{number}.pth")
        torch.save(content, path)
        for network, wanted in (("trained", net), ("average", other)):
            meant = replace(spec, network=network, repository=str(path))
            found = read_network_of(meant, locate(meant, None))[2]
            assert torch.equal(found["layers.1.mlp.fc1.bias"], wanted["blocks.1.mlp.fc1.bias"])


def test_a_network_that_is_not_there_or_not_alone(published: Published) -> None:
    spec, net = published.spec, published.tensors
    path = spec.repository
    torch.save({"teacher": net, "student": {k: t + 1 for k, t in net.items()}}, path)
    with pytest.raises(
        InputError, match=f"one network called 'ema' in {path}, found 0; .*#student or .*#teacher"
    ):
        identify(replace(spec, repository=f"{path}#ema"), cache_dir=Path())
    torch.save({"model": net, "state_dict": {k: t + 1 for k, t in net.items()}}, path)
    with pytest.raises(
        InputError, match=r"holds 2 networks that may be meant; name one: .*#model or .*#state_dict"
    ):
        identify(spec, cache_dir=Path())
    torch.save({"model": net, "state_dict": {k: t.clone() for k, t in net.items()}}, path)
    identify(spec, cache_dir=Path())  # the same twice


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "model._orig_mod.", "net.", "teacher."])
def test_prefixes_in_a_directory_of_hugging_face(prefix: str, tmp_path: Path, loader: Loader) -> None:
    reduced = reduce(find(["dino-s16"])[0], tmp_path)
    expected = shown(reduced.spec, loader)
    path = reduced.folder / "model.safetensors"
    tensors = load_file(path)
    student = under("student.", {k: t + 1 for k, t in tensors.items()}) if prefix == "teacher." else {}
    save_file(under(prefix, tensors) | student, path)
    assert torch.equal(shown(reduced.spec, loader), expected)


def test_another_prefix_in_a_directory_of_hugging_face(tmp_path: Path, loader: Loader) -> None:
    reduced = reduce(find(["dino-s16"])[0], tmp_path)
    path = reduced.folder / "model.safetensors"
    save_file(under("mine.", load_file(path)), path)
    with pytest.raises(
        InputError, match=r"all its names begin with 'mine\.'; take it off: .*removeprefix\('mine\.'\)"
    ):
        loader(reduced.spec)
