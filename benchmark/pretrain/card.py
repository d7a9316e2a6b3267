"""What is said of a trained backbone: its card, with the exact command and the commit."""

from dataclasses import asdict, dataclass
from pathlib import Path
from pprint import pformat

import torch

from benchmark.pretrain.options import Pretraining
from leaderboards.records.version import VERSION
from mini.render import MINI_VERSION
from mini.training.export import Card
from mini.training.methods import Method
from mini.training.train import HistoryRow, Schedule
from zoo.spec import BackboneSpec

LICENCE = "Apache-2.0"


@dataclass(frozen=True)
class Trained:
    """A training that is over.

    Attributes:
        wish: What was asked for.
        schedule: Steps and batches.
        chosen: The method, with its recipe.
        spec: Entry of the backbone.
        images: How many different ones it saw.
        started_at: Commit of the checkout at its start; None where there is no checkout.
    """

    wish: Pretraining
    schedule: Schedule
    chosen: Method
    spec: BackboneSpec
    images: int
    started_at: str | None


def card_of(trained: Trained, history: list[HistoryRow]) -> Card:
    """The card of a training with that history."""
    wish, schedule = trained.wish, trained.schedule
    return Card(
        name=wish.name,
        objective=wish.objective,
        supervision=trained.chosen.supervision,
        paper=trained.spec.paper,
        data=(
            f"{trained.images:,} images of {wish.image_size} px from the renderer of the mini suite (version "
            f"{MINI_VERSION}, seed {wish.seed}), none of them in an evaluation set"
        ),
        steps=schedule.steps,
        batch_size=wish.batch_size,
        images=trained.images,
        seed=wish.seed,
        device=f"{_in_words(schedule.device)}, {wish.dtype}",
        version=VERSION,
        commit=trained.started_at,
        command=wish.command,
        recipe=pformat(asdict(trained.chosen.recipe), width=100),
        licence=LICENCE,
        history=history,
    )


def commit(checkout: Path) -> str | None:
    """Commit of a git checkout, read from its files; None where there is no checkout."""
    git = checkout / ".git"
    try:
        head = (git / "HEAD").read_text(encoding="utf-8").strip()
        if not head.startswith("ref: "):
            return head
        branch = head.removeprefix("ref: ")
        if (git / branch).is_file():
            return (git / branch).read_text(encoding="utf-8").strip()
        packed = (git / "packed-refs").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.split()[0] for line in packed if line.endswith(f" {branch}")), None)


def _in_words(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{device.type}, {threads} thread{'s' * (threads > 1)}"
