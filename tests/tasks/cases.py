"""Facts that hold of every task, said once: `test_cases` has a small subclass with the data of each.

Features are planted: those of `perfect` say the ground truth, and `blurred` and `noise` are made of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, get_args

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from layerboard.benchmark.exported.vectors import score_clustering, score_task
from layerboard.tasks.framework.assess import intervals_of, score_of
from layerboard.tasks.framework.base import Items, Outcome
from layerboard.tasks.framework.checks import ALIKE, NOT_FINITE
from layerboard.tasks.framework.examples import Predicted
from layerboard.tasks.framework.protocols import PROTOCOLS, find_protocol
from layerboard.tasks.framework.registry import NO_DATA, TASKS, TaskEntry, config_of, load_code
from layerboard.tasks.framework.stored import StoredBackbone
from layerboard.tasks.framework.task import AnalysisTask, ComparisonTask, MeasuredTask, Task, VectorTask
from layerboard.tasks.framework.transformed import side_by_side
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import Layer, VectorPooling
from layerboard.zoo.view.views import View
from tests.benchmark.doubles import SPEC
from tests.tasks import passes
from tests.tasks.analyses.passes import probe
from tests.tasks.passes import BOTH, LAYER, OTHER, Features, by_metric, outcome, outcomes, vectors_of

PREDICTED = ("right", "score", "average_precision")
"""Arrays that say how well a layer predicts an example; the others say what it predicts."""


def altered(value: Any) -> Any:
    """Another value of a setting."""
    if is_dataclass(value) and not isinstance(value, type):
        first = fields(value)[0].name
        return replace(value, **{first: altered(getattr(value, first))})
    if isinstance(value, tuple):
        return value[:-1] if value else (altered(0),)
    if isinstance(value, bool):
        return not value
    return f"other {value}" if isinstance(value, str) else (value or 0) + 1


class TaskCase(ABC):
    """What holds of every row of `TASKS`."""

    name: ClassVar[str]
    protocol: ClassVar[str] = "standard"
    stamped: ClassVar[bool] = False  # whether the fingerprint has the times of files
    beside: ClassVar[tuple[str, ...]] = ()  # settings that decide nothing

    @property
    def kind(self) -> type[Any]:
        return load_code(self.row, self.protocol)

    def made(self, folder: Path) -> Task:
        """The task on its data, by default a few images without classes, or none; files go to a folder."""
        config = config_of(find_protocol(self.protocol), self.name)
        data = None if self.row.role == NO_DATA else probe(8, 32)
        return self.kind(data, config) if config else self.kind(data)  # type: ignore[no-any-return]

    def changed(self, task: Any, folder: Path) -> Iterator[Task]:
        """Tasks that differ from this one, and from each other, in what decides a score."""
        yield from ()

    @property
    def row(self) -> TaskEntry:
        return next(row for row in TASKS if row.name == self.name)

    @pytest.fixture(scope="class")
    @classmethod
    def task(cls, tmp_path_factory: pytest.TempPathFactory) -> Task:
        return cls().ready(tmp_path_factory.mktemp("case"))

    def ready(self, folder: Path) -> Task:
        return replace(self.made(folder), row=self.row, protocol=self.protocol)

    def test_its_row_is_that_of_its_class(self, task: Task) -> None:
        assert self.kind is type(task)
        assert len({*self.row.metrics}) == len(self.row.metrics) > 0
        assert self.row.metric in self.row.measures or self.row.analysis or isinstance(task, ComparisonTask)
        assert all((self.row.title, self.row.data, self.row.asks.endswith((".", "?")), self.row.measures))
        assert {one.metric for one in self.row.headlines} <= {*self.row.metrics}

    def test_protocols_reach_it(self, task: Task) -> None:
        covering = {protocol.name: protocol for protocol in PROTOCOLS if protocol.covers(self.name)}
        assert self.protocol in covering
        assert {*type(task).configs} <= {*covering}
        made = type(task).by(find_protocol(self.protocol), task.data, self.row)
        assert (made.entry.name, made.protocol) == (self.name, self.protocol)
        assert made.config == config_of(find_protocol(self.protocol), self.name)
        assert hash(made.config) == hash(replace(made.config) if made.config else None)
        if self.row.role != "classification" and hasattr(made.config, "view"):
            assert {source.view for source in made.sources} == {made.config.view}
        if task.data is not None:
            assert made.key == f"{self.name}.{task.dataset}.{self.protocol}"

    def test_its_identity_is_that_of_all_that_decides_a_score(
        self, task: Task, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        again = self.ready(tmp_path_factory.mktemp("again"))
        assert (again.key, again.listener) == (task.key, task.listener)
        assert again.data_digest == task.data_digest
        if not self.stamped:
            assert again.fingerprint == task.fingerprint
        others = [*self.changed(task, tmp_path_factory.mktemp("changed"))]
        settings = {field.name for field in fields(task.config)} if task.config else set[str]()
        for name in settings - {*self.beside}:
            changed = {name: altered(getattr(task.config, name))}
            others.append(replace(task, config=replace(task.config, **changed)))
        prints = {one.scored_fingerprint for one in (task, *others)}
        assert len(prints) == 1 + len(others)


class ScoredCase(TaskCase):
    """What holds of every task whose layers have scores."""

    best: ClassVar[Mapping[str, float | tuple[float, float]]]  # of perfect features: a score, or a range
    chance: ClassVar[tuple[float, float]]  # range of the primary score of features of nothing
    example: ClassVar[float] = 100.0  # least quality of an example's prediction by perfect features
    spread: ClassVar[float] = 0.3  # of the noise that blurs perfect features
    factor: ClassVar[float] = 4.0  # by which all features may be multiplied
    turned: ClassVar[bool] = True  # whether a rotation of the channels changes no score
    lengths: ClassVar[bool] = True  # whether the length of a single vector changes no score
    alone: ClassVar[frozenset[str]] = frozenset()  # metrics that no items are behind
    examples: ClassVar[bool] = True
    batches: ClassVar[tuple[int, ...]] = (1, 1000)
    sets: ClassVar[bool] = True  # whether layers can be scored together
    near: ClassVar[float] = 1e-6  # by how much a score of layers together may differ from that of one, points
    last: ClassVar[int] = -1  # place of the last image that is looked at
    view: ClassVar[View | None] = None
    reasons: ClassVar[Mapping[float, str]]  # of features of that one value
    unscored: ClassVar[tuple[str, ...]] = ()  # metrics that are missing on these data

    @abstractmethod
    def perfect(self, task: Any) -> Features:
        """Features of all images that say the ground truth."""

    def same(self, task: Any, folder: Path) -> Iterator[Task]:
        """Tasks that differ from this one in what decides no score."""
        yield from ()

    def few(self, task: Any) -> Iterator[tuple[Task, Features, str]]:
        """Data, or features of too few images, that have no score, and the reason."""
        yield from ()

    def scored(self, task: Task, features: Features, batch: int = 3) -> Outcome:
        return outcome(task, features, batch, self.view)

    def blurred(self, task: Task, seed: int = 0) -> Features:
        """Perfect features and noise, below 1 as `in_range` leaves them."""
        random, perfect = np.random.default_rng(seed), self.perfect(task)
        made = {key: each + self.spread * random.standard_normal(each.shape) for key, each in perfect.items()}
        largest = max(abs(each).max() for each in made.values())
        return {key: (each / 2 ** np.ceil(np.log2(largest))).astype(np.float32) for key, each in made.items()}

    def noise(self, task: Task) -> Features:
        random = np.random.default_rng(7)
        perfect = self.perfect(task)
        return {key: random.standard_normal(each.shape).astype(np.float32) for key, each in perfect.items()}

    def changed_by(self, features: Features, change: Any) -> Features:
        return {key: change(key, each).astype(np.float32) for key, each in features.items()}

    @pytest.fixture(scope="class")
    @classmethod
    def blur(cls, task: Task) -> tuple[Features, Outcome]:
        features = cls().blurred(task)
        return features, cls().scored(task, features)

    @pytest.fixture(scope="class")
    @classmethod
    def ideal(cls, task: Task) -> Outcome:
        return cls().scored(task, cls().perfect(task))

    @pytest.fixture(scope="class")
    @classmethod
    def nothing(cls, task: Task) -> Outcome:
        return cls().scored(task, cls().noise(task))

    def test_perfect_features_have_the_best_scores_and_noise_those_of_chance(
        self, task: Task, ideal: Outcome, nothing: Outcome
    ) -> None:
        scores = by_metric(ideal)
        assert not ideal.empty
        primary = next(metric for metric in task.entry.metrics if metric in scores)
        assert ideal.scores[0].metric == primary
        assert {metric for metric in self.best if "ceiling" not in metric} <= {*self.row.metrics}
        for metric, best in self.best.items():
            low, high = best if isinstance(best, tuple) else (best - 1e-4, best + 1e-4)
            assert low <= scores[metric] <= high, metric
        least, most = self.chance
        assert least <= by_metric(nothing)[primary] <= most < scores[primary]
        assert {*ideal.missing} == {*self.unscored}
        assert all(name not in scores and reason for name, reason in ideal.missing.items())

    def test_scores_follow_from_items_and_intervals_are_theirs(
        self, task: Task, blur: tuple[Features, Outcome], nothing: Outcome
    ) -> None:
        found = blur[1]
        assert found.items is not None
        assert {*by_metric(found)} - {*found.items.statistics} == self.alone & {*by_metric(found)}
        intervals = intervals_of([found.items])
        assert {*intervals} == {*found.items.statistics}
        for score in found.scores:
            assert score.n > 0
            if score.metric in intervals:
                assert score_of(found.items, score.metric) == pytest.approx(score.value, abs=1e-6)
                ((low, high),) = intervals[score.metric]
                assert low <= score.value <= high or np.isnan([low, high]).all()
        self.check_items(found.items)
        assert nothing.items is not None
        for other in (nothing.items,):  # items do not depend on the layer, so that layers can be paired
            assert (other.keys, other.clusters, other.strata) == (
                found.items.keys,
                found.items.clusters,
                found.items.strata,
            )

    def check_items(self, items: Items) -> None:
        assert len({*items.keys}) == len(items.keys) == len(items.clusters) == len(items.strata) > 1
        assert all(column.shape == (len(items.keys),) for column in items.values.values())
        assert all(each.measured(items.values) for each in items.statistics.values())

    def test_neither_the_unit_nor_the_order_of_channels_matters(
        self, task: Task, blur: tuple[Features, Outcome]
    ) -> None:
        features, found = blur
        random = np.random.default_rng(0)
        dim = next(iter(features.values())).shape[-1]
        order = random.permutation(dim)
        rotation = np.linalg.qr(random.standard_normal((dim, dim)))[0]
        changes = {
            "unit": lambda key, each: each * np.float32(self.factor),
            "order": lambda key, each: each[..., order],
            "rotation": lambda key, each: each @ rotation if self.turned else each,
            "lengths": lambda key, each: (
                each * np.ldexp(1.0, random.integers(-3, 4, (*each.shape[:-1], 1)) if self.lengths else 0)
            ),
        }
        for name, change in changes.items():
            other = by_metric(self.scored(task, self.changed_by(features, change)))
            exact = self.lengths and name in ("unit", "lengths")  # powers of two scale products exactly
            assert other == (by_metric(found) if exact else pytest.approx(by_metric(found), abs=1e-3)), name

    def test_what_decides_no_score_changes_none(
        self, task: Task, blur: tuple[Features, Outcome], tmp_path: Path
    ) -> None:
        features, found = blur
        for number, other in enumerate(self.same(task, tmp_path)):
            keys = [sample.key for source in other.sources for sample in source.samples]
            every = {**dict.fromkeys(keys, next(iter(features.values()))), **features}
            again = self.scored(other, every)
            assert by_metric(again) == pytest.approx(by_metric(found), abs=1e-9), number

    def test_features_that_say_nothing_have_a_reason(self, task: Task) -> None:
        features = self.noise(task)
        values = dict(enumerate((0.0, 3.0, 1e-30, np.inf, -np.inf, np.nan), start=1))
        filled = {
            Layer(number): {key: np.full_like(each, value) for key, each in features.items()}
            for number, value in values.items()
        }
        for layer, found in outcomes(task, filled, view=self.view).items():
            value = values[layer.index]
            assert (found.scores, found.items, found.predicted) == ((), None, {})
            assert self.reasons.get(value, NOT_FINITE) in found.empty
            assert "\n" not in found.empty

    def test_one_value_that_is_not_finite_empties_its_layer_alone(
        self, task: Task, blur: tuple[Features, Outcome]
    ) -> None:
        features, found = blur
        keys = [*features]
        layers = {OTHER: features}
        for value, place in {np.inf: 0, -np.inf: len(keys) // 2, np.nan: self.last}.items():
            spoilt = layers[Layer(2 + len(layers))] = {name: each.copy() for name, each in features.items()}
            spoilt[keys[place]].flat[-1] = value
        every = outcomes(task, layers, view=self.view)
        assert every.pop(OTHER).scores == found.scores
        assert len(every) == 3
        assert all((each.scores, each.empty) == ((), NOT_FINITE) for each in every.values())

    def test_zeros_leave_finite_scores(self, task: Task, blur: tuple[Features, Outcome]) -> None:
        zeros = {name: each.copy() for name, each in blur[0].items()}
        zeros[next(iter(zeros))][:] = 0
        found = self.scored(task, zeros)
        assert len(found.scores) >= len(blur[1].scores) - 2
        assert all(np.isfinite(score.value) for score in found.scores)

    def test_too_little_has_a_reason(self, task: Task) -> None:
        for other, features, reason in self.few(task):
            found = self.scored(other, features)
            assert (found.scores, found.items) == ((), None)
            assert reason in found.empty
            assert "\n" not in found.empty

    def test_batches_and_other_layers_change_nothing(
        self, task: Task, blur: tuple[Features, Outcome], nothing: Outcome
    ) -> None:
        features, found = blur
        other = self.noise(task)
        for batch in self.batches:
            both = outcomes(task, {LAYER: features, OTHER: other}, batch, self.view)
            assert both[LAYER].scores == found.scores
        assert both[OTHER].scores == nothing.scores != found.scores

    def test_layers_together_score_as_their_unit_vectors_side_by_side(self, task: Task) -> None:
        together, refusal = task.with_sets(("1+2",))
        assert bool(refusal) != self.sets
        if not self.sets:
            return
        first, second = self.blurred(task), self.changed_by(self.blurred(task, 1), lambda key, each: 8 * each)
        joined = {key: self.joined([first[key], second[key]]) for key in first}
        found = outcomes(together, {LAYER: first, OTHER: second}, view=self.view)
        assert [*found] == [BOTH]
        expected = by_metric(self.scored(task, joined))
        scores = by_metric(found[BOTH])
        assert scores == pytest.approx({name: expected[name] for name in scores}, abs=self.near)
        assert {*expected} - {*scores} <= self.alone
        assert together.examples is None
        spoilt = second | {next(iter(second)): np.full_like(next(iter(second.values())), np.inf)}
        assert outcomes(together, {LAYER: first, OTHER: spoilt}, view=self.view)[BOTH].empty == NOT_FINITE

    @abstractmethod
    def joined(self, features: Sequence[Any]) -> Any:
        """Unit vectors of an image's layers side by side."""

    def test_examples_are_the_same_of_all_layers_and_agree_with_the_scores(
        self, task: Task, ideal: Outcome, nothing: Outcome
    ) -> None:
        assert task.keeps_examples == self.examples
        if not self.examples:
            assert ideal.predicted == {}
            return
        facts, predicted = task.facts(), ideal.predicted
        for name in predicted:
            assert predicted[name].shape == nothing.predicted[name].shape
        assert all(np.isnan(each).sum() == 0 for each in predicted.values() if each.dtype.kind == "f")
        shown = task.pictures([predicted])
        (of_images,) = (facts[name] for name in ("image", "query", "frame", "source") if name in facts)
        assert {*map(str, of_images)} <= {*shown}
        assert all(sample.key == key for key, sample in shown.items())
        for name in PREDICTED:
            if name in predicted:
                quality = np.asarray(predicted[name], np.float64)
                assert (quality >= (1 if name == "right" else self.example)).all(), name
                assert np.nanmin(np.asarray(nothing.predicted[name], np.float64)) < quality.min()
        self.check_examples(facts, predicted)

    def check_examples(self, facts: Predicted, predicted: Predicted) -> None:
        """What else perfect features predict of the examples."""


class VectorCase(ScoredCase):
    """What holds of a task on stored vectors."""

    reasons: ClassVar = {0.0: "all zero", 3.0: "same for all", 1e-30: "same for all"}
    batches = (1,)  # vectors are stored
    skips: ClassVar[bool] = True  # whether images that cannot be read are left out; else they empty the layer
    scorer: ClassVar[str] = ""  # task of ``score`` that reads what is exported

    def joined(self, features: Sequence[Any]) -> Any:
        return side_by_side([each[None] for each in features])[0]

    def test_images_that_cannot_be_read_are_left_out(
        self, task: VectorTask, blur: tuple[Features, Outcome]
    ) -> None:
        features, found = blur
        assert found.items is not None
        lost = [*found.items.keys[:2]]
        fewer = {key: each for key, each in features.items() if key not in lost}
        less = self.scored(task, fewer)
        if not self.skips:
            assert (less.scores, less.empty) == ((), NOT_FINITE)
            return
        assert less.items is not None
        assert {*less.items.keys} == {*found.items.keys} - {*lost}
        assert by_metric(less).keys() == by_metric(found).keys()
        unread = {key: each for key, each in features.items() if key not in found.items.keys}
        nothing = self.scored(task, unread or {"": next(iter(features.values()))})
        assert nothing.scores == ()
        assert nothing.empty

    def test_vectors_of_any_magnitude_score_alike(self, task: Task, blur: tuple[Features, Outcome]) -> None:
        features, found = blur
        for exponent in (-100, 100):
            scaled = self.changed_by(features, lambda key, each, power=exponent: np.ldexp(each, power))
            assert self.scored(task, scaled).scores == found.scores

    def test_what_is_exported_scores_alike(
        self, task: Any, blur: tuple[Features, Outcome], tmp_path: Path
    ) -> None:
        if not self.scorer:
            return
        features, found = blur
        path = tmp_path / "vectors.npz"
        np.savez(path, **task.exported(vectors_of(task, features)))
        if self.scorer == "clustering":
            report = score_clustering(path, None, "standard", None, n_init=task.config.n_init, seed=0)
        else:
            usual = config_of(find_protocol(self.protocol), self.name)
            names = [field.name for field in fields(usual)]
            own = {name: getattr(task.config, name) for name in names}
            numbers = {name: value for name, value in own.items() if value != getattr(usual, name)}
            report = score_task(self.scorer, path, self.protocol, **numbers)
        known = {name: value for name, value in report.scores.items() if value is not None}
        assert known == pytest.approx(by_metric(found), abs=1e-6)

    def test_transforms_are_fitted_on_what_is_known_before_the_queries(self, task: VectorTask) -> None:
        assert {source.name for source in task.fitted_on} <= {source.name for source in task.vector_sources}
        assert len(task.fitted_on) >= 1
        assert task.transform_refusal("int8") == ""
        changed = replace(task, transform="int8")
        assert changed.scored_fingerprint not in (changed.fingerprint, task.scored_fingerprint)
        assert (changed.fingerprint, changed.examples) == (task.fingerprint, None)


class GridCase(ScoredCase):
    """What holds of a task that measures the grids of a pass."""

    reasons: ClassVar = {0.0: ALIKE, 3.0: ALIKE, 1e-30: ALIKE}

    def joined(self, features: Sequence[Any]) -> Any:
        units = [normalize(torch.from_numpy(each), dim=-1) for each in features]
        return (torch.cat(units, dim=-1) / len(units) ** 0.5).numpy()

    def test_half_precision_is_measured_in_float32(self, task: Task, blur: tuple[Features, Outcome]) -> None:
        half = {key: torch.from_numpy(each).bfloat16() for key, each in blur[0].items()}
        wide = {key: each.float() for key, each in half.items()}
        found = [outcome(task, features, view=self.view) for features in (half, wide)]  # type: ignore[arg-type]
        assert found[0].scores == found[1].scores

    def test_a_memory_comes_first(self, task: MeasuredTask) -> None:
        assert [each.source.name for each in task.measured][-1] == task.source.name
        if task.memory is not None:
            assert task.measured[0] is task.memory
            with pytest.raises(ValueError, match="images must be measured first"):
                task.measure(task.source.groups[0], task.source.view)

    def test_a_plan_measures_the_first_images_of_a_group(
        self, task: MeasuredTask, blur: tuple[Features, Outcome]
    ) -> None:
        (measurable, *_) = task.measured
        for count in (1, 3):
            (group, *_) = measurable.source.first(count).groups
            found, reasons = passes.measured_group(measurable, group, {LAYER: blur[0]}, view=self.view)
            assert (found.keys(), reasons) == ({LAYER}, {})

    def test_no_transform_is_taken(self, task: MeasuredTask) -> None:
        assert "features as they are" in task.transform_refusal("int8")


class AnalysisCase(TaskCase):
    """What holds of an analysis that measures a pass."""

    def test_without_an_image_it_is_refused_and_layers_keep_their_reasons(self, task: AnalysisTask) -> None:
        heads = replace(SPEC, heads=2)
        (layer, *_) = task.feed.layers([Layer(1), Layer(2)], heads)
        first = task.source.samples[0].key
        with pytest.raises(
            InputError, match=f"images that can be decoded .*, such as {first}, found none among"
        ):
            task.findings({layer: [{} for _ in task.source.groups]})
        found = task.results(StoredBackbone(heads, (layer,), None, {}, None, {layer: "no reason"}))
        assert [(each.layer, each.outcome.empty) for each in found.outcomes] == [(layer, "no reason")]
        assert not found.arrays


class ComparisonCase(TaskCase):
    """What holds of a comparison of backbones."""

    def test_the_order_of_two_backbones_does_not_matter(self, task: ComparisonTask) -> None:
        specs = [
            SPEC,
            replace(SPEC, heads=2),
            replace(SPEC, dtype="float16"),
            replace(SPEC, fast_resize=True),
        ]
        for first, second in product(specs, specs):
            assert task.compares(first, second) == task.compares(second, first)
        assert {*task.poolings} <= {*get_args(VectorPooling), "patch", "all"}


BASES: dict[type[Any], type[TaskCase]] = {ComparisonTask: ComparisonCase, AnalysisTask: AnalysisCase}
"""Cases of classes of which a few images say enough."""
