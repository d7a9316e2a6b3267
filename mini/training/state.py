"""Checkpoints of a training."""

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from zoo.atomic import whole_file
from zoo.errors import InputError


@dataclass(frozen=True, slots=True)
class TrainingState:
    """All that a training needs to go on.

    Attributes:
        step: Steps that are done; the random state follows from it.
        objective: Tensors of the objective, its momentum networks and averages among them.
        optimiser: State of the optimiser.
        history: Rows so far.
    """

    step: int
    objective: dict[str, Tensor]
    optimiser: dict[str, Any]
    history: list[dict[str, float]]


@dataclass(frozen=True, slots=True)
class Kept:
    """Where a training keeps its checkpoint, and whose it is.

    Attributes:
        path: File of the checkpoint.
        identity: What the training is, in words; a checkpoint of another is refused.
        resume: Whether to go on from a checkpoint that is there.
    """

    path: Path
    identity: str
    resume: bool = True


def save_state(kept: Kept, state: TrainingState) -> None:
    """Write a checkpoint; the one before stays until this one is whole."""
    content = {
        "identity": kept.identity,
        "step": state.step,
        "objective": state.objective,
        "optimiser": state.optimiser,
        "history": state.history,
    }
    # Given a path, torch refuses names that begin with a dot.
    with whole_file(kept.path) as draft, draft.open("wb") as file:
        torch.save(content, file)


def load_state(kept: Kept, device: torch.device) -> TrainingState | None:
    """The checkpoint to go on from, its tensors on a device; None if there is none, or it is not wanted.

    Raises:
        InputError: It is damaged, or another training's.
    """
    path, identity = kept.path, kept.identity
    if not kept.resume or not path.is_file():
        return None
    try:
        content = torch.load(path, map_location=device, weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, ValueError) as error:
        raise InputError(f"{path} is a damaged checkpoint; start over with --no-resume") from error
    if content["identity"] != identity:
        raise InputError(
            f"{path} is a checkpoint of another training ({content['identity']}), this one is {identity}; "
            "choose another --output, or start over with --no-resume"
        )
    return TrainingState(content["step"], content["objective"], content["optimiser"], content["history"])
