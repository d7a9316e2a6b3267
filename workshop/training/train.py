"""The training loop: any objective, any images, and checkpoints from which it goes on exactly."""

import math
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor
from transformers import PreTrainedModel

from layerboard.zoo.atomic import whole_file
from layerboard.zoo.errors import InputError
from workshop.training.data import Pictures, TrainingBatches, require_batch, seeded, step_indices
from workshop.training.objective import Moment, Objective, make_optimiser


@dataclass(frozen=True, slots=True)
class TrainingCheckpoint:
    """The file from which a training goes on; that of another training is refused."""

    path: Path
    identity: str  # what the training is, in words
    resume: bool = True  # whether to go on from a file that is there

    def save(self, state: dict[str, Any]) -> None:
        """Write a state; the one before stays until this one is whole."""
        # Given a path, torch refuses names that begin with a dot.
        with whole_file(self.path) as draft, draft.open("wb") as file:
            torch.save({"identity": self.identity} | state, file)

    def load(self, device: torch.device) -> dict[str, Any] | None:
        """The state to go on from, its tensors on a device; None if there is none, or it is not wanted.

        Raises InputError: it is damaged, or another training's.
        """
        if not self.resume or not self.path.is_file():
            return None
        try:
            state: dict[str, Any] = torch.load(self.path, map_location=device, weights_only=True)
        except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
            raise InputError(f"{self.path} is a damaged checkpoint; start over with --no-resume") from error
        if state["identity"] != self.identity:
            raise InputError(
                f"{self.path} is a checkpoint of another training ({state['identity']}), this one is "
                f"{self.identity}; choose another --output, or start over with --no-resume"
            )
        return state


HistoryRow = dict[str, float]  # numbers of one step by name, ``step`` among them (from 1)
Probe = Callable[[Objective], HistoryRow]

CPU = torch.device("cpu")

COLLAPSED = 0.02  # spread under which features are nearly the same for all images; at random about 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Options of a training that are not the objective's."""

    steps: int  # updates in all
    batch_size: int  # images in a step
    seed: int = 0  # of the order of the images and of every draw
    device: torch.device = CPU  # where it runs
    # of the forward, float32 or bfloat16; in the latter, weights, soft-max and losses stay float32
    dtype: torch.dtype = torch.float32
    log_every: int = 50  # steps from one row of the history to the next
    checkpoint_every: int = 500  # steps from one checkpoint to the next
    probe_every: int = 0  # steps from one probe to the next; 0 for none but at the end


class Watcher(Protocol):
    """Hears how a training goes."""

    def stepped(self, step: int) -> None:
        """Report the number of completed steps; after a resume, the first call reports the checkpoint's."""

    def noted(self, row: HistoryRow) -> None:
        """The history has one more row."""


def train(
    objective: Objective,
    data: Pictures,
    schedule: Schedule,
    checkpoint: TrainingCheckpoint,
    watcher: Watcher,
    probe: Probe | None = None,
) -> list[HistoryRow]:
    """Train an objective in place.

    All draws of a step come from a generator that is seeded by the schedule's seed and the step, so the
    number of steps is all the random state there is, and a training that was interrupted goes on exactly.

    Gives the history: ``step``, ``loss``, ``rate`` and the objective's metrics every ``log_every`` steps and
    at the end, and what the probe says (in the row of its step). Raises InputError: the batch does not fit
    the data, the checkpoint is another's, or the loss is not finite.
    """
    device = schedule.device
    require_batch(schedule.batch_size, len(data))
    objective.to(device).train()
    is_short = schedule.dtype == torch.bfloat16
    if device.type == "cpu" and is_short:
        # the backward of fused attention takes half of the time of a whole step there
        for part in objective.modules():
            if isinstance(part, PreTrainedModel):
                part.set_attn_implementation("eager")
    batches = TrainingBatches(data, device)
    optimiser = make_optimiser(objective, objective.optimisation)
    step, history = 0, []
    if (state := checkpoint.load(device)) is not None:
        step, history = state["step"], state["history"]
        objective.load_state_dict(state["objective"])
        optimiser.load_state_dict(state["optimiser"])
    gpus = [device] if device.type == "cuda" else []
    watcher.stepped(step)
    while step < schedule.steps:
        generator = seeded("step", schedule.seed, step, device=device)
        moment = Moment(step, schedule.steps, generator)
        batch = batches.of(step_indices(step, len(data), schedule.batch_size, schedule.seed))
        with torch.random.fork_rng(gpus), torch.autocast(device.type, torch.bfloat16, enabled=is_short):
            torch.manual_seed(generator.initial_seed())  # BEiT's stochastic depth has no generator of its own
            loss, metrics = objective(batch, moment)
        _update(objective, optimiser, loss, moment, schedule)
        step += 1
        watcher.stepped(step)
        is_last = step == schedule.steps
        if step % schedule.log_every == 0 or is_last:
            row = _row(float(loss.detach()), metrics, step, optimiser.param_groups[0]["lr"])
            every = schedule.probe_every
            if probe is not None and (is_last or (every > 0 and step % every < schedule.log_every)):
                row |= probe(objective)
            history.append(row)
            watcher.noted(row)
        if step % schedule.checkpoint_every == 0 or is_last:
            states = {"objective": objective.state_dict(), "optimiser": optimiser.state_dict()}
            checkpoint.save({"step": step, "history": history} | states)
    return history


def _update(
    objective: Objective, optimiser: torch.optim.Optimizer, loss: Tensor, moment: Moment, schedule: Schedule
) -> None:
    how = objective.optimisation
    rate = how.rate(moment.step, schedule.steps, schedule.batch_size)
    decay = how.decay(moment.step, schedule.steps)
    for group in optimiser.param_groups:
        group.update(lr=rate, weight_decay=decay if group["decayed"] else 0.0)
    optimiser.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]  # missing in torch's stubs
    if how.clip is not None:
        torch.nn.utils.clip_grad_norm_(objective.parameters(), how.clip)
    objective.before_update(moment)
    optimiser.step()
    objective.after_update(moment)


def _row(loss: float, metrics: Mapping[str, Tensor], step: int, rate: float) -> HistoryRow:
    """Numbers of a step; raises InputError where the loss is not finite."""
    if not math.isfinite(loss):
        raise InputError(f"the training diverged: the loss is {loss} at step {step}; choose a smaller rate")
    shown = {name: float(value) for name, value in metrics.items()}
    return {"step": step, "loss": loss, "rate": rate, **shown}


def warning(row: HistoryRow) -> str | None:
    """A sentence on a collapse that a row indicates; None if there is none."""
    step = int(row["step"])
    if row["spread"] < COLLAPSED:
        return f"step {step}: features are nearly the same for all images (spread {row['spread']:.3f})"
    if "used" in row and row["used"] < 0.1:
        return f"step {step}: the teacher gives nearly all images one prototype"
    if "entropy" in row and row["entropy"] > 0.999:
        return f"step {step}: the teacher cannot tell prototypes apart"
    return None
