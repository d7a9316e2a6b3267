"""Every entry of the registry gives the stored numbers at every layer, from seeded random weights.

Hub entries are run from reduced checkpoints in their real format and layout; those that this package supplies
as they are.
``python -m tests.zoo.test_regression`` writes the file again: read the difference before committing it.
"""

import json
import tempfile
from pathlib import Path

import pytest
import torch

from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.registry.find import all_specs
from layerboard.zoo.spec import BackboneSpec
from tests.zoo.conftest import CPU, Loader
from tests.zoo.reduced import pixels, reduce

EXPECTED = Path(__file__).parent / "expected" / "layers.json"
Summary = dict[str, list[float]]


def summary(backbone: Backbone) -> Summary:
    """A few numbers of every layer: mean, deviation, and two random projections of all its features."""
    out: Summary = {}

    def note(features: LayerFeatures) -> None:
        grid = features.grid.double()
        wave = torch.arange(grid[0].numel(), dtype=torch.float64).mul(0.7).sin().view_as(grid[0])
        numbers = [grid.mean(), grid.std(), (grid[0] * wave).mean(), (grid[1] * wave).mean()]
        if features.cls is not None:
            numbers.append(features.cls.double().std())
        out[str(features.layer)] = [round(float(number), 5) for number in numbers]

    side = backbone.spec.input_size
    backbone.visit(pixels(2, side, side), note)
    return out


def prepared(spec: BackboneSpec, folder: Path) -> BackboneSpec:
    return spec if spec.origin.supply else reduce(spec, folder).spec


@pytest.mark.parametrize("spec", all_specs(), ids=lambda spec: spec.name)
def test_every_layer_gives_the_stored_numbers(spec: BackboneSpec, tmp_path: Path, loader: Loader) -> None:
    expected: Summary = json.loads(EXPECTED.read_text())[spec.name]
    found = summary(loader(prepared(spec, tmp_path)))
    assert found.keys() == expected.keys()
    for layer, numbers in expected.items():
        assert found[layer] == pytest.approx(numbers, rel=2e-3, abs=1e-4), f"{spec.name}, layer {layer}"


def test_no_entry_is_left_over() -> None:
    assert json.loads(EXPECTED.read_text()).keys() == {spec.name for spec in all_specs()}


def _write_expected() -> None:
    stored: dict[str, Summary] = {}
    with tempfile.TemporaryDirectory() as folder:
        for spec in all_specs():
            small = prepared(spec, Path(folder) / spec.name)
            backbone = load_backbone(small, device=CPU, cache_dir=Path(folder))
            stored[spec.name] = summary(backbone)
    lines = [f'"{name}": {json.dumps(numbers)}' for name, numbers in stored.items()]
    EXPECTED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    _write_expected()
