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
class State:
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


def save_state(path: Path, identity: str, state: State) -> None:
    """Write a checkpoint; the one before stays until this one is whole."""
    content = {
        "identity": identity,
        "step": state.step,
        "objective": state.objective,
        "optimiser": state.optimiser,
        "history": state.history,
    }
    # Given a path, torch refuses names that begin with a dot.
    with whole_file(path) as draft, draft.open("wb") as file:
        torch.save(content, file)


def load_state(path: Path, identity: str, device: torch.device) -> State | None:
    """The checkpoint of a file; None if there is no such file.

    Raises:
        InputError: It is damaged, or another training's.
    """
    if not path.is_file():
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
    return State(content["step"], content["objective"], content["optimiser"], content["history"])
