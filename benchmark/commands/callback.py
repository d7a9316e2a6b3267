"""Following a training from within: `layerboard.Callback`."""

import math
import random
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn
from transformers import TrainerCallback

from layerboard.benchmark.api import execute
from layerboard.benchmark.commands.from_module import from_module
from layerboard.benchmark.commands.report import report
from layerboard.benchmark.commands.run import RunForm
from layerboard.benchmark.engines.progress import reporter_for
from layerboard.benchmark.forms.option import called_with
from layerboard.benchmark.forms.request import Request
from layerboard.leaderboards.board.board import Board
from layerboard.leaderboards.records.files import set_aside, steps_of
from layerboard.leaderboards.writers.build import write_board
from layerboard.zoo.errors import InputError, first_line, some
from layerboard.zoo.features.pass_context import pass_context
from layerboard.zoo.libraries import is_there
from layerboard.zoo.own.module.network import bare
from layerboard.zoo.spec import Variant

Scores = dict[str, float]  # numbers by names that every tracker takes
LIGHTNING = ("lightning.pytorch", "pytorch_lightning")  # one library under two names
NOT_HERE = ("backbones", "weights", "series", "steps")  # options of a run that a training answers


class TrainingFollower:
    """Scores every layer of a network while it is trained, every so many steps, as a checkpoint of a series.

    It is a callback of the Trainer of transformers and of Lightning, given as ``callbacks=[...]`` to either;
    a loop of your own calls it with the network and the step, and ``finish`` at the end. The network is
    scored before the first step, every ``every`` steps, and after the last one, in this process; of several
    processes, in the first alone. What is scored is a copy in evaluation mode: the network, its gradients,
    its mode and device, and the states of random generators stay as they are.

    Each call returns the scores of its step by name: of the best layer, which layer that is, and of every
    layer. Lightning's loggers get them, too; the Trainer of transformers does not name itself to its
    callbacks, so say ``log=trainer.log``, and all that ``report_to`` names gets them.

    Backbones are called ``NAME@step100``. The pages, which follow the training, and the report are written
    at the end. What is wrong at the first step raises InputError; later it is a warning, and the training
    goes on. ``scores`` is a frame of the best layer at each step.

    Example:
        >>> import layerboard
        >>> import torch
        >>> net = torch.nn.Sequential(
        ...     torch.nn.Conv2d(3, 16, kernel_size=8, stride=8),
        ...     *(torch.nn.Sequential(torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.ReLU()) for _ in "abc"),
        ... )
        >>> known = {"image_size": 64, "blocks": list(net)[1:]}
        >>> follow = layerboard.Callback("knn", name="mine", network=known, images="photos", output="follow")
        >>> optimizer = torch.optim.SGD(net.parameters(), 0.1)
        >>> for step in range(1, 11):
        ...     net(torch.randn(4, 3, 64, 64)).square().mean().backward()
        ...     optimizer.step()
        >>> found = follow(net, step)
        mine@step10: 3 blocks of net...
          ...
        >>> list(found)[:3]
        ['knn top-1/best', 'knn top-1/best layer', 'knn top-1/layer 01']
        >>> follow.scores[["step", "task"]].values.tolist()
        [[10, 'knn top-1']]

    Options:
        tasks: Tasks, as of `layerboard.run`. Default: all that the data allow.
        every: Steps of the optimizer between two evaluations. Default: 1000.
        name: Name of the training in tables. Default: that of the network's class.
        part: Dotted path of the backbone in the network that is trained, such as 'encoder'.
        network: Options of `layerboard.from_module` as a mapping, such as {'image_size': 64}.
        log: Function that takes the scores of each step, such as trainer.log of transformers. Default: none.
        options: Those of `layerboard.run`, such as images, data, layers, output and device.
    """

    def __init__(
        self,
        tasks: str | Sequence[str] = (),
        *,
        every: int = 1000,
        name: str | None = None,
        part: str = "",
        network: Mapping[str, Any] | None = None,
        log: Callable[[Scores], object] | None = None,
        **options: Any,  # noqa: ANN401  # those of a run
    ) -> None:
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise InputError(f"every= takes a whole number of at least 1; found {every!r}")
        if log is not None and not callable(log):
            raise InputError(f"log= takes a function of a mapping, such as trainer.log; found {log!r}")
        if given := [each for each in NOT_HERE if each in options]:
            raise InputError(f"Callback() takes its network from the training; leave out {given[0]}=")
        self._call = _filled(tasks=tasks, **{"examples": False, "progress": False, **options})
        self._every, self._name, self._part = every, name, part
        self._network, self._log = dict(network or {}), log
        self._last = -1  # the step that was scored last
        self.board: Board | None = None  # of all that the output folder has of the suite

    def __call__(self, net: nn.Module, step: int) -> Scores:
        """Score a network as it is after a step; returns the scores by name.

        There are none if the step is scored already, in other processes than the first, and if a later step
        cannot be scored.
        """
        return self._scored(net, step, self._log)

    def _scored(self, net: nn.Module, step: int, log: Callable[[Scores], object] | None) -> Scores:
        """Score a network, and hand its scores to a log."""
        if not _is_first() or step == self._last:
            return {}
        first, self._last = self._last < 0, step
        try:
            with _own_randomness():
                scores = self._score(net, step)
        except Exception as error:
            if first:
                raise
            _warn(f"has no scores of step {step}", error, 4)
            return {}
        try:
            if log is not None and scores:
                log(dict(scores))  # which may add to them
        except Exception as error:  # as of a tracker's run that is closed already
            if first:
                raise
            said = f"{type(error).__name__}: {first_line(error)}"
            warnings.warn(f"layerboard has scores of step {step}, which log= refused: {said}", stacklevel=3)
        return scores

    def finish(self) -> None:
        """Write the pages and the report of the training; what prevents that is a warning."""
        if not _is_first() or self.board is None:
            return
        output = self._call.output
        try:
            write_board(self.board, output / "tables")
            report(output=output, suite=self.board.suite)
        except Exception as error:
            _warn(f"has not written the pages of the training into {output}", error, 3)

    @property
    def scores(self) -> pd.DataFrame:
        """The best layer at each step: columns step, task, layer, pooling, value, ci_low and ci_high."""
        fields = ["layer", "pooling", "value", "ci_low", "ci_high"]
        rows = []
        for column in self.board.columns if self.board else ():
            for row in column.best.to_dict("records"):
                series, step = Variant.of(str(row["backbone"])).checkpoint
                if str(series) == self._name:
                    rows.append((step, column.heading, *(row[field] for field in fields)))
        frame = pd.DataFrame(rows, columns=["step", "task", *fields])
        return frame.sort_values(["task", "step"], ignore_index=True)

    def _score(self, net: nn.Module, step: int) -> Scores:
        chosen = _part_of(net, self._part)
        self._name = self._name or type(chosen).__name__
        options = {"verbose": self.board is None, **self._network, "name": f"{self._name}@step{step}"}
        network = from_module(chosen, **options)
        if self.board is None and (
            later := [each for at, each in steps_of(self._call.output, self._name).items() if at > step]
        ):
            warnings.warn(f"layerboard: {set_aside(self._call.output, later)}", stacklevel=4)
        request = Request.of(self._call, backbones=network)
        summary = execute(request, reporter_for(self._call.progress), pages=False)
        self.board = summary.board
        for failure in summary.done.failures:
            warnings.warn(f"layerboard at step {step}: {failure}", stacklevel=4)
        return scores_of(self.board, network.name) if self.board is not None else {}

    def _is_due(self, step: int) -> bool:
        """Whether a multiple of ``every`` was passed since the network was last scored."""
        return step // self._every > max(self._last, 0) // self._every

    # ---- events of the Trainer of transformers -------------------------------------------------------

    def on_train_begin(self, args: Any, state: Any, control: Any, **words: Any) -> None:  # noqa: ANN401
        self(words["model"], state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **words: Any) -> None:  # noqa: ANN401
        if self._is_due(state.global_step):
            self(words["model"], state.global_step)

    def on_epoch_end(self, args: Any, state: Any, control: Any, **words: Any) -> None:  # noqa: ANN401
        if control.should_training_stop:  # at the end of the training, trackers have closed their runs
            self(words["model"], state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any = None, **words: Any) -> None:  # noqa: ANN401
        if control is not None:  # Lightning has an event of this name, too
            self(words["model"], state.global_step)
            self.finish()

    # ---- events of Lightning -------------------------------------------------------------------------

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ANN401
        self._scored(pl_module, trainer.global_step, self._log_of(trainer))

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *rest: Any) -> None:  # noqa: ANN401
        if self._is_due(trainer.global_step):
            self._scored(pl_module, trainer.global_step, self._log_of(trainer))

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ANN401
        self._scored(pl_module, trainer.global_step, self._log_of(trainer))
        self.finish()

    def _log_of(self, trainer: Any) -> Callable[[Scores], object]:  # noqa: ANN401
        """The log that was given, or else all loggers of a trainer of Lightning, at its step."""

        def log(scores: Scores) -> None:
            for logger in trainer.loggers:
                logger.log_metrics(scores, step=trainer.global_step)

        return self._log or log


def _warn(what: str, error: Exception, level: int) -> None:
    """Say what a training lacks, whose steps and end go on."""
    kind = "" if isinstance(error, InputError | MemoryError) else f"{type(error).__name__}: "
    warnings.warn(f"layerboard {what}: {kind}{first_line(error)}", stacklevel=level)


def scores_of(board: Board, backbone: str) -> Scores:
    """Of each column, the best layer's score of a backbone, its number, and the scores of all layers."""
    scores: Scores = {}
    for column in board.columns:
        title = re.sub(r"[^\w\-. :/]", "-", column.heading.removesuffix(" †"), flags=re.ASCII)
        best, every = (rows[rows["backbone"] == backbone] for rows in (column.best, column.candidates))
        for layer, value in zip(best["layer"], best["value"], strict=True):
            scores |= {f"{title}/best": float(value), f"{title}/best layer": float(layer)}
        for layer, value in zip(every["layer"], every["value"], strict=True):
            scores[f"{title}/layer {layer:02}"] = float(value)
    return {name: value for name, value in scores.items() if math.isfinite(value)}


def _checked(call: RunForm) -> RunForm:
    return call


_checked.__name__ = "Callback"  # in messages about its options
_filled = called_with(RunForm)(_checked)


def _is_first() -> bool:
    """Whether this process is the first of those that train together, or the only one."""
    together = torch.distributed.is_available() and torch.distributed.is_initialized()
    return not together or torch.distributed.get_rank() == 0


@contextmanager
def _own_randomness() -> Iterator[None]:
    """Leave the random generators of torch, on every device, of NumPy and of Python as they were."""
    numpy, python = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())), pass_context(gradients=True):
            yield
    finally:
        np.random.set_state(numpy)  # noqa: NPY002
        random.setstate(python)


def _part_of(net: nn.Module, part: str) -> nn.Module:
    """A part of a network in training; InputError if there is none, or not all of it in this process."""
    net = bare(net)
    try:
        chosen = net.get_submodule(part)
    except AttributeError:
        there = some((name for name, _ in net.named_children()), 6)
        raise InputError(f"part={part!r} names no module of {type(net).__name__}; it has {there}") from None
    marks = ("full_tensor", "ds_id", "_is_fsdp_managed_module")  # of FSDP (either version) and of ZeRO-3
    if any(hasattr(each, mark) for each in (*chosen.modules(), *chosen.parameters()) for mark in marks):
        raise InputError(
            "the parameters of the network are spread over processes (FSDP, ZeRO-3), so none can score it; "
            "save checkpoints, and run them with --series"
        )
    return chosen


def _libraries() -> Iterator[type]:
    """The classes that a callback of each library is one of: of transformers, and of Lightning if there."""
    yield TrainerCallback
    there = [name for name in LIGHTNING if is_there(name.partition(".")[0])]
    for name in sorted(there, key=lambda name: name not in sys.modules)[:1]:
        try:
            library = import_module(name)
        except Exception:  # of a broken library, which who trains with the other one need not mend
            return
        yield library.Callback


_FACTS = {"__doc__": TrainingFollower.__doc__, "__module__": __name__}
Callback: type[Any] = type("Callback", (TrainingFollower, *_libraries()), _FACTS)
