"""What each objective does to its batch, its networks and their gradients."""

import copy
import math
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import Tensor

from layerboard.zoo.errors import InputError
from tests.workshop.training.toys import SIDE, shapes, toy, toy_method, toy_spec
from workshop.training import network
from workshop.training.clip import ImageText
from workshop.training.data import Examples, seeded
from workshop.training.dino import SelfDistillation
from workshop.training.methods import METHODS, method
from workshop.training.moco import MomentumContrast
from workshop.training.objective import Moment, Objective

DATA = shapes(60)
NAMES = tuple(one.name for one in METHODS)


@cache
def _made(name: str) -> Objective:
    return toy(name, DATA)


def fresh(name: str) -> Objective:
    """A copy of the toy objective of a name, which is made once."""
    return copy.deepcopy(_made(name))


def batch(count: int = 6) -> Examples:
    return DATA.take(torch.arange(count).numpy())


def moment(step: int = 0, steps: int = 10) -> Moment:
    return Moment(step, steps, seeded("test", step))


def learn(objective: Objective, step: int = 0) -> None:
    """One step of plain gradient descent with all that an objective does around it."""
    objective.train()
    objective(batch(), moment(step))[0].backward()
    objective.before_update(moment(step))
    with torch.no_grad():
        for weight in objective.parameters():
            if weight.grad is not None:
                weight -= 0.1 * weight.grad
    objective.after_update(moment(step))


@pytest.mark.parametrize("name", NAMES)
def test_every_weight_that_is_exported_learns_or_is_fixed_on_purpose(name: str) -> None:
    objective = fresh(name)
    objective.train()
    loss, metrics = objective(batch(), moment())
    loss.backward()
    assert loss.isfinite()
    assert all(not value.requires_grad and value.ndim == 0 for value in metrics.values())
    trained = objective.student if isinstance(objective, SelfDistillation) else objective.backbone
    dead = {key for key, weight in trained.named_parameters() if weight.grad is None}
    fixed = {
        "moco": {
            "embeddings.position_embeddings",
            "embeddings.patch_embeddings.projection.weight",
            "embeddings.patch_embeddings.projection.bias",
        },
        "mae": {"embeddings.position_embeddings"},
    }
    if name == "clip":  # As in the paper, patch tokens of the last block reach nothing, but its weights do.
        assert not dead
    assert dead == fixed.get(name, set())


@pytest.mark.parametrize("name", [name for name in NAMES if name != "dino"])  # whose centre moves, too
def test_a_small_step_down_the_gradient_lowers_the_loss(name: str) -> None:
    objective = fresh(name).train()
    loss, _ = objective(batch(24), moment())
    loss.backward()
    weights = [weight for weight in objective.parameters() if weight.grad is not None]
    slope = sum(float(weight.grad.square().sum()) for weight in weights)  # type: ignore[union-attr]
    with torch.no_grad():
        for weight in weights:
            weight -= 0.02 * float(loss) / slope * weight.grad
    assert objective(batch(24), moment())[0] < loss


@pytest.mark.parametrize("name", NAMES)
def test_losses_are_nearly_the_same_in_autocast(name: str) -> None:
    objective = fresh(name)
    objective.train()
    exact = objective(batch(), moment())[0].detach()
    other = fresh(name).train()
    with torch.autocast("cpu", torch.bfloat16):
        rounded = other(batch(), moment())[0]
    rounded.backward()
    torch.testing.assert_close(rounded.detach().float(), exact, rtol=0.02, atol=0)


@pytest.mark.parametrize("name", NAMES)
def test_weights_follow_from_the_seed(name: str) -> None:
    state = torch.random.get_rng_state()
    one = _made(name).state_dict()
    again, other = (toy(name, DATA, seed).state_dict() for seed in (0, 1))
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(one[key], again[key]) for key in one)
    assert any(not torch.equal(one[key], other[key]) for key in one)


def test_dino_cuts_large_and_small_crops() -> None:
    objective = toy("dino", DATA, small_views=3)
    assert isinstance(objective, SelfDistillation)
    large, small = objective.crops(batch(6), moment())
    assert large.shape == (12, 3, 32, 32)
    assert small.shape == (18, 3, 16, 16)
    assert not torch.equal(large[:6], large[6:])


def test_dino_without_small_crops() -> None:
    assert toy("dino", DATA, small_views=0)(batch(), moment())[0].isfinite()


def test_dinos_teacher_follows_and_has_no_gradient() -> None:
    objective = fresh("dino")
    assert isinstance(objective, SelfDistillation)
    before = copy.deepcopy(objective.backbone.state_dict())
    learn(objective, step=5)
    momentum = 1 - (1 - 0.99) / 2  # half-way on the cosine from 0.99 to 1
    for key, weight in objective.backbone.named_parameters():
        assert weight.grad is None
        student = objective.student.get_parameter(key)
        torch.testing.assert_close(weight, momentum * before[key] + (1 - momentum) * student)
    head = objective.teacher_head.directions.weight
    assert head.grad is None
    assert not torch.equal(head, objective.student_head.directions.weight)


def test_dinos_centre_is_the_average_of_the_teachers_outputs() -> None:
    objective = fresh("dino")
    assert isinstance(objective, SelfDistillation)
    outputs: list[Tensor] = []
    objective.teacher_head.register_forward_hook(lambda *found: outputs.append(found[2]))
    objective(batch(), moment())
    torch.testing.assert_close(objective.centre, 0.1 * outputs[0].mean(0))


def test_dinos_prototypes_wait() -> None:
    objective = toy("dino", DATA, frozen=0.5)
    assert isinstance(objective, SelfDistillation)
    before = objective.student_head.directions.weight.clone()
    learn(objective, step=0)
    assert torch.equal(before, objective.student_head.directions.weight)
    learn(objective, step=5)
    assert not torch.equal(before, objective.student_head.directions.weight)


def test_moco_moves_its_momentum_network_and_holds_its_patches() -> None:
    objective = fresh("moco")
    assert isinstance(objective, MomentumContrast)
    before = copy.deepcopy(objective.momentum_backbone.state_dict())
    learn(objective, step=5)
    for key, weight in objective.momentum_backbone.named_parameters():
        assert weight.grad is None
        fast = objective.backbone.get_parameter(key)
        torch.testing.assert_close(weight, 0.995 * before[key] + 0.005 * fast)
    embeddings = "embeddings.patch_embeddings.projection.weight", "embeddings.position_embeddings"
    for key in embeddings:
        assert torch.equal(objective.backbone.get_parameter(key), before[key])
    learned = "layers.0.mlp.fc1.weight"
    assert not torch.equal(objective.backbone.get_parameter(learned), before[learned])


def test_moco_of_chance_has_the_loss_of_chance() -> None:
    objective = toy("moco", DATA, temperature=1e6)
    loss = objective(batch(6), moment())[0]
    torch.testing.assert_close(loss / (2 * 2 * 1e6), torch.tensor(math.log(6)), rtol=1e-4, atol=0)


def test_clip_matches_each_image_with_its_caption() -> None:
    objective = fresh("clip")
    assert isinstance(objective, ImageText)
    points = torch.eye(6, 48)
    objective.embed_images = lambda images: points  # type: ignore[method-assign]
    objective.embed_captions = lambda captions: points  # type: ignore[method-assign]
    loss, metrics = objective(batch(6), moment())
    expected = math.log(1 + 5 * math.exp(-1 / 0.07))
    torch.testing.assert_close(loss, torch.tensor(expected), rtol=1e-2, atol=1e-7)
    assert metrics["accuracy"] == 1


def test_clips_scale_is_bounded() -> None:
    objective = fresh("clip")
    assert isinstance(objective, ImageText)
    objective.log_scale.data.fill_(20.0)
    objective.after_update(moment())
    torch.testing.assert_close(objective.log_scale.exp(), torch.tensor(100.0), check_dtype=False)


def test_fs_by_the_average_does_not_depend_on_the_class_token_alone() -> None:
    one, other = fresh("fs"), toy("fs", DATA, pooling="mean")
    pooled: list[Tensor] = []
    for objective in (one, other):
        classifier = objective.get_submodule("classifier")
        classifier.register_forward_pre_hook(lambda _, inputs: pooled.append(inputs[0]))
        objective(batch(), moment())
    tokens = network.tokens(one.backbone, one.view(batch(), toy_method("fs").recipe.view, moment()))
    torch.testing.assert_close(pooled[0], tokens[:, 0])
    torch.testing.assert_close(pooled[1], tokens[:, 1:].mean(1))


def test_a_block_without_skips_hands_on_only_what_it_made() -> None:
    objective = toy("fs", DATA, no_skip=2)
    assert objective.backbone.config.blocks_without_skip == [2]
    block = objective.backbone.layers[1]
    hidden = torch.randn(2, 17, 48, generator=seeded(0))
    attended = block.attention(block.layernorm_before(hidden))[0]
    torch.testing.assert_close(block(hidden), block.mlp(block.layernorm_after(attended)))
    with pytest.raises(InputError, match="mini-fs has blocks 1 to 3; there is no block 4"):
        toy("fs", DATA, no_skip=4)


def test_options_of_other_methods_are_refused() -> None:
    with pytest.raises(InputError, match="dino has no option 'no-skip'; leave it out, or train fs"):
        method("dino").tuned(no_skip=3)
    with pytest.raises(InputError, match="no objective is called 'simclr'; there are fs, clip"):
        method("simclr")


def test_positions_are_sines_of_rows_and_columns() -> None:
    table = network.sine_positions(4, 48)
    assert table.shape == (1, 17, 48)
    assert not table[0, 0].any()
    grid = table[0, 1:].view(4, 4, 48)
    assert torch.equal(grid[:, 2, :24], grid[:1, 2, :24].expand(4, -1))
    assert torch.equal(grid[1, :, 24:], grid[1, :1, 24:].expand(4, -1))
    torch.testing.assert_close(grid[0, 3, 0], torch.tensor(math.sin(3)))
    assert len({tuple(row) for row in table[0].tolist()}) == 17


def test_spread_tells_a_collapse() -> None:
    random = torch.randn(200, 64, generator=seeded(0))
    assert abs(network.spread(random) - 1) < 0.05
    assert network.spread(random * 0 + 3) < 1e-6


@pytest.mark.parametrize("name", NAMES)
def test_untrained_features_differ_from_image_to_image(name: str) -> None:
    spec = replace(toy_spec(name), input_size=SIDE)
    model = network.fresh(spec, seed=0).eval()
    found = network.pooled_vectors(model, torch.randn(8, 3, SIDE, SIDE, generator=seeded(0)))
    assert set(found) == ({"mean"} if name == "resnet" else {"cls", "mean"})
    for vectors in found.values():
        assert vectors.shape == (8, spec.width)
        assert network.spread(vectors) > 0.02
