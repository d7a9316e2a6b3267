"""The keypoint dataset, in SPair-71k's layout."""

from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import numpy as np

from workshop.render import facts
from workshop.render.individual import draw_individual
from workshop.render.scene import landmark_points, visible_landmarks
from workshop.render.seeds import Namespace, generator
from workshop.render.still import Still, Variation, draw_still
from workshop.render.templates import Facing, class_index
from workshop.render.writers.base import Note, Writer, draw_size, mask_box, save_jpeg, save_json, save_text

CATEGORIES = ("bicycle", "butterfly", "car", "chair", "dog", "horse", "plane", "songbird")
SIZES = ((112, 112), (120, 96), (96, 120), (112, 88), (88, 112))
_VIEW = Variation((0.7, 0.98), 1.0, 0.7, 0.2, 0.9, 0.6, (0, 4), (0, 1), 0.8)
_SLOTS = 30  # keypoint slots of an image annotation; unused ones are null


def spair_still(category: int, number: int) -> Still:
    """The picture of that number of a category; every picture shows another individual."""
    rng = generator(Namespace.KEYPOINTS, category, number)
    individual = draw_individual(rng, class_index(CATEGORIES[category]))
    return draw_still(rng, individual, draw_size(rng, SIZES), _VIEW)


def _pose(still: Still) -> str:
    facing = still.figure.individual.template.facing
    if facing is Facing.SIDE:
        return "Left" if still.figure.camera.mirror else "Right"
    return "Frontal" if facing is Facing.FRONT else "Unspecified"


def image_note(category: int, number: int, still: Still) -> Note:
    """The image annotation; a keypoint is the pixel that holds it."""
    rendering = still.rendering
    height, width = rendering.figures.shape
    box = mask_box(rendering.mask)
    points = landmark_points(still.figure).astype(int).tolist()
    slots = dict.fromkeys(map(str, range(_SLOTS)))
    slots |= {str(slot): points[slot] for slot in np.flatnonzero(visible_landmarks(rendering, still.figure))}
    return {
        "filename": f"2026_{category * facts.IMAGES_PER_CATEGORY + number + 1:06d}.jpg",
        "src_database": "layerboard mini",
        "src_annotation": "layerboard mini",
        "src_image": "rendered",
        "image_width": width,
        "image_height": height,
        "image_depth": 3,
        "category": CATEGORIES[category],
        "pose": _pose(still),
        "truncated": int(box[0] == 0 or box[1] == 0 or box[2] == width or box[3] == height),
        "occluded": int(rendering.shown[0] < 0.95),
        "difficult": 0,
        "bndbox": list(box),
        "kps": slots,
        "azimuth_id": 4 if still.figure.camera.mirror else 0,
    }


def _render(root: Path, unit: int) -> list[Note]:
    notes = []
    for number in range(facts.IMAGES_PER_CATEGORY):
        still = spair_still(unit, number)
        note = image_note(unit, number, still)
        folder, name = CATEGORIES[unit], Path(note["filename"])
        save_jpeg(root / "SPair-71k" / "JPEGImages" / folder / name, still.rendering.pixels)
        save_json(root / "SPair-71k" / "ImageAnnotation" / folder / f"{name.stem}.json", note)
        notes.append(note)
    return notes


def _points(note: Note) -> dict[str, list[int]]:
    return {slot: point for slot, point in note["kps"].items() if point is not None}


def _pair_note(pair_id: int, source: Note, target: Note) -> Note:
    src, trg = _points(source), _points(target)
    shared = [slot for slot in src if slot in trg]
    stems = [Path(note["filename"]).stem for note in (source, target)]
    boxes = source["bndbox"], target["bndbox"]
    small, large = sorted((right - left) * (bottom - top) for left, top, right, bottom in boxes)
    return {
        "pair_id": pair_id,
        "filename": f"{pair_id:06d}-{stems[0]}-{stems[1]}:{source['category']}",
        "src_imname": source["filename"],
        "trg_imname": target["filename"],
        "src_imsize": [source["image_width"], source["image_height"], 3],
        "trg_imsize": [target["image_width"], target["image_height"], 3],
        "src_bndbox": source["bndbox"],
        "trg_bndbox": target["bndbox"],
        "category": source["category"],
        "src_pose": source["pose"],
        "trg_pose": target["pose"],
        "src_kps": [src[slot] for slot in shared],
        "trg_kps": [trg[slot] for slot in shared],
        "kps_ids": shared,
        "mirror": 0,
        "viewpoint_variation": 2 if source["pose"] != target["pose"] else 0,
        # areas of the boxes are similar, different, very different
        "scale_variation": sum(large > limit * small for limit in (1.6, 2.6)),
        # 0 neither, 1 the source, 2 the target, 3 both
        "truncation": source["truncated"] + 2 * target["truncated"],
        "occlusion": source["occluded"] + 2 * target["occluded"],
    }


def _category_pairs(category: int, notes: Sequence[Note]) -> list[tuple[Note, Note]]:
    """Ordered pairs with enough shared keypoints, drawn without replacement."""
    shown = (note for note in notes if note["category"] == CATEGORIES[category])
    able = [
        (source, target)
        for source, target in permutations(shown, 2)
        if len(_points(source).keys() & _points(target).keys()) >= facts.LEAST_POINTS
    ]
    order = generator(Namespace.KEYPOINT_PAIRS, category).permutation(len(able))[: facts.PAIRS_PER_CATEGORY]
    return [able[int(i)] for i in sorted(order)]


def _finish(root: Path, notes: Sequence[Note]) -> None:
    pairs = [pair for category in range(facts.CATEGORIES) for pair in _category_pairs(category, notes)]
    names = []
    for pair_id, (source, target) in enumerate(pairs, 1):
        note = _pair_note(pair_id, source, target)
        names.append(note["filename"])
        save_json(root / "SPair-71k" / "PairAnnotation" / "test" / f"{names[-1]}.json", note)
    save_text(root / "SPair-71k" / "Layout" / "large" / "test.txt", names)


WRITER = Writer("spair", (facts.IMAGES_PER_CATEGORY,) * facts.CATEGORIES, _render, _finish)
