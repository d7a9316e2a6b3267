import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from layerboard.tasks.datasets.spair import SPAIR_71K_TEST
from layerboard.tasks.framework.protocols import PAPER, STANDARD
from layerboard.tasks.framework.registry import config_of
from layerboard.tasks.keypoints.task import KeypointTask
from layerboard.zoo.spec import Layer
from tests import fakes
from tests.tasks.agreement import golden

CASE = golden.cases("keypoints")["grid14_dim48"]
PARAMS = CASE["params"]
SIDE = PARAMS["image_size"]
ALPHAS = (0.1, 0.05, 0.01)


def write_pair(root, number, sizes, points, box, category="cat"):
    """One pair of images a<number> and b<number>; gives the name of its file without ending."""
    names = [f"{letter}{number}" for letter in "ab"]
    folder = root / "SPair-71k"
    (folder / "JPEGImages" / category).mkdir(parents=True, exist_ok=True)
    (folder / "PairAnnotation" / "test").mkdir(parents=True, exist_ok=True)
    fields = {"category": category, "mirror": 0}
    for side, name, size, listed in zip(("src", "trg"), names, sizes, points, strict=True):
        Image.new("RGB", size).save(folder / "JPEGImages" / category / f"{name}.jpg")
        fields |= {f"{side}_imname": f"{name}.jpg", f"{side}_imsize": [*size, 3], f"{side}_bndbox": box}
        fields[f"{side}_kps"] = listed
    stem = f"{number:06d}-{names[0]}-{names[1]}:{category}"
    (folder / "PairAnnotation" / "test" / f"{stem}.json").write_text(json.dumps(fields))
    return stem


def golden_points(number):
    """Points that both images of a golden pair show, source and target."""
    points = [np.array(PARAMS[f"{side}_keypoints"][number]) for side in ("source", "target")]
    shown = (points[0][:, 2] > 0) & (points[1][:, 2] > 0)
    return [side[shown, :2] for side in points]


def percent(expected):
    return pytest.approx([100 * expected[f"{alpha:g}"] for alpha in ALPHAS], abs=1e-6)


def of(found, kind=""):
    return [found["scores"][f"PCK@{alpha:g}{kind}"] for alpha in ALPHAS]


def test_predictions_score_as_in_the_reference(scores, tmp_path):
    expected, given = CASE["expected"]["official"], {}
    for number, length in enumerate(PARAMS["target_threshold_length"]):
        points = [side.tolist() for side in golden_points(number)]
        stem = write_pair(tmp_path, number, [(SIDE, SIDE)] * 2, points, [0, 9, length, 60])
        given[stem] = expected["predicted_xy"][number]
    (tmp_path / "points.json").write_text(json.dumps(given))
    found = scores(
        "spair", "--ground-truth", tmp_path / "SPair-71k", "--predictions", tmp_path / "points.json"
    )
    assert of(found) == of(found, " per keypoint") == percent(expected["pck_bbox"])
    assert of(found, " image size") == percent(expected["pck_image"])
    assert found["n"] == expected["keypoints"]


@pytest.mark.parametrize("folders", [True, False])
def test_features_score_as_the_clean_rule_at_whole_pixels(scores, tmp_path, folders):
    data, place = golden.build(CASE), tmp_path / "grids" / ("cat" if folders else "")
    place.mkdir(parents=True)
    for number, length in enumerate(PARAMS["target_threshold_length"]):
        source, target = golden_points(number)
        points = [(source.round().clip(0, SIDE - 1) + 0.5).tolist(), (target + 0.5).tolist()]
        write_pair(tmp_path, number, [(SIDE, SIDE)] * 2, points, [0, 0, 20, length])
        for letter, side in (("a", "source"), ("b", "target")):
            np.save(place / f"{letter}{number}.npy", data[side][number])
    found = scores("spair", "--ground-truth", tmp_path / "SPair-71k", "--features", tmp_path / "grids")
    assert of(found) == percent(CASE["expected"]["own_clean_pixel"]["pck_bbox"])
    row = found["details"]["categories"]["cat"]
    assert (row["pairs"], row["keypoints"], row["PCK@0.1"]) == (2, 22, found["scores"]["PCK@0.1"])


def test_the_paper_needs_only_what_it_draws(scores, says, tmp_path):
    drawn = set(np.random.RandomState(42).choice(40, 20).tolist())
    given = {}
    for number in range(40):
        stem = write_pair(tmp_path, number, [(40, 30)] * 2, [[[3, 4]], [[9, 9]]], [0, 0, 10, 20])
        given |= {stem: [[9, 9 if number % 2 else 11]]} if number in drawn else {}
    (tmp_path / "points.json").write_text(json.dumps(given))
    call = ("spair", "--ground-truth", tmp_path / "SPair-71k", "--predictions", tmp_path / "points.json")
    found = scores(*call, "--protocol", "paper")
    hits = [number % 2 for number in np.random.RandomState(42).choice(40, 20)]
    assert found["scores"]["PCK@0.05"] == pytest.approx(100 * np.mean(hits))
    assert f"found none for {40 - len(drawn)} of them" in says(*call).error


@pytest.fixture
def dataset(tmp_path):
    """A fake dataset and grids of its images."""
    root = fakes.write_fake_spair(tmp_path)
    rng = np.random.default_rng(1)
    for path in (root / "JPEGImages").glob("*/*.jpg"):
        place = tmp_path / "grids" / path.parent.name
        place.mkdir(parents=True, exist_ok=True)
        np.save(place / f"{path.stem}.npy", rng.standard_normal((4, 4, 3)).astype(np.float32))
    return root, tmp_path / "grids"


@pytest.mark.parametrize(("protocol", "side"), [(STANDARD, 224), (PAPER, 224), (STANDARD, 60)])
def test_scores_are_those_of_the_task(scores, dataset, protocol, side):
    root, grids = dataset
    given = ("--ground-truth", root, "--features", grids, "--protocol", protocol.name)
    found = scores("spair", *given, *(() if side == 224 else ("--config", f"view_size={side}")))
    config = config_of(protocol, "spair")
    assert (config.view.side, found["parameters"]["view_size"]) == (224, side)
    config = replace(config, view=replace(config.view, side=side))
    problem = KeypointTask(SPAIR_71K_TEST.read(root.parent), config)
    measured, layer = [], Layer(1)
    for group in problem.source.groups:
        measurer = problem.measure(group, problem.source.view)
        for position, sample in enumerate(group.samples):
            grid = np.load(grids / Path(sample.key).with_suffix(".npy"))
            measurer.update(layer, [position], torch.from_numpy(grid)[None])
        measured.append({name: values.numpy() for name, values in measurer.finish(layer).items()})
    expected = {score.metric: score.value for score in problem.score(measured).scores}
    assert found["scores"] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("grid", "words"),
    [
        (np.ones((4, 5, 3), np.float32), "as the view is square, found 4 and 5"),
        (np.ones((4, 4), np.float32), "the shape [height width dim], found [4 4]"),
        (np.ones((4, 4, 3), np.float32), "the same for all items"),
        (np.full((4, 4, 3), np.nan, np.float32), "NaN"),
        (np.arange(80.0).reshape(4, 4, 5), "grids of one width for all images of cat, found 3, 5"),
        (None, "found none for 1 (cat/2008_000001.npy)"),
    ],
)
def test_wrong_grids(says, dataset, grid, words):
    root, grids = dataset
    path = grids / "cat" / "2008_000001.npy"
    path.unlink()
    if grid is not None:
        np.save(path, grid)
    assert words in says("spair", "--ground-truth", root, "--features", grids).error


def test_wrong_predictions_and_folders(says, dataset, tmp_path):
    root, grids = dataset
    names = sorted(path.stem for path in (root / "PairAnnotation" / "test").iterdir())
    good = {name: [[1, 2], [3, 4], [5, 6]] for name in names}
    path = tmp_path / "points.json"
    for change, words in [
        ({names[0]: None}, "found none for 1 of them"),
        ({names[0]: [[1, 2]]}, "a list of 3 points [x, y] of finite numbers"),
        ({names[0]: [[1, 2], [3, 4], [5]]}, "found [[1, 2], [3, 4], [5]]"),
        ({names[0]: [[1, 2], [3, 4], [5, float("nan")]]}, "of finite numbers"),
        ({names[0]: 7}, "found 7"),
    ]:
        path.write_text(json.dumps(good | change))
        assert words in says("spair", "--ground-truth", root, "--predictions", path).error
    path.write_text("[]")
    assert "malformed (expected object" in says("spair", "--ground-truth", root, "--predictions", path).error
    given = ("spair", "--features", grids, "--ground-truth")
    assert "which does not exist" in says(*given, tmp_path / "none").error
    assert "found both" in says(*given, root, "--predictions", path).error
    assert "found neither" in says("spair", "--ground-truth", root).error
    assert "expected a folder of grids" in says("spair", "--ground-truth", root, "--features", path).error


@pytest.mark.parametrize("point", ["1" + "0" * 400, "1e999", "NaN", "1" + "0" * 5000])
def test_predicted_points_beyond_all_numbers(says, tmp_path, point):
    folder = fakes.write_fake_spair(tmp_path)
    pairs = {path.stem: [[0, 0]] * 3 for path in (folder / "PairAnnotation" / "test").iterdir()}
    text = json.dumps(pairs).replace("[[0, 0]", f"[[0, {point}]", 1)
    (tmp_path / "points.json").write_text(text)
    said = says("spair", "--ground-truth", folder, "--predictions", tmp_path / "points.json")
    assert "finite numbers" in said.error or "malformed" in said.error
