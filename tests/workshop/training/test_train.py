"""Short trainings: losses fall, features get better, and interruptions leave no trace."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from layerboard.zoo.errors import InputError
from tests.workshop.training.toys import SIDE, Notes, shapes, toy, toy_method
from workshop.training.augment import TrainingView, augment
from workshop.training.data import seeded
from workshop.training.network import cosines, tokens
from workshop.training.objective import Objective, Optimisation, cosine_schedule, make_optimiser
from workshop.training.probe import make_probe
from workshop.training.train import HistoryRow, Schedule, TrainingCheckpoint, train, warning

DATA, HELD_OUT = shapes(360), shapes(120, seed=1)
PROBE = make_probe(DATA, HELD_OUT, SIDE)
SHORT = Schedule(steps=4, batch_size=8, log_every=1, checkpoint_every=2)


def quick(name: str, rate: float, **changes: Any) -> Objective:
    """A toy objective that learns fast."""
    how = replace(toy_method(name).recipe.optimisation, learning_rate=rate)
    return toy(name, DATA, optimisation=how, **changes)


_TAUGHT: dict[str, tuple[int, int, float]] = {
    "fs": (60, 24, 4e-3),
    "clip": (60, 48, 4e-3),  # tells captions of a batch apart
    "resnet": (40, 24, 0.1),
}
"""Steps, images of a batch and learning rate, where labels or captions teach."""


@pytest.mark.parametrize(
    ("name", "vectors", "fall"),
    [
        ("fs", "knn_cls", 0.5),
        pytest.param("clip", "knn_cls", 0.5, marks=pytest.mark.slow),
        pytest.param("resnet", "knn_mean", 0.2, marks=pytest.mark.slow),
    ],
)
def test_losses_fall_and_features_get_better_than_untrained_ones(
    name: str, vectors: str, fall: float, tmp_path: Path
) -> None:
    steps, batch, rate = _TAUGHT[name]
    objective = quick(name, rate)
    before = PROBE(objective)
    schedule = Schedule(steps=steps, batch_size=batch, log_every=5)
    checkpoint = TrainingCheckpoint(tmp_path / "checkpoint.pt", name)
    history = train(objective, DATA, schedule, checkpoint, Notes(), PROBE)
    first, last = (sum(row["loss"] for row in rows) / 2 for rows in (history[:2], history[-2:]))
    assert last < first - fall
    assert all(warning(row) is None for row in history)
    assert history[-1][vectors] > before[vectors] + 0.05


_ALONE: dict[str, tuple[int, int, float, dict[str, Any]]] = {
    "dino": (300, 48, 1e-3, {"momentum": 0.98}),
    "moco": (120, 24, 3e-3, {"momentum": 0.95}),
    "mae": (300, 24, 3e-3, {}),
    "beit": (150, 48, 3e-3, {}),
}
"""Steps, images of a batch, learning rate and changes of the recipe, where images alone teach."""


def found_again(objective: Objective) -> float:
    """Share of unseen pictures whose class token is nearest to that of another view of the same picture."""
    objective.eval()
    view = TrainingView(side=SIDE, scale=(0.6, 1.0), jitter=1.0, brightness=0.3, contrast=0.3, hue=0.05)
    pixels = shapes(360, seed=2).take(np.arange(360)).images
    one, other = (objective.normalised(augment(pixels, view, seeded("views", i))) for i in (0, 1))
    with torch.no_grad():
        first, second = (tokens(objective.backbone, images)[:, 0] for images in (one, other))
    objective.train()
    near = cosines(first - first.mean(0), second - second.mean(0)).argmax(1)
    return float((near == torch.arange(len(near))).float().mean())


@pytest.mark.slow
@pytest.mark.parametrize("name", _ALONE)
def test_without_labels_pictures_know_themselves_better_than_untrained(name: str, tmp_path: Path) -> None:
    steps, batch, rate, changes = _ALONE[name]
    objective = quick(name, rate, **changes)
    before = found_again(objective)
    schedule = Schedule(steps=steps, batch_size=batch, log_every=steps)
    train(objective, DATA, schedule, TrainingCheckpoint(tmp_path / "checkpoint.pt", name), Notes())
    assert found_again(objective) > before + 0.03


def run(
    name: str, path: Path, watcher: Notes | None = None, schedule: Schedule = SHORT
) -> tuple[Objective, list[HistoryRow]]:
    objective = toy(name, DATA)
    return objective, train(objective, DATA, schedule, TrainingCheckpoint(path, name), watcher or Notes())


@pytest.mark.parametrize("name", ["dino", "resnet"])
def test_an_interrupted_training_goes_on_as_if_never_stopped(name: str, tmp_path: Path) -> None:
    whole, expected = run(name, tmp_path / "whole.pt")
    with pytest.raises(KeyboardInterrupt):
        run(name, tmp_path / "checkpoint.pt", Notes(stop_after=3))
    notes = Notes()
    resumed, found = run(name, tmp_path / "checkpoint.pt", notes)
    assert notes.steps == [2, 3, 4]
    assert found == expected
    for key, tensor in whole.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[key]), key


@pytest.mark.parametrize("name", ["fs", "resnet"])
def test_training_in_bfloat16_leaves_weights_and_config_as_in_float32(name: str, tmp_path: Path) -> None:
    exact, expected = run(name, tmp_path / "exact.pt")
    rounded, found = run(name, tmp_path / "rounded.pt", schedule=replace(SHORT, dtype=torch.bfloat16))
    assert [row["loss"] for row in found] == pytest.approx([row["loss"] for row in expected], rel=0.08)
    assert found != expected
    assert all(weight.dtype == torch.float32 for weight in rounded.parameters())
    assert rounded.backbone.config.to_dict() == exact.backbone.config.to_dict()


def test_a_finished_training_is_not_run_again(tmp_path: Path) -> None:
    _, expected = run("fs", tmp_path / "checkpoint.pt")
    notes = Notes()
    _, found = run("fs", tmp_path / "checkpoint.pt", notes)
    assert notes.steps == [4]
    assert found == expected


def test_seeds_make_trainings_differ_and_come_again(tmp_path: Path) -> None:
    schedules = SHORT, SHORT, replace(SHORT, seed=1)
    histories = [
        run("mae", tmp_path / f"{number}.pt", schedule=schedule)[1]
        for number, schedule in enumerate(schedules)
    ]
    assert histories[0] == histories[1]
    assert histories[0] != histories[2]


def test_checkpoints_that_do_not_fit(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    run("fs", path)
    objective = toy("fs", DATA)
    with pytest.raises(
        InputError, match=r"a checkpoint of another training \(fs\), this one is other; choose"
    ):
        train(objective, DATA, SHORT, TrainingCheckpoint(path, "other"), Notes())
    train(objective, DATA, SHORT, TrainingCheckpoint(path, "other", resume=False), Notes())
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(InputError, match="is a damaged checkpoint; start over with --no-resume"):
        train(objective, DATA, SHORT, TrainingCheckpoint(path, "other"), Notes())


def test_a_training_that_diverges_says_so(tmp_path: Path) -> None:
    objective = toy("fs", DATA)
    objective.get_parameter("classifier.bias").data.fill_(float("nan"))
    with pytest.raises(InputError, match="diverged: the loss is nan at step 1; choose a smaller rate"):
        train(objective, DATA, SHORT, TrainingCheckpoint(tmp_path / "checkpoint.pt", ""), Notes())


def test_the_probe_is_asked_now_and_then_and_at_the_end(tmp_path: Path) -> None:
    schedule = replace(SHORT, steps=6, log_every=2, probe_every=4)
    objective = toy("fs", DATA)
    history = train(
        objective, DATA, schedule, TrainingCheckpoint(tmp_path / "c.pt", ""), Notes(), lambda _: {"knn": 0.5}
    )
    assert [row["step"] for row in history] == [2, 4, 6]
    assert ["knn" in row for row in history] == [False, True, True]
    assert objective.training


def test_signs_of_collapse() -> None:
    healthy = {"step": 9.0, "spread": 0.8, "entropy": 0.6, "used": 0.9}
    assert warning(healthy) is None
    assert "nearly the same for all images" in str(warning(healthy | {"spread": 0.01}))
    assert "one prototype" in str(warning(healthy | {"used": 0.01}))
    assert "cannot tell prototypes apart" in str(warning(healthy | {"entropy": 1.0}))


def test_learning_rates_rise_and_fall() -> None:
    how = Optimisation(learning_rate=1.0, weight_decay=0.1, final_weight_decay=0.3, warmup=0.1, floor=0.01)
    rates = [how.rate(step, 100, 256) for step in range(100)]
    assert rates[:2] == [0.1, 0.2]
    assert rates[9] == rates[10] == 1
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert 0.01 < rates[-1] < 0.011
    assert how.rate(9, 100, 64) == 0.5
    assert replace(how, kind="sgd").rate(9, 100, 64) == 0.25
    assert how.decay(0, 100) == pytest.approx(0.1)
    assert how.decay(50, 100) == pytest.approx(0.2)
    assert cosine_schedule(2.0, 1.0, 1.0) == 1


def test_norms_biases_tokens_and_positions_are_not_decayed() -> None:
    objective = toy("mae", DATA)
    groups = {
        group["decayed"]: group["params"]
        for group in make_optimiser(objective, Optimisation(learning_rate=1)).param_groups
    }
    free = {id(weight) for weight in groups[False]}
    names = {key for key, weight in objective.named_parameters() if id(weight) in free}
    assert {"backbone.embeddings.cls_token", "mask_token", "backbone.layernorm.weight"} <= names
    assert all(weight.ndim > 1 for weight in groups[True])
    assert "backbone.embeddings.position_embeddings" not in names
    assert not objective.backbone.embeddings.position_embeddings.requires_grad
