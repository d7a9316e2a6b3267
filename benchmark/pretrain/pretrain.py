"""Joins the renderer and the objectives: renders, trains, probes, exports and installs a mini backbone."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from pprint import pformat

import torch

from benchmark.engines.choose import find_device
from benchmark.engines.progress import Advance, Reporter
from benchmark.plan.location import require_writable
from benchmark.pretrain.images import held_out_images, training_images
from benchmark.pretrain.options import Pretraining, TrainingDtype
from leaderboards.records.files import VERSION
from mini.checkpoints import install
from mini.render import MINI_VERSION
from mini.training.data import Pictures, require_batch, require_share
from mini.training.export import Card, export
from mini.training.fs import require_block
from mini.training.methods import Method, method
from mini.training.objective import Optimisation
from mini.training.probe import make_probe
from mini.training.train import Checkpoint, HistoryRow, Schedule, train, warning
from zoo.atomic import remove_leftovers
from zoo.errors import InputError
from zoo.features.hooked import multiplies_bfloat16
from zoo.registry import find
from zoo.spec import BackboneSpec

KNOWN = 960
"""Held-out images whose labels the probe knows."""

ASKED = 480
"""Held-out images on which it is scored."""


def pretrain(wish: Pretraining, report: Reporter) -> Path:
    """Train a mini backbone on rendered images.

    Returns:
        Its directory in Hugging Face format, with the training's checkpoint in the folder ``training``.

    Raises:
        InputError: Something that was asked for cannot be.
        OSError: The disk is full.
    """
    device = find_device(wish.device)
    dtype = find_dtype(wish.dtype, device)
    started_at = commit(Path(__file__).parents[2])  # Hours later the checkout may be elsewhere.
    chosen = tuned(wish)
    steps = wish.steps or chosen.steps
    wish = replace(wish, dtype="bfloat16" if dtype is torch.bfloat16 else "float32", steps=steps)
    spec = find([wish.entry])[0]
    _check(wish, spec)
    require_writable(wish.output, wish.cache)
    folder = wish.output / wish.name
    remove_leftovers([folder])
    data = training_images(wish.seed, wish.images, wish.image_size, wish.cache, wish.workers, report)
    data = data.part(wish.fraction, wish.seed)
    held_out = held_out_images(wish.seed, KNOWN + ASKED, wish.image_size, wish.cache, wish.workers, report)
    probe = make_probe(_slice(held_out, 0, KNOWN), _slice(held_out, KNOWN, KNOWN + ASKED), spec.input_size)
    schedule = Schedule(
        steps=steps,
        batch_size=wish.batch_size,
        seed=wish.seed,
        device=device,
        dtype=dtype,
        log_every=wish.log_every,
        checkpoint_every=wish.checkpoint_every,
        probe_every=wish.probe_every,
    )
    objective = chosen.objective(spec, data, wish.seed)
    with _watching(wish.name, schedule, report) as watcher:
        history = train(
            objective,
            data,
            schedule,
            Checkpoint(folder / "training" / "checkpoint.pt", identity(wish, spec, chosen), wish.resume),
            watcher,
            probe,
        )
    export(objective.backbone, spec, _card(wish, chosen, spec, len(data), started_at, history), folder)
    if wish.install:
        install(folder, wish.name)
    return folder


def find_dtype(name: TrainingDtype, device: torch.device) -> torch.dtype:
    """The dtype of that name; ``auto`` is bfloat16 where the device has instructions for it."""
    fast = multiplies_bfloat16(device) if name == "auto" else name == "bfloat16"
    return torch.bfloat16 if fast else torch.float32


def identity(wish: Pretraining, spec: BackboneSpec, chosen: Method) -> str:
    """What a training is: its command, and a digest of everything else that its course follows from."""
    facts = (MINI_VERSION, spec.stages, spec.heads, spec.mean, spec.std, chosen.recipe)
    return f"{wish.command} [{hashlib.sha256(repr(facts).encode()).hexdigest()[:8]}]"


def _check(wish: Pretraining, spec: BackboneSpec) -> None:
    """Raise InputError for what would only be found out after the rendering."""
    require_share(wish.fraction)
    require_batch(wish.batch_size, round(wish.fraction * wish.images))
    if wish.no_skip is not None:
        require_block(spec, wish.no_skip)


def tuned(wish: Pretraining) -> Method:
    """The method with the recipe that was asked for.

    Raises:
        InputError: The method has no such option, or its value is wrong.
    """
    chosen = method(wish.objective)
    if wish.fraction != 1 and wish.objective not in ("fs", "resnet"):
        raise InputError(f"--fraction is for methods that learn labels (fs, resnet), not {wish.objective}")
    if wish.narrow and wish.objective != "fs":
        raise InputError(f"--narrow is for fs, not {wish.objective}")
    changes: dict[str, object] = {"pooling": wish.pooling, "no_skip": wish.no_skip}
    if wish.learning_rate is not None:
        how: Optimisation = chosen.recipe.optimisation
        changes["optimisation"] = replace(how, learning_rate=wish.learning_rate)
    return chosen.tuned(**{name: value for name, value in changes.items() if value is not None})


def _slice(pictures: Pictures, start: int, stop: int) -> Pictures:
    return Pictures(pictures.images[start:stop], pictures.labels[start:stop], pictures.captions[start:stop])


class _Watcher:
    """Passes on what a training tells: a bar of images, a line for each probe and each sign of collapse."""

    def __init__(self, advance: Advance, report: Reporter, batch_size: int) -> None:
        self._advance, self._report, self._batch = advance, report, batch_size
        self._done = 0

    def stepped(self, step: int) -> None:
        """Move the bar."""
        self._advance((step - self._done) * self._batch)
        self._done = step

    def noted(self, row: HistoryRow) -> None:
        """Say what the row tells."""
        numbers = ", ".join(f"{name} {value:.4g}" for name, value in row.items() if name != "step")
        self._report.say(f"step {int(row['step'])}: {numbers}")
        if (text := warning(row)) is not None:
            self._report.say(f"warning: {text}")


@contextmanager
def _watching(name: str, schedule: Schedule, report: Reporter) -> Iterator[_Watcher]:
    with report.bar(f"training {name}", schedule.steps * schedule.batch_size, "images") as advance:
        yield _Watcher(advance, report, schedule.batch_size)


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


def _card(
    wish: Pretraining,
    chosen: Method,
    spec: BackboneSpec,
    images: int,
    started_at: str | None,
    history: list[HistoryRow],
) -> Card:
    """What is said of a trained backbone: its card, with the exact command and the commit."""
    assert wish.steps is not None
    return Card(
        name=wish.name,
        objective=wish.objective,
        supervision=chosen.supervision,
        paper=spec.paper,
        data=(
            f"{images:,} images of {wish.image_size} px from the renderer of the mini suite (version "
            f"{MINI_VERSION}, seed {wish.seed}), none of them in an evaluation set"
        ),
        steps=wish.steps,
        batch_size=wish.batch_size,
        images=images,
        seed=wish.seed,
        device=f"{_in_words(find_device(wish.device))}, {wish.dtype}",
        version=VERSION,
        commit=started_at,
        command=wish.command,
        recipe=pformat(asdict(chosen.recipe), width=100),
        licence="Apache-2.0",
        history=history,
    )
