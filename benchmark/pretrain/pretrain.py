"""Joins the renderer and the objectives: renders, trains, probes, exports and installs a mini backbone."""

import hashlib
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from pprint import pformat

import torch

from benchmark.engines.device import find_device
from benchmark.engines.progress import Advance, Reporter
from benchmark.pretrain.images import held_out_images, training_images
from benchmark.scores.records import commit, package_version
from tasks.mini import MINI_VERSION
from zoo.errors import InputError
from zoo.look.precision import multiplies_bfloat16
from zoo.mini import install
from zoo.pretrain.data import Pictures, require_batch, require_share
from zoo.pretrain.export import Card, export
from zoo.pretrain.fs import require_block
from zoo.pretrain.methods import Method, method
from zoo.pretrain.optimise import Optimisation
from zoo.pretrain.probe import make_probe
from zoo.pretrain.state import Kept
from zoo.pretrain.train import HistoryRow, Schedule, train, warning
from zoo.registry import find
from zoo.spec import BackboneSpec

KNOWN = 960
"""Held-out images whose labels the probe knows."""

ASKED = 480
"""Held-out images on which it is scored."""

LICENCE = "Apache-2.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pretraining:
    """What `pretrain` was asked for.

    Attributes:
        objective: Name of the method.
        steps: Updates.
        batch_size: Images in each.
        images: Different training images.
        image_size: Their side in pixels; crops are taken from them.
        seed: Of images, weights and draws.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``.
        dtype: Of the forward: ``float32``, ``bfloat16``, or ``auto``: the latter where the device has it.
        output: Folder below which the directory of the backbone is written.
        cache: Folder of rendered images.
        workers: Processes that render.
        resume: Go on from a checkpoint.
        pooling: What the classifier of FS sees; None as the recipe says.
        no_skip: Block of FS without skip connections.
        fraction: Share of the images of each class.
        learning_rate: Peak for batches of 256; None as the recipe says.
        log_every: Steps from one row of the history to the next.
        checkpoint_every: Steps from one checkpoint to the next.
        probe_every: Steps from one probe to the next; 0 for one at the end.
        install: Copy the result into the package.
    """

    objective: str
    steps: int
    batch_size: int
    images: int
    image_size: int
    seed: int
    device: str
    dtype: str
    output: Path
    cache: Path
    workers: int
    resume: bool = True
    pooling: str | None = None
    no_skip: int | None = None
    fraction: float = 1.0
    learning_rate: float | None = None
    log_every: int = 50
    checkpoint_every: int = 500
    probe_every: int = 0
    install: bool = False

    @property
    def name(self) -> str:
        """Of the backbone: ``mini-<objective>``, and what makes a variant of it."""
        parts = [f"mini-{self.objective}"]
        if self.pooling is not None:
            parts.append(self.pooling)
        if self.no_skip is not None:
            parts.append(f"noskip{self.no_skip}")
        if self.fraction != 1:
            parts.append(f"{100 * self.fraction:g}pct")
        return "-".join(parts)

    @property
    def command(self) -> str:
        """That does the same again, without folders."""
        optional = {
            "--pooling": self.pooling,
            "--no-skip": self.no_skip,
            "--fraction": None if self.fraction == 1 else f"{self.fraction:g}",
            "--learning-rate": None if self.learning_rate is None else f"{self.learning_rate:g}",
        }
        words = f"python -m benchmark pretrain {self.objective} --steps {self.steps}".split()
        words += f"--batch-size {self.batch_size} --images {self.images}".split()
        words += f"--image-size {self.image_size} --seed {self.seed}".split()
        words += f"--device {self.device} --dtype {self.dtype}".split()
        words += [
            word for name, value in optional.items() if value is not None for word in (name, str(value))
        ]
        return shlex.join(words)


def pretrain(wish: Pretraining, report: Reporter) -> Path:
    """Train a mini backbone on rendered images.

    Returns:
        Its directory in Hugging Face format, with the training's checkpoint in the folder ``training``.

    Raises:
        InputError: Something that was asked for cannot be.
    """
    device = find_device(wish.device)
    dtype = find_dtype(wish.dtype, device)
    wish = replace(wish, dtype=str(dtype).removeprefix("torch."))
    started_at = commit(Path(__file__).parents[2])  # Hours later the checkout may be elsewhere.
    chosen = tuned(wish)
    spec = find([f"mini-{wish.objective}"])[0]
    _check(wish, spec)
    folder = wish.output / wish.name
    data = training_images(wish.seed, wish.images, wish.image_size, wish.cache, wish.workers, report)
    data = data.part(wish.fraction, wish.seed)
    held_out = held_out_images(wish.seed, KNOWN + ASKED, wish.image_size, wish.cache, wish.workers, report)
    probe = make_probe(_slice(held_out, 0, KNOWN), _slice(held_out, KNOWN, KNOWN + ASKED), spec.input_size)
    schedule = Schedule(
        steps=wish.steps,
        batch_size=wish.batch_size,
        seed=wish.seed,
        device=device,
        dtype=dtype,
        log_every=wish.log_every,
        checkpoint_every=wish.checkpoint_every,
        probe_every=wish.probe_every,
    )
    objective = chosen.objective(spec, data, wish.seed)
    with _watching(wish, report) as watcher:
        history = train(
            objective,
            data,
            schedule,
            Kept(folder / "training" / "checkpoint.pt", identity(wish, spec, chosen), wish.resume),
            watcher,
            probe,
        )
    export(
        objective.backbone, spec, _card(wish, chosen, spec, len(data), device, started_at, history), folder
    )
    if wish.install:
        install(folder, wish.name)
    return folder


def find_dtype(name: str, device: torch.device) -> torch.dtype:
    """The dtype of that name; ``auto`` is bfloat16 where the device has instructions for it.

    Raises:
        InputError: There is none of that name for trainings.
    """
    if name == "auto":
        return torch.bfloat16 if multiplies_bfloat16(device) else torch.float32
    dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16}
    if name not in dtypes:
        raise InputError(f"--dtype takes auto, float32 or bfloat16; found {name!r}")
    return dtypes[name]


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
    if wish.pooling not in (None, "cls", "mean"):
        raise InputError(f"--pooling takes cls or mean; found {wish.pooling!r}")
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
def _watching(wish: Pretraining, report: Reporter) -> Iterator[_Watcher]:
    with report.bar(f"training {wish.name}", wish.steps * wish.batch_size, "images") as advance:
        yield _Watcher(advance, report, wish.batch_size)


def _card(
    wish: Pretraining,
    chosen: Method,
    spec: BackboneSpec,
    images: int,
    device: torch.device,
    started_at: str | None,
    history: list[HistoryRow],
) -> Card:
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
        device=f"{_in_words(device)}, {wish.dtype}",
        version=package_version(),
        commit=started_at,
        command=wish.command,
        recipe=pformat(asdict(chosen.recipe), width=100),
        licence=LICENCE,
        history=history,
    )


def _in_words(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    threads = torch.get_num_threads()
    return f"{device.type}, {threads} thread{'s' * (threads > 1)}"
