"""The sentence for everything that can be wrong with a checkpoint."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import Stage
from tests.zoo.conftest import Loader
from tests.zoo.reduced import Reduced

Small = Callable[[str], Reduced]


def edit(path: Path, **values: object) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


class Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return print, ("code ran",)


@pytest.mark.parametrize("name", ["beit-b16", "moco-b16"])
def test_a_pickle_with_code_is_refused(
    name: str, small: Small, loader: Loader, capsys: pytest.CaptureFixture[str]
) -> None:
    reduced = small(name)
    torch.save({"cls_token": torch.zeros(1), "evil": Evil()}, reduced.folder / "pytorch_model.bin")
    with pytest.raises(InputError, match="is refused: it is damaged, or holds more than tensors"):
        loader(reduced.spec)
    assert "code ran" not in capsys.readouterr().out


def test_missing_and_unknown_tensors(small: Small, loader: Loader) -> None:
    reduced = small("dino-s16")
    path = reduced.folder / "model.safetensors"
    tensors = load_file(path)
    bias = tensors.pop("layernorm.bias")
    save_file(tensors, path)
    with pytest.raises(InputError, match=r"lack tensors of a vit network: layernorm.bias"):
        loader(reduced.spec)
    save_file({**tensors, "layernorm.bias": bias, "surprise": bias.clone()}, path)
    with pytest.raises(InputError, match="have unknown tensors of a vit network: surprise"):
        loader(reduced.spec)
    save_file({**tensors, "layernorm.bias": bias[:5].clone()}, path)
    with pytest.raises(InputError, match=r"have misshapen tensors of a vit network: layernorm.bias \[5\]"):
        loader(reduced.spec)


def test_beit_without_its_trained_norm(small: Small, loader: Loader) -> None:
    reduced = small("beit-b16")
    path = reduced.folder / "pytorch_model.bin"
    tensors = torch.load(path, weights_only=True)
    del tensors["layernorm.weight"]
    torch.save(tensors, path)
    with pytest.raises(InputError, match=r"lack tensors of a beit network: layernorm.weight"):
        loader(reduced.spec)


def test_wrong_resnet(small: Small, loader: Loader) -> None:
    spec = small("resnet50").spec
    with pytest.raises(InputError, match="channels of the stem: 8, not 16"):
        loader(replace(spec, stem_width=16))


def test_a_config_of_fewer_blocks_than_the_weights(small: Small, loader: Loader) -> None:
    reduced = small("dino-s16")
    edit(reduced.folder / "config.json", num_hidden_layers=2)
    stage = reduced.spec.stages[0]
    with pytest.raises(InputError, match=r"have unknown tensors of a vit network: layers.2"):
        loader(replace(reduced.spec, stages=(Stage(2, stage.width, stage.stride),)))


def test_an_index_names_the_files(small: Small, loader: Loader) -> None:
    reduced = small("dino-s16")
    (reduced.folder / "model.safetensors").rename(reduced.folder / "part.safetensors")
    index = reduced.folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "part.safetensors", "b": "part.safetensors"}}))
    assert loader(reduced.spec).revision.startswith("sha256:")


def test_nothing_is_written_to_the_terminal(
    small: Small, loader: Loader, capfd: pytest.CaptureFixture[str]
) -> None:
    loader(small("clip-b16").spec)
    assert capfd.readouterr() == ("", "")
