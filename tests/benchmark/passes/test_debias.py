"""Grids without their position: one black image a size, and nothing else changes."""

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from torch import Tensor

from layerboard.benchmark.engines.progress import Silent
from layerboard.benchmark.passes import collectors
from layerboard.benchmark.passes.collectors import FAILURE, Debias, MeasuredCollector
from layerboard.benchmark.passes.loading import Loader
from layerboard.benchmark.passes.one_pass import Listener, run_pass
from layerboard.benchmark.passes.shards import Shards
from layerboard.tasks.framework.base import FINITE, Source
from layerboard.tasks.metrics.spread import debiased, position_basis
from layerboard.zoo.features import LayerFeatures, Visitor
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import Tiles
from tests.benchmark.doubles import SPEC, CountingBackbone, source
from tests.benchmark.passes.test_one_pass import MeanProblem


@dataclass
class Positioned(CountingBackbone):
    """Tokens of three channels of content and two of the position; those of layer 2 are all content.

    Attributes:
        sizes: Images, height and width of each forward.
        broken: Whether tokens of a black image are not finite.
    """

    sizes: list[tuple[int, int, int]] = field(default_factory=list)
    broken: bool = False

    def visit(self, pixels: Tensor, visitor: Visitor, layers: Collection[Layer] | None = None) -> None:
        self.sizes.append((len(pixels), *pixels.shape[2:]))
        cells = torch.nn.functional.avg_pool2d(pixels.float(), 8).permute(0, 2, 3, 1) + 1
        rows = torch.arange(cells.shape[1]).float()[None, :, None].expand(cells.shape[:3])
        columns = torch.arange(cells.shape[2]).float()[None, None].expand(cells.shape[:3])
        for layer in SPEC.layers:
            if layers is not None and layer not in layers:
                continue
            place = torch.stack([rows, columns], dim=-1) * (0 if layer.index == 2 else 50)
            grid = torch.cat([cells, place], dim=-1)
            visitor(
                LayerFeatures(layer, None, grid * torch.nan if self.broken and pixels.sum() == 0 else grid)
            )


class Grids:
    """Keeps the grids that it is fed."""

    def __init__(self) -> None:
        self.kept: dict[Layer, list[Tensor]] = {}

    def update(self, layer: Layer, positions, grids) -> None:  # type: ignore[no-untyped-def]
        self.kept.setdefault(layer, []).append(grids.clone())

    def finish(self, layer: Layer) -> dict[str, Tensor]:
        grids = torch.cat([one.flatten(0, 2) for one in self.kept[layer]])
        return {"grids": grids, FINITE: grids.isfinite().all()}


def shown(src: Source, folder: Path, backbone: CountingBackbone, components: int) -> dict[str, Tensor]:
    """What a listener keeps, by name; with no components, without a transform."""
    problem = MeanProblem(src)
    problem.measure = lambda group, view: Grids()  # type: ignore[method-assign]
    layers = frozenset([Layer(1), Layer(2)])
    collector = MeasuredCollector(problem, src.view, layers, debias=Debias(components))
    store = Shards(folder, len(src.groups))
    listener = Listener("grids", collector, store, set(range(len(src.groups))))
    run_pass(src, [listener], backbone, 2, Loader(1), Silent())
    assert listener.failure is None
    found = [store.arrays(shard) for shard in range(store.count)]
    return {name: torch.from_numpy(array) for one in found for name, array in one.items()}


def test_no_directions_leave_grids_bit_for_bit_and_cost_no_forward(tmp_path: Path) -> None:
    backbone, seen = Positioned(), dict[Layer, Tensor]()
    found = shown(source([[10, 20]]), tmp_path, backbone, 0)
    assert backbone.sizes == [(2, 32, 32)]
    pixels = torch.stack([torch.tensor([c, 255 - c, c // 2]) for c in (10, 20)]).to(torch.uint8)
    images = pixels[:, :, None, None].expand(2, 3, 32, 32)
    backbone.visit(images, lambda one: seen.update({one.layer: one.grid}))  # type: ignore[union-attr]
    assert all(torch.equal(found[f"0/{index}/grids"], seen[Layer(index)].flatten(0, 2)) for index in (1, 2))


def test_the_position_is_asked_once_a_size_and_removed(tmp_path: Path) -> None:
    src = source([[10, 20, 30], [40]])
    backbone = Positioned()
    found = shown(src, tmp_path, backbone, 3)
    assert backbone.sizes == [(1, 32, 32), (2, 32, 32), (1, 32, 32), (1, 32, 32)]
    plain = shown(src, tmp_path / "plain", Positioned(), 0)
    blank: dict[Layer, Tensor] = {}
    Positioned().visit(
        torch.zeros(1, 3, 32, 32, dtype=torch.uint8),
        lambda one: blank.update({one.layer: one.grid[0].flatten(0, 1)}),  # type: ignore[union-attr]
    )
    basis = position_basis(blank[Layer(1)], 3)
    assert basis.shape == (5, 3)
    torch.testing.assert_close(found["0/1/grids"], debiased(plain["0/1/grids"], basis))
    assert torch.linalg.vector_norm(found["0/1/grids"] @ basis, dim=-1).max() < 1e-5


def test_a_layer_that_knows_no_place_is_unchanged(tmp_path: Path) -> None:
    src = source([[10, 20]])
    found, plain = (shown(src, tmp_path / str(count), Positioned(), count) for count in (20, 0))
    assert torch.equal(found["0/2/grids"], plain["0/2/grids"])
    assert not torch.equal(found["0/1/grids"], plain["0/1/grids"])


def test_every_size_has_a_basis_of_its_own_and_tiles_one_of_a_tile(tmp_path: Path) -> None:
    backbone = Positioned()
    src = source([[10], [20]], view=Tiles(64, 32, 8), size=(96, 64))
    shown(src, tmp_path, backbone, 2)
    assert backbone.sizes[0] == (1, 32, 32)
    assert all(count > 1 for count, *_ in backbone.sizes[1:])


def test_the_host_waits_once_a_size_for_all_layers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    waited = []

    def to_host(arrays):  # type: ignore[no-untyped-def]
        waited.extend([len(arrays)] * all(isinstance(name, Layer) for name in arrays))
        return dict(arrays)

    monkeypatch.setattr(collectors, "to_host", to_host)
    shown(source([[10, 20, 30], [40]]), tmp_path, Positioned(), 2)
    assert waited == [2]


def test_collectors_of_a_pass_share_a_black_image_and_debiased_grids() -> None:
    debias, backbone = Debias(3), Positioned()
    pixels = torch.full((1, 3, 32, 32), 10, dtype=torch.uint8)
    for layers in ([Layer(1)], [Layer(1), Layer(3)], [Layer(3)]):
        debias.prepare(backbone, pixels, frozenset(layers))
    assert len(backbone.sizes) == 2  # nothing is asked twice
    live = LayerFeatures(Layer(1), None, torch.ones(1, 4, 4, 5))
    assert debias.of(live, pixels) is debias.of(live, pixels) is not live


def test_a_black_image_that_is_not_finite_empties_the_layers(tmp_path: Path) -> None:
    found = shown(source([[10]]), tmp_path, Positioned(broken=True), 2)
    assert {name.split("/")[2] for name in found} == {FAILURE}
    assert bytes(found["0/1/failure"].tolist()).decode() == "features are not finite"


def test_a_black_image_that_breaks_the_network_fails_one_listener(tmp_path: Path) -> None:
    class Broken(Positioned):
        def visit(self, pixels: Tensor, visitor: Visitor, layers: Collection[Layer] | None = None) -> None:
            if pixels.sum() == 0:
                raise ValueError("no black images")
            super().visit(pixels, visitor, layers)

    src = source([[10]])
    both = [
        MeasuredCollector(MeanProblem(src), src.view, frozenset([Layer(1)]), debias=Debias(count))
        for count in (0, 2)
    ]
    plain = Listener("plain", both[0], Shards(tmp_path / "a", 1), {0})
    other = Listener("other", both[1], Shards(tmp_path / "b", 1), {0})
    run_pass(src, [plain, other], Broken(), 2, Loader(1), Silent())
    assert plain.failure is None
    assert other.failure is not None
    assert not plain.missing
