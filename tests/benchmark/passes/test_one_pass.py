"""A pass shows each image once, feeds every listener, and stores whole shards only."""

from pathlib import Path
from threading import Event

import numpy as np
import pytest
import torch

from layerboard.benchmark.engines.progress import Silent
from layerboard.benchmark.passes.collectors import NOT_FINITE, MeasuredCollector, VectorCollector, to_host
from layerboard.benchmark.passes.loading import Loader
from layerboard.benchmark.passes.one_pass import Listener, run_pass
from layerboard.benchmark.passes.shards import Shards, VectorReader
from layerboard.tasks.framework.base import FINITE, Source
from layerboard.tasks.framework.feeds import GRIDS
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import Layer
from layerboard.zoo.view.views import Tiles
from tests.benchmark.doubles import SPEC, CountingBackbone, source

ALL = frozenset(SPEC.layers)


class MeanMeasurer:
    """Keeps each image's mean; a group of colour 66 is bad input, 77 cannot be measured."""

    def __init__(self) -> None:
        self.kept: dict[Layer, list[tuple[int, torch.Tensor]]] = {}

    def update(self, layer: Layer, positions, grids) -> None:  # type: ignore[no-untyped-def]
        if int(grids[0, 0, 0, 0]) - layer.index == 66:
            raise InputError("the measurer broke")
        if int(grids[0, 0, 0, 0]) - layer.index == 77:
            raise ValueError("not finite")
        for position, grid in zip(positions, grids, strict=True):
            self.kept.setdefault(layer, []).append((position, grid.mean(dim=(0, 1))))

    def finish(self, layer: Layer) -> dict[str, torch.Tensor]:
        kept = self.kept.get(layer, [])
        return {
            "position": torch.tensor([p for p, _ in kept]),
            "mean": torch.stack([m for _, m in kept]) if kept else torch.zeros(0, 8),
        }


class MeanProblem:
    """A dense problem of means."""

    fingerprint = "means"
    feed = GRIDS

    def __init__(self, src: Source, kind: type[MeanMeasurer] = MeanMeasurer) -> None:
        self.source, self.kind = src, kind

    def measure(self, group, view):  # type: ignore[no-untyped-def]
        return self.kind()


def listeners(src: Source, folder: Path, dense: bool = True) -> list[Listener]:
    count = -(-len(src.groups) // src.groups_per_shard)
    vectors = Shards(folder / "vectors", count)
    found = [
        Listener(
            "vectors",
            VectorCollector(src, ALL, ("cls", "mean"), torch.float32),
            vectors,
            set(vectors.missing),
        )
    ]
    if dense:
        store = Shards(folder / "means", count)
        collector = MeasuredCollector(MeanProblem(src), src, frozenset([Layer(1), Layer(3)]))
        found.append(Listener("means", collector, store, set(store.missing)))
    return found


def run(src: Source, found: list[Listener], backbone: CountingBackbone, batch_size: int = 3) -> None:
    run_pass(src, found, backbone, batch_size, Loader(2), Silent())


@pytest.mark.parametrize("batch_size", [1, 2, 50])
def test_vectors_are_in_the_sources_order(tmp_path: Path, batch_size: int) -> None:
    src = source([[10, 20, -1], [30], [-1]], per_shard=2)
    found = listeners(src, tmp_path, dense=False)
    run(src, found, CountingBackbone(), batch_size)
    reader = VectorReader(src, found[0].store)
    vectors = reader.read(Layer(2), "mean")
    np.testing.assert_allclose(vectors[[0, 1, 3], 0], [12, 22, 32])
    assert np.isnan(vectors[[2, 4]]).all()
    assert reader.shown.tolist() == [True, True, False, True, False]
    assert reader.poolings() == ("cls", "mean")
    np.testing.assert_allclose(reader.read(Layer(3, "final"), "cls")[0, 0], 2 * 13)


def test_measurers_see_their_group_only(tmp_path: Path) -> None:
    src = source([[10, 20], [30, 40, 50]], per_shard=2)
    found = listeners(src, tmp_path)
    run(src, found, CountingBackbone(), batch_size=4)
    arrays = found[1].store.arrays(0)
    assert arrays["0/1/position"].tolist() == [0, 1]
    assert arrays["1/1/position"].tolist() == [0, 1, 2]
    np.testing.assert_allclose(arrays["1/3/mean"][:, 0], [33, 43, 53])
    assert {name.split("/")[1] for name in arrays} == {"1", "3"}


def test_tiles_are_assembled_before_a_measurer_sees_them(tmp_path: Path) -> None:
    src = source([[10], [20]], view=Tiles(64, 32, 8), per_shard=2, size=(96, 64))
    shapes = []

    class Watching(MeanMeasurer):
        def update(self, layer: Layer, positions, grids) -> None:  # type: ignore[no-untyped-def]
            shapes.append(tuple(grids.shape))
            super().update(layer, positions, grids)

    collector = MeasuredCollector(MeanProblem(src, Watching), src, frozenset([Layer(1)]))
    run(src, [Listener("means", collector, Shards(tmp_path, 1), {0})], CountingBackbone())
    assert shapes == [(1, 8, 12, 8)] * 2


def test_what_was_transferred_is_settled_once_a_group_without_what_is_not_finite(tmp_path: Path) -> None:
    src = source([[1], [2, 3]])
    settled = []

    class Settles(MeanMeasurer):
        def finish(self, layer: Layer) -> dict[str, torch.Tensor]:
            kept = super().finish(layer)
            return kept | {FINITE: kept["mean"][:, 0] < 4.5}

        def settle(self, finished):  # type: ignore[no-untyped-def]
            settled.append({layer.index: sorted(arrays) for layer, arrays in finished.items()})
            return {layer: {"total": arrays["mean"].sum()[None]} for layer, arrays in finished.items()}

    collector = MeasuredCollector(MeanProblem(src, Settles), src, frozenset([Layer(1), Layer(3)]))
    store = Shards(tmp_path, 2)
    run(src, [Listener("means", collector, store, {0, 1})], CountingBackbone())
    assert settled == [{1: ["mean", "position"], 3: ["mean", "position"]}, {1: ["mean", "position"]}]
    second = store.arrays(1)
    assert sorted(second) == ["1/1/total", "1/3/failure"]
    assert bytes(second["1/3/failure"].tolist()).decode() == NOT_FINITE


def test_a_stored_shard_is_not_computed_again(tmp_path: Path) -> None:
    src = source([[1, 2], [3, 4], [5, 6]])
    run(src, listeners(src, tmp_path), CountingBackbone())
    for path in (tmp_path / "means").glob("000001.*"):
        path.unlink()
    backbone, again = CountingBackbone(), listeners(src, tmp_path)
    assert [sorted(one.missing) for one in again] == [[], [1]]
    run(src, again, backbone)
    assert sum(backbone.batches) == 2


def test_a_shard_is_written_while_the_next_is_shown_and_an_error_of_its_file_is_raised(
    tmp_path: Path,
) -> None:
    src = source([[1], [2], [3]])
    shown: list[int] = []
    second = Event()

    class Slow(Shards):
        def write(self, index, arrays):  # type: ignore[no-untyped-def]
            if index == 0:
                assert second.wait(20), "the second shard is not shown before the first is written"
            super().write(index, arrays)
            if index == 2:
                raise OSError("no space left on device")

    class Watched(CountingBackbone):
        def visit(self, pixels, visitor, layers=None):  # type: ignore[no-untyped-def]
            shown.append(len(pixels))
            if len(shown) == 2:
                second.set()
            super().visit(pixels, visitor, layers)

    found = listeners(src, tmp_path, dense=False)
    found[0].store = Slow(tmp_path / "vectors", 3)
    with pytest.raises(OSError, match="no space"):
        run(src, found, Watched(), batch_size=1)
    assert len(shown) == 3
    assert found[0].missing == {2}


def test_a_failing_listener_does_not_stop_the_others(tmp_path: Path) -> None:
    src = source([[1], [66], [3]])
    found = listeners(src, tmp_path)
    run(src, found, CountingBackbone(), batch_size=1)
    assert found[0].missing == set()
    assert isinstance(found[1].failure, InputError)
    assert found[1].missing == {1, 2}


def test_a_layer_that_cannot_be_measured_is_empty_and_says_why(tmp_path: Path) -> None:
    src = source([[1], [77]])
    found = listeners(src, tmp_path)
    run(src, found, CountingBackbone(), batch_size=1)
    assert found[1].failure is None
    assert bytes(found[1].store.arrays(1)["1/1/failure"]) == b"not finite"
    assert "0/1/mean" in found[1].store.arrays(0)


def test_an_unreadable_image_is_an_error_where_none_may_be_left_out(tmp_path: Path) -> None:
    src = source([[1, -1]], skip=False)
    with pytest.raises(InputError, match="cannot decode image 0-1"):
        run(src, listeners(src, tmp_path), CountingBackbone())


def test_arrays_of_the_host_are_contiguous_and_in_order() -> None:
    table = torch.arange(6.0).reshape(2, 3)
    found = to_host({"t": table.T, "whole": table, "flag": torch.tensor(True)})
    assert [*found] == ["t", "whole", "flag"]
    assert found["t"].is_contiguous()
    assert found["t"].tolist() == table.T.tolist()
    assert found["whole"] is table


class Elsewhere(torch.Tensor):
    """A tensor that counts how often it is copied to the host; it says that it is on a device."""

    copies = 0

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return torch.device("cuda:0")

    def cpu(self) -> torch.Tensor:  # type: ignore[override]
        Elsewhere.copies += 1
        return self.as_subclass(torch.Tensor)


def test_arrays_of_a_device_are_copied_once_for_each_dtype() -> None:
    numbers = {
        "a": torch.arange(6.0).reshape(2, 3),
        "b": torch.tensor(7.0),
        "none": torch.zeros(0, 4),
        "c": torch.tensor([1, 2]),
        "d": torch.ones(3, 2).T,
    }
    found = to_host({name: array.as_subclass(Elsewhere) for name, array in numbers.items()})
    assert Elsewhere.copies == 2
    for name, array in numbers.items():
        assert type(found[name]) is torch.Tensor
        assert found[name].shape == array.shape
        assert found[name].dtype == array.dtype
        assert found[name].tolist() == array.tolist()
