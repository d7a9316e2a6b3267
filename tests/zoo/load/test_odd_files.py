"""Configurations that describe no usable network, and unusual normalisations, outside the registry."""

import json
import re
from pathlib import Path

import pytest
import torch

from tests.zoo.conftest import Loader
from tests.zoo.load.test_infer import save
from tests.zoo.reduced import pixels
from zoo.errors import InputError
from zoo.load.infer import infer


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_channels": 1}, "describes a network for images of 1 channels; expected 3, RGB"),
        ({"patch_size": "14"}, "describes no network that transformers can build: .*patch_size"),
        ({"hidden_size": "wide"}, "describes no network that transformers can build: .*hidden_size"),
        ({"patch_size": 0}, "a number of blocks, channels, heads or pixels below 1"),
        ({"num_hidden_layers": 0}, "a number of blocks, channels, heads or pixels below 1"),
        ({"num_attention_heads": 0}, "a number of blocks, channels, heads or pixels below 1"),
        ({"image_size": [56, 28]}, "must be square; the configuration says 56 x 28"),
    ],
)
def test_odd_configurations(change: dict[str, object], message: str, tmp_path: Path) -> None:
    save(tmp_path, "ViTModel")
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(InputError) as error:
        infer(str(tmp_path), None, None)
    assert re.search(message, str(error.value))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"image_std": [0, 1, 1]}, "should give an 'image_std' above 0"),
        ({"image_mean": [float("nan")] * 3}, "should give three numbers as 'image_mean'"),
        ({"rescale_factor": 0}, "should give a number above 0 as 'rescale_factor', not 0"),
    ],
)
def test_odd_normalisations(values: dict[str, object], message: str, tmp_path: Path) -> None:
    save(tmp_path, "ViTModel")
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match=message):
        infer(str(tmp_path), None, None)


@pytest.mark.parametrize(
    "values",
    [
        {"do_rescale": False, "image_mean": [127.5, 51, 25.5], "image_std": [255, 51, 25.5]},
        {"rescale_factor": 1 / 127.5, "image_mean": [1, 0.4, 0.2], "image_std": [2, 0.4, 0.2]},
    ],
)
def test_pixels_of_other_ranges_are_normalised_alike(
    values: dict[str, object], tmp_path: Path, loader: Loader
) -> None:
    shown: list[torch.Tensor] = []
    save(tmp_path, "ViTModel")
    for content in ({"image_mean": [0.5, 0.2, 0.1], "image_std": [1, 0.2, 0.1]}, values):
        (tmp_path / "preprocessor_config.json").write_text(json.dumps(content))
        backbone = loader(infer(str(tmp_path), None, None))
        backbone.visit(pixels(1, 56, 56), lambda f: shown.append(f.grid.clone()), backbone.spec.layers[:1])
    torch.testing.assert_close(*shown, rtol=1e-4, atol=1e-4)
