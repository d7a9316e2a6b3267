"""Renders, trains, probes, exports and installs a mini backbone."""

import hashlib
import shutil
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from pprint import pformat
from typing import Any

import torch

from layerboard.benchmark.engines.choose import find_device
from layerboard.benchmark.engines.progress import Advance, Reporter
from layerboard.benchmark.plan.location import require_writable
from layerboard.leaderboards.records.files import VERSION
from layerboard.mini import checkpoints
from layerboard.zoo.atomic import remove_leftovers
from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import BackboneSpec
from workshop.pretrain.images import HELD_OUT, Wanted, rendered
from workshop.pretrain.options import Pretraining, TrainingDtype
from workshop.render.facts import MINI_VERSION
from workshop.training.data import Pictures, require_batch, require_share
from workshop.training.export import model_card, save_backbone
from workshop.training.fs import require_block
from workshop.training.methods import Method, method
from workshop.training.probe import make_probe
from workshop.training.train import HistoryRow, Schedule, TrainingCheckpoint, train, warning

KNOWN = 960  # held-out images with labels for the probe
ASKED = 480  # held-out images on which the probe is scored


def pretrain(wish: Pretraining, report: Reporter) -> Path:
    """Train a mini backbone on rendered images; returns its directory in Hugging Face format.

    The checkpoint of the training is in the folder ``training`` below it. Raises InputError for impossible
    options, and OSError if the disk is full.
    """
    device = find_device(wish.device)
    dtype = find_dtype(wish.dtype, device)
    started_at = commit(Path(__file__).parents[2])  # Hours later, the checkout may have changed.
    chosen = tuned(wish)
    steps = wish.steps or chosen.steps
    wish = replace(wish, dtype="bfloat16" if dtype is torch.bfloat16 else "float32", steps=steps)
    spec = find([wish.entry])[0]
    require_share(wish.fraction)
    require_batch(wish.batch_size, round(wish.fraction * wish.images))
    if wish.no_skip is not None:
        require_block(spec, wish.no_skip)
    require_writable(wish.output, wish.cache)
    folder = wish.output / wish.name
    remove_leftovers([folder])
    wanted = Wanted(wish.seed, 0, wish.images, wish.image_size)
    data = rendered(wanted, wish.cache, wish.workers, report).part(wish.fraction, wish.seed)
    others = replace(wanted, first=HELD_OUT, count=KNOWN + ASKED)
    held_out = rendered(others, wish.cache, wish.workers, report)
    probe = make_probe(_slice(held_out, 0, KNOWN), _slice(held_out, KNOWN, KNOWN + ASKED), spec.input_size)
    options = ("batch_size", "seed", "log_every", "checkpoint_every", "probe_every")
    schedule = Schedule(steps=steps, device=device, dtype=dtype, **_taken(wish, *options))
    path = folder / "training" / "checkpoint.pt"
    checkpoint = TrainingCheckpoint(path, training_identity(wish, spec, chosen), wish.resume)
    objective = chosen.objective(spec, data, wish.seed)
    with report.bar(f"training {wish.name}", steps * wish.batch_size, "images") as advance:
        watcher = _Watcher(advance, report, wish.batch_size)
        history = train(objective, data, schedule, checkpoint, watcher, probe)
    card = _card(wish, chosen, spec.paper, len(data), started_at, history[-1])
    save_backbone(objective.backbone, spec, card, history, folder)
    if wish.install:
        install(folder, wish.name)
    return folder


def install(folder: Path, name: str) -> Path:
    """Copy the directory of a trained backbone into the package, from which the mini suite loads it.

    Raises InputError: the package cannot be written.
    """
    target = checkpoints.WEIGHTS / name
    try:
        target.mkdir(exist_ok=True)
        # The weights come last: a directory counts as a checkpoint from then on.
        for file in sorted(folder.glob("*.*"), key=lambda path: path.name == "model.safetensors"):
            shutil.copyfile(file, target / file.name)
        (target / checkpoints.SUMS).write_bytes(checkpoints.sums(target))
    except OSError as error:
        raise InputError(
            f"{target} cannot be written: {error.strerror}; install without --install"
        ) from error
    return target


def _taken(wish: Pretraining, *names: str) -> dict[str, Any]:
    return {name: getattr(wish, name) for name in names}


def multiplies_bfloat16(device: torch.device) -> bool:
    """Whether a device has instructions for products in bfloat16, which make training about twice as fast.

    CUDA devices and x86 processors (AVX-512 BF16, AMX) are checked; an older torch does not know those of
    processors.
    """
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return False
    capabilities: dict[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(capabilities.get(name) for name in ("avx512_bf16", "amx_bf16"))


def find_dtype(name: TrainingDtype, device: torch.device) -> torch.dtype:
    """The dtype of that name; ``auto`` is bfloat16 if the device has instructions for it."""
    fast = multiplies_bfloat16(device) if name == "auto" else name == "bfloat16"
    return torch.bfloat16 if fast else torch.float32


def training_identity(wish: Pretraining, spec: BackboneSpec, chosen: Method) -> str:
    """Identity of a training: its command, and a digest of everything else that determines its course."""
    facts = (MINI_VERSION, spec.stages, spec.heads, spec.mean, spec.std, chosen.recipe)
    return f"{wish.command} [{hashlib.sha256(repr(facts).encode()).hexdigest()[:8]}]"


def tuned(wish: Pretraining) -> Method:
    """The method with the requested recipe; raises InputError for an option that it lacks."""
    chosen = method(wish.objective)
    if wish.fraction != 1 and wish.objective not in ("fs", "resnet"):
        raise InputError(f"--fraction is for methods that learn labels (fs, resnet), not {wish.objective}")
    if wish.narrow and wish.objective != "fs":
        raise InputError(f"--narrow is for fs, not {wish.objective}")
    changes: dict[str, object] = _taken(wish, "pooling", "no_skip")
    if wish.learning_rate is not None:
        changes["optimisation"] = replace(chosen.recipe.optimisation, learning_rate=wish.learning_rate)
    return chosen.tuned(**{name: value for name, value in changes.items() if value is not None})


def _slice(pictures: Pictures, start: int, stop: int) -> Pictures:
    return Pictures(pictures.images[start:stop], pictures.labels[start:stop], pictures.captions[start:stop])


@dataclass
class _Watcher:
    """Reports a training: a bar of images, and a line for each probe and each sign of collapse."""

    advance: Advance
    report: Reporter
    batch_size: int
    done: int = 0

    def stepped(self, step: int) -> None:
        self.advance((step - self.done) * self.batch_size)
        self.done = step

    def noted(self, row: HistoryRow) -> None:
        numbers = ", ".join(f"{name} {value:.4g}" for name, value in row.items() if name != "step")
        self.report.say(f"step {int(row['step'])}: {numbers}")
        if (text := warning(row)) is not None:
            self.report.say(f"warning: {text}")


def commit(checkout: Path) -> str | None:
    """Commit of a git checkout, read from its files; None if there is no checkout."""
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


def _card(
    wish: Pretraining, chosen: Method, paper: str, images: int, started_at: str | None, last: HistoryRow
) -> str:
    device, threads = find_device(wish.device), torch.get_num_threads()
    cpu = f"{device.type}, {threads} thread{'s' * (threads > 1)}"
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else cpu
    seen = wish.batch_size * int(last["step"])
    facts = {
        "objective": f"{wish.objective} ({paper})",
        "learned from": chosen.supervision,
        "data": (
            f"{images:,} images of {wish.image_size} px from the renderer of the mini suite (version "
            f"{MINI_VERSION}, seed {wish.seed}), none of them in an evaluation set"
        ),
        "steps": f"{wish.steps:,}",
        "batch": f"{wish.batch_size:,}",
        "images seen": f"{seen:,} ({seen / images:.1f} epochs of {images:,})",
        "seed": wish.seed,
        "device": f"{where}, {wish.dtype}",
        "package": f"layerboard {VERSION}, commit {started_at or 'not known'}",
        "weights": "float16",
    }
    facts |= {f"last {name}": f"{value:.4g}" for name, value in last.items() if name != "step"}
    return model_card(wish.name, facts, wish.command, pformat(asdict(chosen.recipe), width=100))
