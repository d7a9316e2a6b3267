"""Checkpoints that fit an entry's shapes and are not what it names, or hold no usable numbers."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from layerboard.zoo.errors import InputError
from layerboard.zoo.load.config import read_network
from layerboard.zoo.registry.find import all_specs, find
from tests.zoo.conftest import Loader
from tests.zoo.hub_models import MINIMAL_WIDTH, of
from tests.zoo.published import publish
from tests.zoo.reduced import Reduced


@pytest.mark.parametrize(
    ("layout", "entry", "found"),
    [
        ("beit", "dino-b16", "beit, not vit"),
        ("beit", "mae-b16", "beit, not vit_mae or vit"),
        ("beit", "clip-b16", "beit, not clip_vision_model"),
        ("dino", "beit-b16", "vit, not beit"),
        ("dino", "clip-b16", "vit, not clip_vision_model"),
        ("mae", "dino-b16", "vit_mae, not vit"),
        ("clip", "dino-b16", "clip_vision_model, not vit"),
        ("dinov2", "dino-b16", "dinov2, not vit"),
    ],
)
def test_a_file_of_another_architecture(
    layout: str, entry: str, found: str, tmp_path: Path, loader: Loader
) -> None:
    published = publish(layout, tmp_path).spec
    (spec,) = find([entry])
    spec = replace(
        spec,
        stages=published.stages,
        heads=published.heads,
        input_size=published.input_size,
        repository=published.repository,
    )
    with pytest.raises(InputError, match=f"^{entry}: .* of another architecture .*: its type is {found}; "):
        loader(spec)


@pytest.mark.parametrize(
    ("source", "entry"), [("beit-b16", "mae-b16"), ("dino-b16", "beit-b16"), ("mae-b16", "dino-b16")]
)
def test_a_directory_of_another_architecture(
    source: str, entry: str, small: Callable[[str], Reduced], loader: Loader
) -> None:
    reduced = small(source).spec
    spec = replace(reduced, name=entry, model_types=find([entry])[0].model_types)
    with pytest.raises(InputError, match="is of another architecture than the entry"):
        loader(spec)


def test_the_encoder_of_an_mae_alone_is_taken(tmp_path: Path, loader: Loader) -> None:
    published = publish("mae", tmp_path)
    torch.save(published.tensors, published.spec.repository)
    loader(published.spec)


def test_entries_say_the_type_and_the_mlp_of_their_network() -> None:
    """Against the classes of transformers that hold them at full size."""
    for spec in (spec for spec in all_specs() if not spec.origin.supply):
        values = json.loads(of(spec)[1].to_json_string(use_diff=False))
        architecture, _, facts = read_network(values, Path("config.json"))
        assert architecture.model_type in spec.model_types, spec.name
        if facts.mlp_width is not None and spec.width >= MINIMAL_WIDTH:
            assert facts.mlp_width == (spec.mlp_width or 4 * spec.width), spec.name


def test_the_width_inside_the_mlp(tmp_path: Path, small: Callable[[str], Reduced], loader: Loader) -> None:
    published = publish("dino", tmp_path)
    narrow = dict(published.tensors)
    for block in range(3):
        for name, side in (("fc1.weight", 0), ("fc1.bias", 0), ("fc2.weight", 1)):
            key = f"blocks.{block}.mlp.{name}"
            narrow[key] = narrow[key].narrow(side, 0, 100).clone()
    torch.save(narrow, published.spec.repository)
    words = "differs from the entry: width inside the MLP: 100, not 192"
    with pytest.raises(InputError, match=words):
        loader(published.spec)
    reduced = small("clip-b16")
    with pytest.raises(InputError, match="width inside the MLP: 192, not 100"):
        loader(replace(reduced.spec, mlp_width=100))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.complex64])
def test_weights_that_are_no_real_numbers(dtype: torch.dtype, tmp_path: Path, loader: Loader) -> None:
    published = publish("dino", tmp_path)
    key = "blocks.1.mlp.fc1.weight"
    torch.save(published.tensors | {key: published.tensors[key].to(dtype)}, published.spec.repository)
    kind = str(dtype).removeprefix("torch.")
    with pytest.raises(InputError, match=f"should be floating-point numbers; layers.1.mlp.* holds {kind}"):
        loader(published.spec)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite(
    value: float, small: Callable[[str], Reduced], tmp_path: Path, loader: Loader
) -> None:
    published = publish("resnet", tmp_path)
    published.tensors["layer2.0.bn2.running_var"][3] = value
    torch.save(published.tensors, published.spec.repository)
    with pytest.raises(InputError, match=r"should be finite; .*running_var holds a NaN or an infinity"):
        loader(published.spec)
    reduced = small("dino-s16")
    path = reduced.folder / "model.safetensors"
    tensors = load_file(path)
    tensors["embeddings.cls_token"][0, 0, 1] = value
    save_file(tensors, path)
    with pytest.raises(InputError, match=r"should be finite; embeddings.cls_token holds a NaN"):
        loader(reduced.spec)
