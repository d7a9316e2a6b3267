"""CKA of stored Gram matrices and vectors against the metric on features in float64."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from layerboard.benchmark.passes.shards import MeasuredLayers, Shards, VectorReader
from layerboard.tasks.datasets.base import Coverage
from layerboard.tasks.framework.base import FINITE
from layerboard.tasks.framework.protocols import PAPER, STANDARD, EvaluationProtocol, find_protocol
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.framework.sources import IMAGES, probed_classes
from layerboard.tasks.framework.stored import StoredBackbone, StoredVectors
from layerboard.tasks.similarity.cka import CkaTask, cka_matrix
from layerboard.tasks.similarity.metric import CkaAccumulator, centred_gram
from layerboard.zoo.spec import Layer
from tests.benchmark.doubles import SPEC
from tests.tasks.framework.test_sources import classification, labels

POOLINGS = config_of(STANDARD, "cka").poolings
Values = NDArray[np.float32]


@dataclass
class Stored:
    """A backbone in memory: for each layer the class tokens [images dim] and grids [images h w dim]."""

    name: str
    cls: dict[Layer, Values]
    grid: dict[Layer, Values]

    def features(self, layer: Layer, pooling: str) -> NDArray[np.float64]:
        grid = self.grid[layer].astype(np.float64)
        cls, patches = self.cls[layer].astype(np.float64), grid.reshape(len(grid), -1)
        every = np.concatenate([cls, patches], axis=1)
        return {"mean": grid.mean(axis=(1, 2)), "patch": patches, "cls": cls, "all": every}[pooling]


def backbone(name: str, images: int, layers: int, dim: int, seed: int, shared: NDArray[np.float64]) -> Stored:
    """Layers that share a signal with each other and with other backbones, with a large offset."""
    rng = np.random.default_rng(seed)
    cls, grid = {}, {}
    for index in range(layers):
        mix = rng.normal(size=(shared.shape[1], dim))
        cells = shared[:, None, None] @ mix + rng.normal(0, 1 + index, (images, 2, 3, dim)) + 5
        grid[Layer(index)] = cells.astype(np.float32)
        cls[Layer(index)] = (shared @ mix + rng.normal(0, 2, (images, dim))).astype(np.float32)
    return Stored(name, cls, grid)


def store(task: CkaTask, one: Stored, folder: Path, read: NDArray[np.bool_]) -> StoredBackbone:
    """What a pass over the images that can be read leaves on disk."""
    count = task.source.shards
    grams, vectors = (Shards(folder / one.name / what, count) for what in ("grams", "vectors"))
    start = 0
    for shard, group in enumerate(task.source.groups):
        rows = np.arange(start, start + len(group.samples))
        start, shown = start + len(rows), read[rows]
        measurer = task.measure(group, task.source.view)
        arrays = {"shown": torch.from_numpy(shown.astype(np.uint8))}
        positions = np.flatnonzero(shown)
        kept: dict[str, torch.Tensor] = {}
        for layer, grids in one.grid.items():
            if len(positions):
                measurer.update(layer, positions.tolist(), torch.from_numpy(grids[rows[positions]]))
            found = measurer.finish(layer)
            if found.get(FINITE, torch.tensor(True)).all():
                kept[f"{shard}/{layer}/gram"] = found["gram"].contiguous()
            else:  # the collector notes the reason instead
                kept[f"{shard}/{layer}/failure"] = torch.zeros(3, dtype=torch.uint8)
            for pooling in ("cls", "mean") if len(positions) else ():
                values = one.features(layer, pooling)[rows].astype(np.float32)
                values[~shown] = np.nan
                arrays[f"{pooling}.{layer}"] = torch.from_numpy(values)
        grams.write(shard, kept)
        vectors.write(shard, arrays)
    spec, layers = replace(SPEC, name=one.name), tuple(one.grid)
    stored = {task.source.name: VectorReader(task.source, vectors)}
    return StoredBackbone(spec, layers, None, stored, MeasuredLayers(task.source, grams, layers))


def expected(
    task: CkaTask, backbones: list[Stored], pooling: str, read: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """CKA of every layer with every other one by the metric: sums over batches of at least four images."""
    everything = [torch.from_numpy(one.features(layer, pooling)) for one in backbones for layer in one.grid]
    sums, size = CkaAccumulator(), task.data.batches.size
    for start in range(0, len(read), size):
        rows = start + np.flatnonzero(read[start : start + size])
        if len(rows) >= 4:
            grams = [centred_gram(values[rows], min_max=task.config.min_max) for values in everything]
            sums.add(torch.stack(grams))
    return np.asarray(sums.matrix().numpy())


def problem(images: int, batch: int, protocol: EvaluationProtocol = STANDARD) -> CkaTask:
    data = classification(labels(images, 5), labels(5))
    config = protocol.config_for(IMAGES)
    config = replace(config, batches=replace(config.batches, size=batch))
    return CkaTask(probed_classes(data, np.arange(images), Coverage(()), config), config_of(protocol, "cka"))


def two_backbones(images: int) -> list[Stored]:
    shared = np.random.default_rng(7).normal(size=(images, 4))
    return [backbone("one", images, 3, 5, 0, shared), backbone("two", images, 2, 8, 1, shared)]


UNREAD: dict[str, tuple[int, int, EvaluationProtocol, list[int]]] = {
    "all are read": (50, 16, STANDARD, []),
    # some of the first batches, all but three of the third, all of the fourth
    "batches": (52, 12, STANDARD, [0, 5, 13, *range(24, 33), *range(36, 48)]),
    "a group of two": (300, 256, STANDARD, [*range(258, 300)]),
    # the second batch keeps three images, the last one four
    "by the paper": (301, 8, PAPER, [0, 9, 10, 11, 12, 13, 300]),
}


@pytest.mark.parametrize(("images", "batch", "protocol", "unread"), UNREAD.values(), ids=UNREAD)
def test_cka_is_that_of_the_metric_over_batches_of_what_could_be_read(
    tmp_path: Path, images: int, batch: int, protocol: EvaluationProtocol, unread: list[int]
) -> None:
    task, backbones, read = problem(images, batch, protocol), two_backbones(images), np.ones(images, bool)
    read[unread] = False
    if protocol is PAPER:
        assert task.data.probe_order.tolist() == list(range(images))
        assert [len(group.samples) for group in task.source.groups] == [256, 45]
    stored = [store(task, one, tmp_path, read) for one in backbones]
    for pooling in config_of(protocol, "cka").poolings:
        found, *_ = cka_matrix(task.grams, stored, pooling)
        np.testing.assert_allclose(found, expected(task, backbones, pooling, read), rtol=0, atol=2e-5)
        assert 0.05 < found[0, 3] < 0.99


def test_without_class_tokens_there_is_no_cka_of_them(tmp_path: Path) -> None:
    task, (one, _) = problem(16, 8, PAPER), two_backbones(16)
    stored = store(task, one, tmp_path, np.ones(16, bool))
    without = replace(stored, vectors={task.source.name: NoClassToken(stored.of_source)})

    def offered(members: list[StoredBackbone], pooling: str) -> list[tuple[int, int]]:
        compared = (found for found in task.compare(members, pooling) if found.metric == "CKA")
        return [(found.first, found.second) for found in compared]

    for pooling in ("cls", "mean", "patch", "all"):
        assert offered([stored], pooling) == [(0, 0)]
        own = [] if pooling in ("cls", "all") else [(0, 0)]
        assert offered([without], pooling) == own
        assert ((0, 1) in offered([stored, without], pooling)) == bool(own)


def test_a_backbone_that_cannot_be_measured_says_why_in_its_own_pairs(tmp_path: Path) -> None:
    task, backbones, read = problem(40, 16), two_backbones(40), np.ones(40, bool)
    first, second = (store(task, one, tmp_path, read) for one in backbones)
    refused = replace(second, refusal="two has no layer 1.mlp.")
    every = (one for one in task.compare([first, refused], "patch") if one.metric == "CKA")
    found = {(one.first, one.second): one for one in every}
    assert np.isfinite(found[0, 0].value).all()
    for pair, shape in (((0, 1), (3, 2)), ((1, 1), (2, 2))):
        assert found[pair].reason == "two has no layer 1.mlp."
        assert found[pair].value.shape == shape
        assert np.isnan(found[pair].value).all()


@pytest.mark.parametrize("protocol", [STANDARD, PAPER])
@pytest.mark.parametrize("pooling", ["cls", "patch"])
def test_directions_are_those_of_the_spectrum_of_what_was_compared(
    tmp_path: Path, protocol: EvaluationProtocol, pooling: str
) -> None:
    """Planted: eight equal directions, one with nearly all variance, and one beside seven weak ones."""
    images, random = 4000, np.random.default_rng(0)
    spectra = np.array([[1.0] * 8, [500.0, *[1.0] * 7], [2.0, *[1.0] * 7]])
    vectors = [(random.normal(size=(images, 8)) * scale + 3).astype(np.float32) for scale in spectra]
    cls = {Layer(at): values for at, values in enumerate(vectors)}
    grid = {layer: values.reshape(images, 2, 2, 2) for layer, values in cls.items()}
    task = problem(images, 200, protocol)
    stored = store(task, Stored("planted", cls, grid), tmp_path, np.ones(images, bool))
    _, found = task.compare([stored], pooling)
    assert (found.first, found.second, found.metric, found.layers) == (0, 0, "directions", tuple(cls))
    variances = spectra**2
    exact = variances.sum(axis=1) ** 2 / (variances**2).sum(axis=1)
    np.testing.assert_allclose(found.value[:, 0], exact, rtol=0.05)
    assert found.value[1, 0] < 1.01
    assert np.isnan(found.error).all()


class NoClassToken(VectorReader):
    """The vectors of another reader without those of class tokens."""

    def __init__(self, other: StoredVectors) -> None:
        self.__dict__ |= other.__dict__

    def poolings(self) -> tuple[str, ...]:
        return ("mean",)


@pytest.mark.parametrize("value", [0.0, -3.7, np.inf, np.nan])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_a_layer_that_cannot_be_compared_empties_its_own_entries(
    tmp_path: Path, pooling: str, value: float
) -> None:
    task, backbones, read = problem(30, 10), two_backbones(30), np.ones(30, bool)
    complete = expected(task, backbones, pooling, read)
    backbones[0].cls[Layer(1)][:] = backbones[0].grid[Layer(1)][:] = value
    stored = [store(task, one, tmp_path, read) for one in backbones]
    found, *_ = cka_matrix(task.grams, stored, pooling)
    dropped = np.zeros((5, 5), bool)
    dropped[1], dropped[:, 1] = True, True
    assert (np.isnan(found) == dropped).all()
    np.testing.assert_allclose(found[~dropped], complete[~dropped], rtol=0, atol=2e-5)


@pytest.mark.parametrize("value", [torch.nan, torch.inf])
@pytest.mark.parametrize("protocol", [STANDARD, PAPER])
def test_the_measurer_says_which_layer_was_not_finite_and_copies_the_others(
    protocol: EvaluationProtocol, value: float
) -> None:
    task = problem(8, 8, protocol)
    measurer = task.measure(task.source.groups[0], task.source.view)
    live = torch.randn(8, 2, 2, 3, generator=torch.Generator().manual_seed(0))
    measurer.update(Layer(0), range(8), live)
    before = live.clone().flatten(1).double()
    live.zero_()
    kept = measurer.finish(Layer(0))
    assert kept[FINITE].all()
    gram = task.grams.centred(kept["gram"].reshape(8, 8)).double()
    torch.testing.assert_close(gram, centred_gram(before, min_max=task.config.min_max), rtol=1e-5, atol=1e-5)
    damaged = before.float().view(8, 2, 2, 3)
    damaged[5, 1, 0, 2] = value
    measurer.update(Layer(1), range(8), damaged)
    assert not measurer.finish(Layer(1))[FINITE].all()


FEW = (*range(8, 13), 16, 17, 18)  # three images of the second batch are left, five of the third


@pytest.mark.parametrize("left_out", [(), (0,), (9, 10), (8, 9, 10, 11, 12), (23,), FEW])
def test_batches_of_one_size_are_one_product_with_the_matrices_of_each(left_out: tuple[int, ...]) -> None:
    task = problem(24, 8)
    positions = [place for place in range(24) if place not in left_out]
    features = torch.randn(24, 5, generator=torch.Generator().manual_seed(3))[positions]
    batches = task.grams.batches(positions)
    found = [gram for some in task.grams.grams(features, batches) for gram in some]
    assert len(found) == len(batches)
    for gram, rows in zip(found, batches, strict=True):
        torch.testing.assert_close(gram, task.grams.gram(features[rows]))


@pytest.mark.parametrize("images", [1, 3])
def test_fewer_than_four_images_leave_nothing(images: int) -> None:
    task = problem(images, 8)
    measurer = task.measure(task.source.groups[0], task.source.view)
    measurer.update(Layer(0), range(images), torch.randn(images, 2, 2, 3))
    assert measurer.finish(Layer(0))["gram"].shape == (0,)


RAGHU = find_protocol("raghu")


def test_repeats_are_further_batches_of_the_same_images_and_no_further_sample(tmp_path: Path) -> None:
    task, backbones, read = problem(70, 16, RAGHU), two_backbones(70), np.ones(70, bool)
    read[3] = False
    batches = [*task.grams.redrawn(read)]
    assert [len(rows) for rows in batches] == [16, 16, 16, 16, 5] * 19
    assert all(sorted(np.concatenate(batches[at : at + 5])) == [*np.flatnonzero(read)] for at in (0, 5))
    assert batches[0].tolist() != batches[5].tolist()
    stored = [store(task, one, tmp_path, read) for one in backbones]
    other = replace(task, config=replace(task.config, repeats=1))
    once = other.grams
    assert task.fingerprint == other.fingerprint  # of what is stored
    assert task.scored_fingerprint not in (task.fingerprint, other.scored_fingerprint)
    value, error, _ = cka_matrix(task.grams, stored, "cls")
    single, alone, _ = cka_matrix(once, stored, "cls")
    assert not np.array_equal(value, single)
    above = np.triu_indices(len(value), 1)
    assert (error[above] / alone[above] > 0.7).all()
    assert (error[above] / alone[above] < 2).all()
    for pooled, exact in zip(
        cka_matrix(task.grams, stored, "patch"), cka_matrix(once, stored, "patch"), strict=True
    ):
        np.testing.assert_array_equal(pooled, exact)


@pytest.mark.parametrize("pooling", ["cls", "patch"])
def test_the_size_of_batches_changes_nothing_but_noise(tmp_path: Path, pooling: str) -> None:
    """Raghu et al., appendix: the unbiased estimator has no trend over batch sizes."""
    backbones, read, found = two_backbones(64), np.ones(64, bool), []
    for batch in (8, 16, 64):
        task = problem(64, batch, RAGHU)
        stored = [store(task, one, tmp_path / str(batch), read) for one in backbones]
        found.append(cka_matrix(task.grams, stored, pooling))
    whole, of_whole, directions = found[-1]
    for value, error, fewer in found[:-1]:
        assert (abs(value - whole) <= 3 * np.hypot(error, of_whole) + 1e-6).all()
        np.testing.assert_allclose(fewer, directions, rtol=0.2)
