"""Classification of exported features: by nearest neighbours, and by linear probes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from layerboard.benchmark.exported.arrays import Array, Floats, as_feature_pair, as_labels, read_archive
from layerboard.benchmark.exported.report import Grid, Json, JsonMap, ScoreReport
from layerboard.tasks.classification.few_shot import as_tensor, draw_shots, fit_few_shot
from layerboard.tasks.classification.leave_out import nearest_outside
from layerboard.tasks.classification.probes import ECE, Answers, metric_of, too_few
from layerboard.tasks.classification.softmax import fit_softmax, held_out, standardised
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.metrics.arrays import Integers
from layerboard.tasks.metrics.folds import stratified_folds
from layerboard.tasks.metrics.neighbours import nearest, top_k_correct, vote, vote_share
from layerboard.zoo.errors import InputError

ARRAYS = ("train", "train_labels", "test", "test_labels")
EVERY = "there are no test items: every train item is tested once, by others that are not of its group"
Rows = slice | NDArray[np.bool_]  # answers for some items
TOPS = (1, 5)


@dataclass(frozen=True, slots=True)
class LabelledFeatures:
    """Contents of an archive of labelled features."""

    path: Path  # the archive
    train: Floats  # [n dim]
    labels: Integers  # classes of the train items, 0 to classes - 1, [n]
    test: Floats  # [m dim]
    truth: Integers  # classes of the test items, [m]; -1, or a class without train items, is never right
    classes: int  # number of classes of train and test items together
    notes: tuple[str, ...]  # a note if some test items cannot be right
    groups: Integers | None = None  # group numbers, [n], if every train item is also a test item

    @property
    def parts(self) -> list[tuple[Rows, Rows]]:
        """Train items, each with the test items that are classified by them."""
        if self.groups is None:
            return [(slice(None), slice(None))]
        folds = stratified_folds(self.labels, self.groups)
        return [(folds != fold, folds == fold) for fold in np.unique(folds)]

    def report(self, parameters: JsonMap, scores: JsonMap, details: JsonMap, grid: Grid) -> ScoreReport:
        """The report of a scorer, with its table."""
        counts = {"train_items": len(self.train), "classes": self.classes, "dimensions": self.train.shape[1]}
        return ScoreReport(
            parameters={"features": str(self.path), **parameters},
            n=len(self.test),
            unit="test items",
            scores=scores,
            grid=grid,
            details={**counts, **details},
            notes=self.notes,
        )

    def of_probes(
        self, parameters: JsonMap, answered: Mapping[str, Answers], details: JsonMap, metrics: Iterable[str]
    ) -> ScoreReport:
        """The report of the answers of probes, averaged over draws; a metric without answers has no score."""
        scores: dict[str, float | None] = {}
        rows: dict[str, tuple[float | None, float | None]] = {}
        for metric in metrics:
            score = error = None
            if answers := answered.get(metric):
                score = 100.0 * float(np.mean(answers.given == self.truth))
                error = answers.calibration(self.truth)[0]
            rows[metric], scores[metric], scores[ECE + metric] = (score, error), score, error
        return self.report(parameters, scores, details, Grid("probe", ("top-1", f"{ECE}top-1"), rows))


def score_knn(path: Path, ks: Sequence[int] = (), temperature: float | None = None) -> ScoreReport:
    """Top-1, top-5 and calibration error of weighted k-NN for every k, in percent; raises InputError.

    The archive has train [n dim], train_labels [n], test [m dim] and test_labels [m]; labels are any whole
    numbers. Votes are exp(cos / temperature); missing options are those of the protocol.
    """
    given, rule = _read(path), config_of(STANDARD, "knn")
    ks, temperature = tuple(ks) or (rule.k,), temperature or rule.temperature
    _check_counts("--k", ks, len(given.train), "the number of train items")
    train, test = given.train.astype(np.float32), given.test.astype(np.float32)
    if given.groups is None:
        neighbours = nearest(train, test, max(ks))
    else:
        neighbours = nearest_outside(train, given.groups, max(ks))
    rows: dict[str, tuple[float, ...]] = {}
    for k in ks:
        most = min(k, neighbours.index.shape[1])
        ranked = vote(neighbours, given.labels, most, given.classes, temperature)
        first = ranked[:, 0]
        answers = Answers(first, vote_share(neighbours, given.labels, first, most, temperature))
        tops = (100.0 * float(top_k_correct(ranked, given.truth, top).mean()) for top in TOPS)
        rows[f"k={k}"] = (*tops, answers.calibration(given.truth)[0])
    columns = (*(f"top-{top}" for top in TOPS), f"{ECE}top-1")
    scores = {
        f"{column} {k}": score for k, row in rows.items() for column, score in zip(columns, row, strict=True)
    }
    parameters = {"k": ks, "temperature": temperature}
    return given.report(parameters, scores, {}, Grid("neighbours", columns, rows))


def score_fewshot(path: Path, shots: Sequence[int] = (), penalty: float | None = None) -> ScoreReport:
    """Top-1 in percent of closed-form probes, averaged over draws, for every number of shots.

    Shots beyond the smallest train class have no score. If None, the penalty of the squared weights is chosen
    on held-out shots. The file is as for `score_knn`; raises InputError.
    """
    given = _of_train_classes(_read(path))
    rule = config_of(STANDARD, "fewshot")
    rule = replace(rule, shots=tuple(shots) or rule.shots)
    if penalty is not None:
        rule = replace(rule, penalties=(), penalty=penalty)
    classes, parts = int(given.labels.max()) + 1, given.parts
    fewest = min(int(np.bincount(given.labels[known], minlength=classes).min()) for known, _ in parts)
    _check_counts("--shots", rule.shots, fewest, "the items of the smallest train class", least_alone=True)
    answered: dict[str, Answers] = {}
    penalties: dict[str, Sequence[float]] = {}
    beyond = [number for number in rule.shots if number > fewest]
    for number in (number for number in rule.shots if number <= fewest):
        answers, chosen = Answers.none(len(rule.seeds), len(given.truth)), []
        for (known, asked), (row, seed) in product(parts, enumerate(rule.seeds)):
            train, labels = given.train[known], given.labels[known]
            probe = fit_few_shot(as_tensor(train[draw_shots(labels, classes, number, seed)]), rule)
            test = as_tensor(given.test[asked])
            answers.given[row, asked], answers.confidence[row, asked] = probe.classified(test)
            chosen.append(probe.penalty)
        answered[metric_of(number)] = answers
        penalties[metric_of(number)] = chosen
    how = "chosen on held-out shots" if rule.penalties else rule.penalty
    parameters: dict[str, Json] = {"shots": rule.shots, "seeds": rule.seeds, "penalty": how}
    report = given.of_probes(parameters, answered, {"penalties": penalties}, map(metric_of, rule.shots))
    return replace(report, reason=f"{too_few(beyond[0], fewest)}." if beyond else "")


def score_linear(path: Path, epochs: int | None = None, seed: int | None = None) -> ScoreReport:
    """Top-1 in percent of a trained linear layer, on plain and on standardised features.

    ``epochs`` is how often each item is seen; ``seed`` decides the order and the held-out items; None means
    that of the protocol. The file is as for `score_knn`; raises InputError.
    """
    given = _of_train_classes(_read(path))
    changes = {name: value for name, value in {"epochs": epochs, "seed": seed}.items() if value is not None}
    rule = replace(config_of(STANDARD, "linear"), **changes)
    classes, rates = int(given.labels.max()) + 1, dict[str, list[float]](top1=[], **{"top1-bn": []})
    answered = {metric: Answers.none(len(given.truth)) for metric in rates}
    for known, asked in given.parts:
        labels = as_tensor(given.labels[known])
        held = as_tensor(held_out(given.labels[known], classes, rule))
        train, test = (as_tensor(x.astype(np.float32)) for x in (given.train[known], given.test[asked]))
        for metric, (items, new) in {"top1": (train, test), "top1-bn": standardised(train, test)}.items():
            probe, answers = fit_softmax(items, labels, held, classes, rule), answered[metric]
            answers.given[asked], answers.confidence[asked] = probe.classified(new)
            rates[metric].append(probe.rate)
    parameters = {name: getattr(rule, name) for name in ("epochs", "batch", "momentum", "rates", "seed")}
    chosen = {metric: each if given.groups is not None else each[0] for metric, each in rates.items()}
    return given.of_probes(parameters, answered, {"rates": chosen}, answered)


def _read(path: Path) -> LabelledFeatures:
    """A checked archive of labelled features."""
    arrays = read_archive(path, ARRAYS[:2], (*ARRAYS[2:], "groups"))
    if not {*ARRAYS[2:]} & {*arrays}:
        return _every(path, arrays)
    if "groups" in arrays:
        raise InputError(
            f"expected no groups in {path}, since it has test items: groups say which of the train items are "
            "not tested by each other if no others are tested; leave out groups, or test and test_labels"
        )
    arrays = read_archive(path, ARRAYS)
    train, test = as_feature_pair(arrays, "train", "test", path)
    known = as_labels(arrays, "train_labels", path, len(train)).astype(np.int64)
    asked = as_labels(arrays, "test_labels", path, len(test)).astype(np.int64)
    names = np.union1d(known, asked)
    labels, truth = (np.searchsorted(names, values) for values in (known, asked))
    strangers = int((~np.isin(truth, labels)).sum())
    note = f"{strangers:,} of {len(test):,} test items have a class that no train item has"
    return LabelledFeatures(path, train, labels, test, truth, len(names), (note,) if strangers else ())


def _every(path: Path, arrays: Mapping[str, Array]) -> LabelledFeatures:
    """An archive without test items: every train item is classified by others."""
    both = {"train": arrays["train"], "test": arrays["train"]}
    train, _ = as_feature_pair(both, "train", "test", path)
    labels = as_labels(arrays, "train_labels", path, len(train)).astype(np.int64)
    names, labels = np.unique(labels, return_inverse=True)
    groups = np.arange(len(train))
    if "groups" in arrays:
        given = as_labels(arrays, "groups", path, len(train), text=True)
        groups = np.unique(given, return_inverse=True)[1]
    pairs = np.unique(np.stack([labels, groups]), axis=1)[0]
    if (alone := names[np.bincount(pairs) < 2]).size:
        raise InputError(
            f"expected items of two groups in every class of {path}, which has no test items, found one in "
            f"class {alone[0]}; add items or test"
        )
    return LabelledFeatures(path, train, labels, train, labels, len(names), (EVERY,), groups)


def _of_train_classes(given: LabelledFeatures) -> LabelledFeatures:
    """Labels with the classes of train items, at least two, numbered without gaps; others become -1."""
    known, labels = np.unique(given.labels, return_inverse=True)
    if len(known) < 2:
        raise InputError(f"expected train items of two classes or more in {given.path}, found {len(known)}")
    return replace(given, labels=labels, truth=pd.Index(known).get_indexer(pd.Index(given.truth)))


def _check_counts(
    flag: str, numbers: Sequence[int], most: int, what: str, *, least_alone: bool = False
) -> None:
    """Raise InputError for repeated numbers, or if any (or only the least) is not from 1 to ``most``."""
    for number in [min(numbers)] if least_alone else numbers:
        if not 1 <= number <= most:
            raise InputError(f"expected {flag} of 1 to {most:,}, {what}, found {number}")
    if len(set(numbers)) != len(numbers):
        raise InputError(f"expected every {flag} once, found {', '.join(map(str, numbers))}")
