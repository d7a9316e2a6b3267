"""Every entry of the registry is as it was, and every kind of network gives the stored numbers.

Of Hub entries one of each kind is run, from a reduced checkpoint in its real format and layout with seeded
random weights; those that this package supplies are run as they are.
``python -m tests.zoo.test_regression`` writes the file again: read the difference before committing it.
"""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch

from layerboard.zoo.features import LayerFeatures
from layerboard.zoo.features.backbone import Backbone
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.load.hub import quiet
from layerboard.zoo.registry.find import all_specs
from layerboard.zoo.spec import BackboneSpec
from tests.zoo import hub_models
from tests.zoo.conftest import CPU, Loader
from tests.zoo.reduced import pixels, reduce, shrunk

EXPECTED = Path(__file__).parent / "expected" / "layers.json"
Summary = dict[str, list[float]]

FACTS = (
    *("repository", "network", "revision", "model_types", "original", "stages", "mlp_width", "gated_mlp"),
    *("heads", "prefix_tokens", "has_cls", "has_final", "stem_width", "stem_stride", "input_size"),
    *("trained_size", "fixed_size", "interpolation", "mean", "std"),
)
"""Fields of an entry that decide which weights are loaded, and what they show."""


def digest(spec: BackboneSpec) -> str:
    """Of the fields of an entry that decide its features."""
    facts = [spec.origin.name, *(getattr(spec, name) for name in FACTS)]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:12]


def kind(spec: BackboneSpec) -> object:
    """Entries of one kind differ in sizes and weights; what the package supplies has a kind of its own."""
    if spec.origin.supply:
        return spec.name
    with quiet():
        model, config = hub_models.of(shrunk(spec))
    layout = (bool(spec.original), Path(spec.original).suffix)
    tokens = (spec.prefix_tokens, spec.has_cls, spec.has_final, spec.interpolation)
    values = json.loads(config.to_json_string(use_diff=False))
    values |= values.get("vision_config", {})
    switches = sorted((name, str(value)) for name, value in values.items() if isinstance(value, bool | str))
    return (model.__name__, layout, tokens, *switches)


def run_entries() -> list[BackboneSpec]:
    """The first entry of each kind."""
    firsts: dict[object, BackboneSpec] = {}
    for spec in all_specs():
        firsts.setdefault(kind(spec), spec)
    return [*firsts.values()]


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


STORED: dict[str, Summary] = json.loads(EXPECTED.read_text())["layers"]


@pytest.mark.parametrize("name", STORED)
def test_every_layer_gives_the_stored_numbers(
    name: str, tmp_path: Path, loader: Loader, kept: Loader
) -> None:
    (spec,) = (each for each in all_specs() if each.name == name)
    found = summary(kept(spec) if spec.origin.supply else loader(reduce(spec, tmp_path).spec))
    assert found.keys() == STORED[name].keys()
    for layer, numbers in STORED[name].items():
        assert found[layer] == pytest.approx(numbers, rel=2e-3, abs=1e-4), f"{name}, layer {layer}"


def test_every_entry_is_as_it_was_and_every_kind_is_run() -> None:
    stored = json.loads(EXPECTED.read_text())
    assert stored["entries"] == {spec.name: digest(spec) for spec in all_specs()}
    assert [*stored["layers"]] == [spec.name for spec in run_entries()]


def _lines(rows: dict[str, Any]) -> str:
    """A JSON object, one line a key."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()) + "\n}"


def _write_expected() -> None:
    layers: dict[str, Summary] = {}
    with tempfile.TemporaryDirectory() as folder:
        for spec in run_entries():
            small = spec if spec.origin.supply else reduce(spec, Path(folder) / spec.name).spec
            layers[spec.name] = summary(load_backbone(small, device=CPU, cache_dir=Path(folder)))
    entries = _lines({spec.name: digest(spec) for spec in all_specs()})
    EXPECTED.write_text(f'{{"entries": {entries},\n"layers": {_lines(layers)}}}\n')


if __name__ == "__main__":
    _write_expected()
