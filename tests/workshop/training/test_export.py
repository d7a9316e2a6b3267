"""Exported directories: loaded like any other backbone, with the features that the objective had."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel

from layerboard.mini import checkpoints as mini
from layerboard.zoo.entries.mini import ENTRIES
from layerboard.zoo.errors import InputError
from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.load.hub import quiet
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec.origin import PACKAGED, TRANSFORMERS
from tests.workshop.training.toys import SIDE, shapes, toy, toy_spec
from workshop.training.export import IN_FLOAT32, model_card, save_backbone
from workshop.training.methods import METHODS
from workshop.training.network import pooled_vectors

CPU = torch.device("cpu")
DATA = shapes(60)


HISTORY = [{"step": 30.0, "loss": 1.25}]


VARIANTS = [(one.name, {}) for one in METHODS] + [("fs", {"no_skip": 2})]


@pytest.mark.parametrize(("name", "recipe"), VARIANTS)
def test_an_export_is_the_network_that_was_trained(name: str, recipe: dict[str, int], tmp_path: Path) -> None:
    objective = toy(name, DATA, **recipe).eval()
    save_backbone(objective.backbone, toy_spec(name), "card", HISTORY, tmp_path)
    spec = replace(toy_spec(name), name="own", repository=str(tmp_path), origin=TRANSFORMERS, parameters=0)
    backbone = load_backbone(spec, device=CPU, cache_dir=tmp_path)
    images = torch.from_numpy(DATA.images[:4, :, :SIDE, :SIDE].copy())
    seen: list[LayerFeatures] = []
    backbone.visit(images, seen.append, spec.layers[-1:])
    with torch.no_grad():
        expected = pooled_vectors(objective.backbone, objective.normalised(images / 255))
    torch.testing.assert_close(seen[0].mean, expected["mean"], rtol=0, atol=0.02)
    if seen[0].cls is not None:
        torch.testing.assert_close(seen[0].cls, expected["cls"], rtol=0, atol=0.02)


def test_an_export_needs_no_entry(tmp_path: Path) -> None:
    save_backbone(toy("dino", DATA).backbone, toy_spec("dino"), "card", HISTORY, tmp_path)
    (spec,) = find([str(tmp_path)])
    assert (spec.depth, spec.width, spec.heads, spec.input_size) == (3, 48, 3, SIDE)
    assert spec.mean == pytest.approx((0.485, 0.456, 0.406))


def test_weights_are_halves(tmp_path: Path) -> None:
    save_backbone(toy("resnet", DATA).backbone, toy_spec("resnet"), "card", HISTORY, tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {torch.float16, torch.int64}
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["architectures"] == ["ResNetModel"]


def test_weights_must_fit_into_halves(tmp_path: Path) -> None:
    objective = toy("fs", DATA)
    objective.backbone.layernorm.weight.data.fill_(1e6)
    with pytest.raises(InputError, match=r"the weight layernorm.weight does not fit into float16"):
        save_backbone(objective.backbone, toy_spec("fs"), "card", HISTORY, tmp_path)


def test_the_card_says_how(tmp_path: Path) -> None:
    facts = {"data": "sixty shapes", "seed": 5}
    card = model_card("mini-fs", facts, "layerboard pretrain fs --seed 5", "{'view': 1}")
    save_backbone(toy("fs", DATA).backbone, toy_spec("fs"), card, HISTORY, tmp_path)
    text = (tmp_path / "README.md").read_text()
    for fact in (
        "license: apache-2.0",
        "# mini-fs",
        "| data | sixty shapes |",
        "| seed | 5 |",
        "layerboard pretrain fs --seed 5",
        "{'view': 1}",
    ):
        assert fact in text
    assert json.loads((tmp_path / "history.json").read_text()) == HISTORY
    assert text.endswith(IN_FLOAT32)


def test_the_packaged_cards_say_how_to_get_float32() -> None:
    folders = sorted(path.parent for path in mini.WEIGHTS.glob("*/model.safetensors"))
    assert len(folders) == sum(spec.origin == PACKAGED for spec in ENTRIES)
    for folder in folders:
        assert (folder / "README.md").read_text(encoding="utf-8").endswith(IN_FLOAT32)
    assert 'from_pretrained("path/to/this/directory", dtype=torch.float32)' in IN_FLOAT32
    with quiet():
        assert AutoModel.from_pretrained(folders[0]).dtype == torch.float16
        assert AutoModel.from_pretrained(folders[0], dtype=torch.float32).dtype == torch.float32
