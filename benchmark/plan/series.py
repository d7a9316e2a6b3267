"""Checkpoints of trainings: the files that patterns mean, and the training and the step of each."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import glob, has_magic
from itertools import groupby
from os.path import abspath
from pathlib import Path

from layerboard.benchmark.forms.request import Request
from layerboard.tasks.datasets.reading.labels import FILE_COLUMNS, read_label_table, require_columns
from layerboard.zoo.errors import InputError, counted, ensure, few_of, some
from layerboard.zoo.references import PART
from layerboard.zoo.registry.find import all_specs, read_local_names, short_names
from layerboard.zoo.spec.origin import origin_mark

STEP = "step"  # column of a table of steps
# A whole number, no part of 0.25, also in thousands or millions: 12k, 1.5M.
_DIGITS = r"(?<!\d)(?<!\d\.)(?<!\de)(?:(\d+(?:\.\d+)?)([kKM])(?![a-zA-Z])|(\d+)(?!\d|\.\d|e\d))"
# What counts a training, the first one that a name has; and other numbers than steps.
_NAMED = [
    re.compile(rf"(?<![a-zA-Z])(?:global_?)?(?:{word})s?[\W_]*{_DIGITS}", re.IGNORECASE)
    for word in ("step", "epoch|ep", "iteration|iter|it")
]
_OTHERS = "acc[a-z0-9]*|loss|map|auc|f1|m?iou|score|top[0-9]?|seed|lr|bs|fold"
_MEASURED = re.compile(rf"(?<![a-zA-Z])({_OTHERS})[\W_]*\d[\d.]*", re.IGNORECASE)
_ENDINGS = re.compile(r"(-v\d+)?(\.[A-Za-z]+\d?)*$")  # -v1: Lightning's, where a name was taken


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """A checkpoint of a training."""

    backbone: str  # as a user names it: a folder, or a file after its mark
    weights_of: str  # the backbone of which it is a file of weights; "" for none
    training: str  # absolute path of the training's folder
    step: int
    file: str  # the part of its path by which the step is known


@dataclass(frozen=True, slots=True)
class Series:
    """The checkpoints of the trainings of a request, in order of steps, and its other backbones."""

    steps: tuple[TrainingStep, ...] = ()
    backbones: tuple[str, ...] = ()  # that are no checkpoints
    weights: Mapping[str, Path] | None = None  # of backbones that are no checkpoints

    def names(self, output: Path) -> dict[str, str]:
        """A name for the folder of each training, as in earlier runs into an output folder."""
        paths = {step.training: ("", step.training) for step in self.steps}
        return short_names(paths, (), read_local_names(output))

    def lines(self, names: Mapping[str, str]) -> Iterator[str]:
        """What was found of each training, in a line."""
        for folder, name in names.items():
            steps = [each for each in self.steps if each.training == folder]
            listed = few_of([f"{each.step:,} ({each.file})" for each in steps])
            yield f"{name}: {counted(len(steps), 'checkpoints')} of a training, step {listed}"


def find_series(request: Request) -> Series:
    """The checkpoints that ``--backbones`` and ``--weights`` mean; none without ``--series``.

    The step of a checkpoint is a number in the part of its path that the pattern leaves open (`_steps_in`),
    or a row of the table ``--steps``. The folder that this part is in is the training. Raises InputError if a
    pattern means no file, and for a checkpoint without a step, or with that of another one.
    """
    if not request.series:
        ensure(request.steps is None, "--steps says the steps of checkpoints; it needs --series")
        return Series(backbones=request.backbones, weights=request.weights)
    table = {} if request.steps is None else _steps_of(request.steps)
    checkpoints: list[TrainingStep] = []
    others: list[str] = []
    for pattern in request.backbones:
        if any(fnmatchcase(spec.name, pattern) for spec in all_specs()):
            others.append(pattern)
            continue
        mark = origin_mark(pattern)
        paths = _matching(pattern.removeprefix(mark))
        checkpoints += _checkpoints(paths, mark, "", pattern, table)
        others += [] if paths else [pattern]
    weights = dict(request.weights)
    for name, path in request.weights.items():
        if has_magic(str(path)) and not path.exists():
            checkpoints += _checkpoints(_matching(str(path)), "", name, str(path), table)
            del weights[name]
            others = [pattern for pattern in others if pattern != name]
    if not checkpoints:
        example = "'runs/*/checkpoint-*', or --weights 'NAME=runs/*/ckpt-*.pt'"
        raise InputError(f"--series found no checkpoints; name them by --backbones {example}")
    checkpoints.sort(key=lambda each: (each.training, each.step))
    for (training, step), alike in groupby(checkpoints, lambda each: (each.training, each.step)):
        same = [each.backbone for each in alike]
        if len(same) > 1:
            raise InputError(
                f"{some(same)} are all step {step} of the training in {training}; let the pattern match only "
                "one of them, or give their steps: --steps, a CSV file with the columns file and step"
            )
    return Series(tuple(checkpoints), tuple(others), weights)


def _matching(pattern: str) -> list[str]:
    """The files and folders that a pattern means, sorted; none for the name of anything else.

    Raises InputError for a pattern that means none.
    """
    if not has_magic(pattern) and not Path(pattern).exists():
        return []
    whole, part = pattern, ""
    if PART in pattern and not glob(pattern, recursive=True):
        whole, _, label = pattern.rpartition(PART)
        part = f"{PART}{label}"
    paths = [whole] if Path(whole).exists() else sorted(glob(whole, recursive=True))
    ensure(paths, f"no file or folder matches {pattern!r}")
    return [f"{path}{part}" for path in paths]


def _checkpoints(
    paths: Sequence[str], mark: str, weights_of: str, pattern: str, table: Mapping[str, int]
) -> Iterator[TrainingStep]:
    """The checkpoints that a pattern means, each with its step, from the table or from its name."""
    opened = [number for number, part in enumerate(reversed(Path(pattern).parts)) if has_magic(part)]
    after = opened[0] if opened else 0  # parts of the path after the one that the pattern leaves open
    wholes = [Path(abspath(path.partition(PART)[0])) for path in paths]
    names = [whole.parts[-1 - after] for whole in wholes]
    bare = [
        _ENDINGS.sub("", name) if whole.is_file() and not after else name
        for whole, name in zip(wholes, names, strict=True)
    ]
    for path, whole, name, numbers in zip(paths, wholes, names, _steps_in(bare), strict=True):
        ensure(not table or str(whole) in table, f"the table of --steps has no row of {path}")
        if not table and len(numbers) != 1:
            has = f"the numbers {', '.join(map(str, numbers))}" if numbers else "no whole number"
            raise InputError(
                f"{path} has {has} in {name!r}, by which its step would be known; leave it out of the "
                "pattern, call it step=N, or give --steps, a CSV file with the columns file and step"
            )
        step = table[str(whole)] if table else numbers[0]
        yield TrainingStep(f"{mark}{path}", weights_of, str(whole.parents[after]), step, name)


def _steps_in(names: Sequence[str]) -> list[list[int]]:
    """For each name what may be its step.

    That is the number after the word step, or else epoch or iteration, or else the only number; of several,
    the only one that not all names have at this place.
    """
    steps: list[list[int]] = []
    for name in names:
        named = next(filter(None, (pattern.findall(name) for pattern in _NAMED)), None)
        numbers = named[-1:] if named else re.findall(_DIGITS, _MEASURED.sub("", name))
        steps.append([_whole(*each) for each in numbers])
    several = [numbers for numbers in steps if len(numbers) > 1]
    if len({*map(len, several)}) == 1:
        differ = [len({*column}) > 1 for column in zip(*several, strict=True)]
        if sum(differ) == 1:
            steps = [[each[differ.index(True)]] if len(each) > 1 else each for each in steps]
    return steps


def _whole(many: str, unit: str, digits: str) -> int:
    """A number that was found as ``_DIGITS``."""
    return round(float(many) * {"k": 10**3, "m": 10**6}[unit.lower()]) if unit else int(digits)


def _steps_of(path: Path) -> dict[str, int]:
    """Steps by absolute path of the checkpoint, from a CSV with the columns file and step; raises InputError.

    Files are relative to the folder of the table, or else to the working folder.
    """
    table = read_label_table(path)
    require_columns(table, FILE_COLUMNS, (STEP,))
    column = [name.lower() for name in table.header].index(STEP)
    steps: dict[str, int] = {}
    for row in table.rows:
        text = row.cells[column]
        if not re.fullmatch(r"[0-9]{1,15}(\.0*)?", text):
            raise InputError(f"{path} has {text!r} as a step in line {row.number}; expected a whole number")
        for folder in (Path(), path.parent):
            steps[abspath(folder / row.path)] = int(text.partition(".")[0])
    return steps
