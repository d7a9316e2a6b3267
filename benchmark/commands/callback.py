"""Following a training from within: `layerboard.Callback`."""

import random
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from transformers import TrainerCallback

from layerboard.benchmark.api import execute
from layerboard.benchmark.commands.from_module import from_module
from layerboard.benchmark.commands.run import RunCall, log_summary, report_of_suite
from layerboard.benchmark.engines.progress import reporter_for
from layerboard.benchmark.forms.option import called_with
from layerboard.benchmark.forms.request import Request
from layerboard.benchmark.trackers import Tracker, open_tracker, refusals_told
from layerboard.leaderboards.writers.build import write_board
from layerboard.zoo.errors import InputError, first_line, some
from layerboard.zoo.libraries import is_there
from layerboard.zoo.own.module.network import bare
from layerboard.zoo.spec import Variant

if TYPE_CHECKING:
    import pandas as pd

    from layerboard.leaderboards.board.board import Board

LIGHTNING = ("lightning.pytorch", "pytorch_lightning")  # one library under two names
NOT_HERE = ("backbones", "weights", "series", "steps")  # options of a run that a training answers


class TrainingFollower:
    """Scores every layer of a network while it is trained, every so many steps, as a checkpoint of a series.

    It is a callback of the Trainer of transformers and of Lightning, given as ``callbacks=[...]`` to either;
    a loop of your own calls it with the network and the step, and ``finish`` at the end. The network is
    scored before the first step, every ``every`` steps, and after the last one, in this process; of several
    processes, in the first alone. What is scored is a copy in evaluation mode: the network, its gradients,
    its mode and device, and the states of random generators stay as they are.

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
        >>> follow(net, step)
        mine@step10: 3 blocks of net...
          ...
        >>> follow.scores[["step", "task"]].values.tolist()
        [[10, 'knn top-1']]

    Options:
        tasks: Tasks, as of `layerboard.run`. Default: all that the data allow.
        every: Steps of the optimizer between two evaluations. Default: 1000.
        name: Name of the training in tables. Default: that of the network's class.
        part: Dotted path of the backbone in the network that is trained, such as 'encoder'.
        network: Options of `layerboard.from_module` as a mapping, such as {'image_size': 64}.
        options: Those of `layerboard.run`, such as images, data, layers, output, log and device.
    """

    def __init__(
        self,
        tasks: str | Sequence[str] = (),
        *,
        every: int = 1000,
        name: str | None = None,
        part: str = "",
        network: Mapping[str, Any] | None = None,
        **options: Any,  # noqa: ANN401  # those of a run
    ) -> None:
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise InputError(f"every= takes a whole number of at least 1; found {every!r}")
        if given := [each for each in NOT_HERE if each in options]:
            raise InputError(f"Callback() takes its network from the training; leave out {given[0]}=")
        self._call = _filled(tasks=tasks, **{"examples": False, "progress": False, **options})
        self._every, self._name, self._part = every, name, part
        self._network = dict(network or {})
        self._last = -1  # the step that was scored last
        self._tracker: Tracker | None = None  # opened late, where the trainer's own may be active
        self.board: Board | None = None  # of all that the output folder has of the suite

    def __call__(self, net: nn.Module, step: int) -> None:
        """Score a network as it is after a step; in other processes than the first, do nothing."""
        if not _is_first() or step == self._last:
            return
        first, self._last = self._last < 0, step
        try:
            with _own_randomness():
                self._score(net, step)
        except Exception as error:
            if first:
                raise
            kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
            warnings.warn(f"layerboard has no scores of step {step}: {kind}{first_line(error)}", stacklevel=2)

    def finish(self) -> None:
        """Write the pages and the report of the training, log the report, and end the tracker's run."""
        if not _is_first() or self.board is None:
            return
        output = self._call.output
        write_board(self.board, output / "tables")
        paths = report_of_suite(output, self.board.suite)
        if self._tracker is not None:
            with refusals_told(self._tracker.name):
                for path in paths:
                    self._tracker.attach(path)
                self._tracker.close()

    @property
    def scores(self) -> "pd.DataFrame":
        """The best layer at each step: columns step, task, layer, pooling, value, ci_low and ci_high."""
        import pandas as pd

        fields = ["layer", "pooling", "value", "ci_low", "ci_high"]
        rows = []
        for column in self.board.columns if self.board else ():
            for row in column.best.to_dict("records"):
                series, step = Variant.of(str(row["backbone"])).checkpoint
                if str(series) == self._name:
                    rows.append((step, column.heading, *(row[field] for field in fields)))
        frame = pd.DataFrame(rows, columns=["step", "task", *fields])
        return frame.sort_values(["task", "step"], ignore_index=True)

    def _score(self, net: nn.Module, step: int) -> None:
        chosen = _part_of(net, self._part)
        self._name = self._name or type(chosen).__name__
        options = {"verbose": self.board is None, **self._network, "name": f"{self._name}@step{step}"}
        network = from_module(chosen, **options)
        request = Request.of(self._call, backbones=network)
        if self._call.log is not None and self._tracker is None:
            self._tracker = open_tracker(self._call.log, request.output)
        summary = execute(request, reporter_for(self._call.progress), pages=False)
        self.board = summary.board
        if self._tracker is not None:
            with refusals_told(self._tracker.name):
                log_summary(self._tracker, summary)
        for failure in summary.done.failures:
            warnings.warn(f"layerboard at step {step}: {failure}", stacklevel=3)

    def _due(self, net: nn.Module, step: int) -> None:
        """Score the network if a multiple of ``every`` was passed since it was last scored."""
        if step // self._every > max(self._last, 0) // self._every:
            self(net, step)

    # ---- events of the Trainer of transformers -------------------------------------------------------

    def on_train_begin(self, args: Any, state: Any, control: Any, **words: Any) -> None:  # noqa: ANN401
        self(words["model"], state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, **words: Any) -> None:  # noqa: ANN401
        self._due(words["model"], state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any = None, **words: Any) -> None:  # noqa: ANN401
        if control is not None:  # Lightning has an event of this name, too
            self(words["model"], state.global_step)
            self.finish()

    # ---- events of Lightning -------------------------------------------------------------------------

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:  # noqa: ANN401
        self(pl_module, trainer.global_step)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *rest: Any) -> None:  # noqa: ANN401
        self._due(pl_module, trainer.global_step)

    def on_fit_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ANN401
        self(pl_module, trainer.global_step)
        self.finish()


def _checked(call: RunCall) -> RunCall:
    return call


_checked.__name__ = "Callback"  # in messages about its options
_filled = called_with(RunCall)(_checked)


def _is_first() -> bool:
    """Whether this process is the first of those that train together, or the only one."""
    together = torch.distributed.is_available() and torch.distributed.is_initialized()
    return not together or torch.distributed.get_rank() == 0


@contextmanager
def _own_randomness() -> Iterator[None]:
    """Leave the random generators of torch, on every device, of NumPy and of Python as they were."""
    numpy, python = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count())), torch.enable_grad():
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
    if any(map(_is_spread, (*chosen.modules(), *chosen.parameters()))):
        raise InputError(
            "the parameters of the network are spread over processes (FSDP, ZeRO-3), so none can score it; "
            "save checkpoints, and run them with --series"
        )
    return chosen


def _is_spread(part: object) -> bool:
    """Whether FSDP (either version) or ZeRO-3 has marked a module or parameter as its own."""
    return any(hasattr(part, mark) for mark in ("full_tensor", "ds_id", "_is_fsdp_managed_module"))


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
