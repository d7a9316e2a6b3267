"""Pictures: repeatable, never shared by training and evaluation, and true to their annotations.

How they are drawn is held by the packaged ones, with which test_layouts.py compares.
"""

from collections.abc import Callable
from hashlib import sha256
from itertools import product

import numpy as np
import pytest

from workshop.render import facts
from workshop.render.individual import GROUNDS, HABITS, draw_individual
from workshop.render.lighting import draw_light
from workshop.render.sample import sample_image
from workshop.render.scene import (
    Camera,
    Figure,
    figure_bounds,
    landmark_points,
    moved,
    render,
    visible_landmarks,
)
from workshop.render.seeds import ENTROPY, Namespace, generator
from workshop.render.still import Still, Variation, draw_still
from workshop.render.templates import TEMPLATES, class_names
from workshop.render.textures import TEXTURES
from workshop.render.writers.base import annotation, outlines
from workshop.render.writers.coco import object_scene
from workshop.render.writers.davis import video_frames
from workshop.render.writers.imagenet import imagenet_still
from workshop.render.writers.partimagenet import part_still
from workshop.render.writers.revisitop import retrieval_still, shots
from workshop.render.writers.spair import spair_still


def _draw(class_index: int, number: int, size: tuple[int, int] = (72, 72)) -> Still:
    rng = generator(Namespace.TRAINING, 10**6 + class_index, number)
    return draw_still(rng, draw_individual(rng, class_index), size, Variation())


def _digest(pixels: np.ndarray) -> str:
    return sha256(np.ascontiguousarray(pixels).tobytes()).hexdigest()


def test_names_agree() -> None:
    assert len(class_names) == len(set(class_names)) == facts.CLASSES
    assert [(each.wnid, each.name, each.interchangeable) for each in TEMPLATES] == [*facts.MINI_CLASSES]
    assert sorted({each.wnid for each in TEMPLATES}) == [each.wnid for each in TEMPLATES]
    assert len({template.supercategory for template in TEMPLATES}) >= 6
    kinds = {part.kind for template in TEMPLATES for part in template.parts}
    assert {"head", "body", "leg", "wing", "tail", "wheel", "window"} <= kinds
    for template in TEMPLATES:
        names = [part.name for part in template.parts]
        assert len(names) == len(set(names))
        assert len(template.landmarks) == len(set(template.landmarks)) >= 6
        for i, part in enumerate(template.parts):
            assert part.parent in ("", *names[:i])


def test_every_class_has_a_habit_of_its_own_of_known_textures_and_grounds() -> None:
    assert tuple(HABITS) == class_names
    for habit in HABITS.values():
        assert habit.ground in GROUNDS
        assert set(habit.textures) <= set(TEXTURES)
        assert all(0 <= hue < 1 for hue in habit.coat)
    assert len({(habit.coat, habit.textures, habit.ground) for habit in HABITS.values()}) == len(HABITS)


EVALUATION: list[Callable[[], np.ndarray]] = [
    lambda: imagenet_still(Namespace.IMAGENET_VAL, 3, 1).rendering.pixels,
    lambda: retrieval_still(shots()[5]).rendering.pixels,
    lambda: video_frames(0)[-1].pixels,
    lambda: spair_still(2, 1).rendering.pixels,
    lambda: object_scene(4)[0].pixels,
    lambda: part_still(7).rendering.pixels,
    lambda: sample_image(11).pixels,
]


@pytest.mark.parametrize("draw", EVALUATION)
def test_a_picture_is_drawn_again_bit_by_bit(draw: Callable[[], np.ndarray]) -> None:
    assert _digest(draw()) == _digest(draw())


def test_training_and_evaluation_streams_are_disjoint() -> None:
    def state(*key: int) -> bytes:
        return np.random.SeedSequence(ENTROPY, spawn_key=key).generate_state(8).tobytes()

    keys = (0, 1, 2, 2**32 + 1)
    streams = [
        {state(int(namespace), *rest) for length in (1, 2) for rest in product(keys, repeat=length)}
        for namespace in Namespace
    ]
    assert len(set.union(*streams)) == sum(len(stream) for stream in streams)
    first = generator(Namespace.TRAINING, 5).bit_generator.random_raw()
    assert first == np.random.PCG64(np.random.SeedSequence(ENTROPY, spawn_key=(1, 5))).random_raw()


def test_sample_image() -> None:
    image = sample_image(3, class_index=class_names.index("elephant"), size=(64, 48))
    assert image.pixels.shape == (48, 64, 3)
    assert image.pixels.dtype == np.uint8
    assert image.caption == ("a mottled purple and yellow elephant facing right, on a zigzag pink background")
    assert {sample_image(seed).class_index for seed in range(40)} > {sample_image(0).class_index}


@pytest.mark.parametrize("class_index", range(facts.CLASSES))
def test_visible_landmarks_lie_in_the_mask(class_index: int) -> None:
    seen_somewhere = np.zeros(len(TEMPLATES[class_index].landmarks), bool)
    for number in range(4):
        still = _draw(class_index, number)
        visible = visible_landmarks(still.rendering, still.figure)
        points = landmark_points(still.figure)[visible].astype(int)
        assert still.rendering.mask[points[:, 1], points[:, 0]].all()
        seen_somewhere |= visible
    assert seen_somewhere.mean() >= 0.8


def test_landmarks_behind_an_occluder_or_outside_are_not_visible() -> None:
    still = _draw(class_names.index("car"), 0)
    light, rng = draw_light(generator(Namespace.TRAINING, 1), 0.5), generator(Namespace.TRAINING, 2)
    backdrop = np.full((3, 72, 72), 0.5, np.float32)
    outside = moved(still.figure, 500, 0)
    assert not visible_landmarks(render(rng, backdrop, (outside,), light), outside).any()
    behind = render(rng, backdrop, (still.figure, still.figure), light)
    assert not visible_landmarks(behind, still.figure).any()
    assert behind.shown[0] < 0.05
    assert behind.shown[1] == 1


def test_a_mirrored_figure_keeps_its_landmarks_on_the_same_parts() -> None:
    individual = draw_individual(generator(Namespace.TRAINING, 9), class_names.index("horse"))
    angles = (0.0,) * len(individual.template.parts)
    right, left = (Figure(individual, angles, Camera(mirror=mirror), 50, (0, 0)) for mirror in (False, True))
    np.testing.assert_allclose(landmark_points(right) * [-1, 1], landmark_points(left))
    assert figure_bounds(right)[2] == pytest.approx(-figure_bounds(left)[0])


def test_outlines_and_runs_of_a_mask_with_a_hole() -> None:
    mask = np.zeros((5, 6), bool)
    mask[1:4, 1:5] = True
    assert annotation(mask, 1)["segmentation"] == [[1, 1, 5, 1, 5, 4, 1, 4]]
    mask[2, 2] = False
    assert len(outlines(mask)) == 2
    holed = annotation(mask, 1)["segmentation"]
    assert holed == annotation(mask, 1, crowd=True)["segmentation"]
    assert holed["size"] == [5, 6]
    assert sum(holed["counts"]) == mask.size
    assert holed["counts"][:2] == [6, 3]
    full = annotation(np.ones((2, 2), bool), 1, crowd=True)
    assert full["segmentation"] == {"counts": [0, 4], "size": [2, 2]}
