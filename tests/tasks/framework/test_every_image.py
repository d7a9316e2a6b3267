"""Datasets without a val: every image is tested once, by others that are not of its group."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from layerboard.tasks.classification.few_shot import as_tensor, draw_shots, fit_few_shot
from layerboard.tasks.classification.knn import WIDTH, KnnTask
from layerboard.tasks.classification.probes import FewShotTask, LabelledTask, LinearTask
from layerboard.tasks.classification.softmax import fit_softmax, held_out
from layerboard.tasks.datasets.base import Coverage, FileSample
from layerboard.tasks.datasets.classes import Classification, classification
from layerboard.tasks.framework.assess import intervals_of, measure
from layerboard.tasks.framework.base import NEIGHBOUR, Outcome
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from tests.tasks.classification.test_knn import SMALL, ranked_classes
from tests.tasks.framework.test_sources import probed, sources

Floats = NDArray[np.float32]
GENERATOR = np.random.default_rng(4)
CLASSES = 4


def dataset(each: int, groups: NDArray[np.int64] | None = None) -> Classification:
    images = [(f"c{n % CLASSES}", FileSample(f"{n:04d}", "")) for n in range(each * CLASSES)]
    data = classification("mine", images, None, "here", Coverage(()))
    return (
        data if groups is None else data.grouped({f"{n:04d}": f"p{group}" for n, group in enumerate(groups)})
    )


def task_of(kind: type[LabelledTask], data: Classification, config: object = None) -> LabelledTask:
    where = sources(data, np.arange(1, len(data.train.samples), 2), size=5)
    name = {KnnTask: "knn", FewShotTask: "fewshot", LinearTask: "linear"}[kind]
    return kind(probed(data, where), config or config_of(STANDARD, name))


def stored(task: LabelledTask, vectors: Floats) -> dict[str, Floats]:
    rows = dict(zip(task.images.train.keys, vectors, strict=True))
    return {source.name: np.stack([rows[s.key] for s in source.samples]) for source in task.vector_sources}


def features(data: Classification, spread: float = 2.0) -> Floats:
    """Vectors around the means of their classes, the same for every test."""
    generator, labels = np.random.default_rng(4), data.train.labels
    means = generator.standard_normal((CLASSES, 6))
    return (means[labels] + spread * generator.standard_normal((len(labels), 6))).astype(np.float32)


def score(task: LabelledTask, vectors: Floats) -> Outcome:
    return task.score(stored(task, vectors))  # type: ignore[attr-defined, no-any-return]


GROUPED = pytest.mark.parametrize("groups", [None, GENERATOR.integers(0, 9, 48)])


@GROUPED
def test_neighbours_vote_but_for_the_image_and_its_group(groups: NDArray[np.int64] | None) -> None:
    data = dataset(12, groups)
    task, vectors = task_of(KnnTask, data, SMALL), features(data)
    vectors[7] = vectors[5]  # a copy votes, where it is not of the group
    outcome = score(task, vectors)
    alone = np.arange(48) if groups is None else groups
    largest = np.bincount(alone).max()
    assert outcome.items is not None
    for k in (5, 1, 12):
        right = []
        for row, label in enumerate(data.train.labels):
            others = alone != alone[row]
            ranked = ranked_classes(vectors[others], data.train.labels[others], vectors[[row]], k, CLASSES)
            right.append(100.0 * (ranked[0, 0] == label))
        metric = "top-1" if k == 5 else f"top-1 k={k}"
        assert outcome.items.values[metric].tolist() == right
    assert 48 - largest < 1000  # all that are not of the largest group vote where k is larger
    assert outcome.items.keys == data.train.keys
    assert len({*outcome.items.clusters}) == len({*alone.tolist()})


def margin(shares: NDArray[np.float64], label: int, top: int) -> float:
    """Share of the own class minus that of the rival that would displace it."""
    rivals = sorted(np.delete(shares, label), reverse=True)
    return float(shares[label] - rivals[top - 1]) if top <= len(rivals) else 1.0


@GROUPED
def test_few_images_also_vary_as_neighbours_of_the_others(groups: NDArray[np.int64] | None) -> None:
    """The density of margins times what the votes of the others lose without a group."""
    data = dataset(12, groups)
    task, vectors = task_of(KnnTask, data, SMALL), features(data)
    items = score(task, vectors).items
    assert items is not None
    labels, alone = data.train.labels, np.arange(48) if groups is None else groups
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (unit @ unit.T).astype(np.float32).astype(np.float64)

    def shares(row: int, known: NDArray[np.bool_]) -> NDArray[np.float64]:
        near = sorted(np.flatnonzero(known), key=lambda other: -cosines[row, other])[:5]
        votes = np.bincount(labels[near], np.exp(cosines[row, near] / SMALL.temperature), CLASSES)
        return np.asarray(votes / votes.sum())

    before = [margin(shares(row, alone != alone[row]), labels[row], 1) for row in range(48)]
    width = WIDTH * 1.06 * np.std(before) * 48**-0.2
    expected = np.zeros(48)
    for group in set(alone.tolist()):
        for row in np.flatnonzero(alone != group):
            after = margin(shares(row, (alone != alone[row]) & (alone != group)), labels[row], 1)
            density = np.exp(-((before[row] / width) ** 2) / 2) / (width * np.sqrt(2 * np.pi))
            members = alone == group
            expected[members] += 100 * density * (before[row] - after) / members.sum()
    expected -= expected.mean()
    found = items.values[f"top-1{NEIGHBOUR}"]
    np.testing.assert_allclose(found, expected, atol=1e-3)
    # and this is part of what a unit adds to the score
    measured = measure([items], "top-1")
    values = items.values["top-1"] - items.values["top-1"].mean() + found
    names = np.unique(np.asarray(items.clusters, str), return_inverse=True)[1]
    np.testing.assert_allclose(measured.slopes()[:, 0], np.bincount(names, values) / 48, atol=1e-9)
    without = {name: column for name, column in items.values.items() if NEIGHBOUR not in name}
    plain = intervals_of([replace(items, values=without)])["top-1"][0]
    assert plain != intervals_of([items])["top-1"][0]


def test_many_images_have_no_influence_as_neighbours() -> None:
    data = dataset(50)
    items = score(task_of(KnnTask, data, SMALL), features(data)).items
    assert items is not None
    assert not [name for name in items.values if NEIGHBOUR in name]


@GROUPED
def test_few_shots_are_drawn_outside_of_the_fold(groups: NDArray[np.int64] | None) -> None:
    data = dataset(12, groups)
    task, vectors = task_of(FewShotTask, data), features(data)
    outcome = score(task, vectors)
    labels, right = data.train.labels, np.full((3, 48), np.nan)
    for fold in range(5):
        known, asked = task.folds != fold, task.folds == fold
        assert not {*np.array(data.train.clusters)[known]} & {*np.array(data.train.clusters)[asked]}
        for seed in range(3):
            drawn = vectors[known][draw_shots(labels[known], CLASSES, 5, seed)]
            probe = fit_few_shot(as_tensor(drawn), task.config)  # type: ignore[attr-defined]
            right[seed, asked] = probe.classified(as_tensor(vectors[asked]))[0] == labels[asked]
    assert outcome.items is not None
    assert outcome.items.values["top1-5shot"] == pytest.approx(100 * right.mean(axis=0))
    assert "of every class; one class has" in outcome.missing["top1-25shot"]


def test_linear_probes_learn_from_the_other_folds() -> None:
    data = dataset(12)
    rule = replace(config_of(STANDARD, "linear"), epochs=3)
    task, vectors = task_of(LinearTask, data, rule), features(data)
    outcome = score(task, vectors)
    labels, right = data.train.labels, np.full(48, np.nan)
    for fold in range(5):
        known, asked = task.folds != fold, task.folds == fold
        held = as_tensor(held_out(labels[known], CLASSES, rule))
        probe = fit_softmax(as_tensor(vectors[known]), as_tensor(labels[known]), held, CLASSES, rule)
        right[asked] = probe.classified(as_tensor(vectors[asked]))[0] == labels[asked]
    assert outcome.items is not None
    assert outcome.items.values["top1"].tolist() == (100 * right).tolist()


def test_what_is_said_of_the_split_and_the_fingerprint() -> None:
    plain, grouped = dataset(12), dataset(12, GENERATOR.integers(0, 9, 48))
    tasks = [task_of(kind, data) for kind in (KnnTask, FewShotTask) for data in (plain, grouped)]
    assert [task.split for task in tasks[::2]] == [
        "all images, leave-one-out",
        "all images, 5 folds (seed 0)",
    ]
    assert len({task.fingerprint for task in tasks}) == 4
    assert tasks[0].fitted_on == tasks[0].vector_sources
    assert [source.name for source in tasks[0].vector_sources] == ["mine/train-probe", "mine/train-rest"]
