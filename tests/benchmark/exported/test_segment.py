from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layerboard.benchmark.exported.segment import Judged, score_by_pixels
from layerboard.tasks.segmentation.capi import CapiConfig, CapiTask, pixels_of
from tests.benchmark.exported.conftest import Scores
from tests.benchmark.runs import Cli
from tests.tasks.agreement import in_context as agreement
from workshop.render.masks import write_mask


def archive(folder: Path, name: str, **changed: object) -> Path:
    data = agreement.build(name)
    arrays = {"train": data["train_features"], "train_masks": data["train_masks"]}
    arrays |= {"test": data["val_features"], "test_masks": data["val_masks"]}
    path = folder / "features.npz"
    np.savez(path, **(arrays | changed))  # type: ignore[arg-type]
    return path


def ignored(labels: list[int]) -> list[str]:
    """What ``--config`` takes for labels of pixels to ignore; nothing without any."""
    return [f"ignore={','.join(map(str, labels))}"] if labels else []


@pytest.mark.parametrize("name", ["voc_like_whole_memory", "ade_like_zero_ignored", "planted_swapped"])
def test_features(tmp_path: Path, scores: Scores, name: str) -> None:
    case = agreement.CASES[name]
    params, path = case["params"], archive(tmp_path, name)
    for k in params["k"]:
        expected = case["expected"][str(k)]
        options = ["--features", path, "--config", f"k={k}", f"classes={params['classes']}"]
        found = scores("segment", *options, *ignored(params["ignore"]))["scores"]
        own = expected["own_standard"]
        assert found["mIoU"] == pytest.approx(own["mIoU"], abs=1e-4)
        assert found["pixel accuracy"] == pytest.approx(own["pixel_accuracy"], abs=1e-4)
        seen = own["mIoU_over_classes_with_union"]
        assert found["mIoU of shown or predicted"] == pytest.approx(seen, abs=1e-4)
        options += ignored([params.get("hummingbird_ignore_index", 255)])
        found = scores("segment", *options, "--protocol", "hummingbird")["scores"]
        assert found["mIoU"] == pytest.approx(expected["official_hummingbird"]["mIoU"], abs=1e-4)


@pytest.mark.parametrize("name", [name for name in agreement.CASES if name.startswith("metric")])
def test_predictions(tmp_path: Path, scores: Scores, name: str) -> None:
    case, data = agreement.CASES[name], agreement.build(name)
    for folder, key in (("truth", "gt"), ("given", "pred")):
        (tmp_path / folder).mkdir()
        for number, mask in enumerate(data[key]):
            write_mask(tmp_path / folder / f"{number}.png", mask)
    write_mask(tmp_path / "truth" / "more.png", data["gt"][0])
    options = ["--ground-truth", tmp_path / "truth", "--predictions", tmp_path / "given"]
    options += ["--config", f"classes={case['params']['classes']}", *ignored(case["params"]["ignore"])]
    report, expected = scores("segment", *options), case["expected"]
    found = report["scores"]
    assert found["mIoU"] == pytest.approx(expected["own_standard"]["mIoU"], abs=1e-9)
    assert found["pixel accuracy"] == pytest.approx(expected["official_capi"]["acc"], abs=1e-9)
    assert found["mIoU of shown or predicted"] == pytest.approx(expected["official_capi"]["mIoU"], abs=1e-9)
    assert found["mIoU of all, renamed"] == pytest.approx(expected["official_hummingbird"]["mIoU"], abs=1e-9)
    assert report["notes"] == ["1 of 5 masks have no prediction and do not count: more.png"]


def test_the_table_is_readable(tmp_path: Path, says: Cli) -> None:
    said = says("segment", "--features", archive(tmp_path, "planted_stripes")).out
    assert "class" in said
    assert "100.00" in said
    assert "3 images, protocol: standard. Scores are percentages." in said


def test_bad_input(tmp_path: Path, says: Cli) -> None:
    def refused(*arguments: object) -> str:
        said = says("segment", *arguments)
        assert said.code == 2
        return said.err

    assert "expected either --features or --predictions, found neither" in refused()
    assert "needs --ground-truth" in refused("--predictions", tmp_path)
    empty = ["--predictions", tmp_path, "--ground-truth", tmp_path]
    assert "expected predicted masks" in refused(*empty)

    def with_(**changed: object) -> str:
        return refused("--features", archive(tmp_path, "planted_stripes", **changed))

    masks = agreement.build("planted_stripes")["train_masks"]
    assert "[4 rows columns]" in with_(train_masks=masks[:1])
    assert "whole numbers" in with_(train_masks=masks.astype(float))
    assert "found 0 to 300" in with_(train_masks=np.where(masks == 1, 300, 0))
    unlabelled = np.full_like(masks, 255)
    assert "with a class in half of their pixels in train_masks" in with_(train_masks=unlabelled)
    assert "train and test of one width" in with_(train=np.ones((4, 6, 6, 3)))
    assert "tell cells apart" in with_(test=np.ones((3, 6, 6, 5)))
    path = archive(tmp_path, "planted_stripes")
    assert "classes of 5 to 255" in refused("--features", path, "--config", "classes=2")
    for cold in ("0", "1e-39", "5e-324"):  # float32 cannot divide a cosine by these
        said = refused("--features", path, "--config", f"temperature={cold}")
        assert "as temperature a number of at least 1e-30" in said
    (tmp_path / "t").mkdir()
    (tmp_path / "p").mkdir()
    both = ["--ground-truth", tmp_path / "t", "--predictions", tmp_path / "p"]
    write_mask(tmp_path / "p" / "a.png", np.zeros((2, 2), np.uint8))
    assert "none for a.png" in refused(*both)
    write_mask(tmp_path / "t" / "a.png", np.zeros((2, 3), np.uint8))
    assert "a.png to be 3 x 2 pixels as its annotation, found 2 x 2" in refused(*both)
    write_mask(tmp_path / "t" / "a.png", np.zeros((2, 2), np.uint8))
    write_mask(tmp_path / "p" / "a.png", np.full((2, 2), 255, np.uint8))
    assert "a class for every pixel" in refused(*both)


CAPI_CASES = ["capi_voc_like", "capi_ade_like"]


def by_pixels(tmp_path: Path, name: str) -> tuple[Path, Judged, CapiConfig]:
    """An exported case, and the protocol with a seed by which the case's image is held out."""
    params = agreement.CASES[name]["params"]
    path = archive(tmp_path, name)
    keys = [str(number) for number in range(8)]
    wanted = frozenset(str(number) for number in params["held_out_images"])
    rule = CapiTask.configs["capi"]
    seed = next(
        seed
        for seed in range(500)
        if pixels_of(keys, replace(rule, seed=seed), 1, frozenset(), 1).held_out == wanted
    )
    classes = agreement.CASES[name]["recipe"]["classes"]
    return path, Judged(classes, tuple(params["ignore"])), replace(rule, seed=seed)


@pytest.mark.parametrize("name", CAPI_CASES)
def test_features_by_a_vote_of_pixels(tmp_path: Path, name: str) -> None:
    path, judged, rule = by_pixels(tmp_path, name)
    official = agreement.CASES[name]["expected"]["official_capi"]
    report = score_by_pixels(path, judged, rule, 100_000)
    k, distance = official["chosen"]
    assert (report.parameters["k"], report.parameters["distance"]) == (k, distance)
    assert report.parameters["cells"] == official["memory_rows"]
    assert report.scores["mIoU"] == pytest.approx(official["test"][f"k={k},{distance}"]["mIoU"], abs=1e-9)
    accuracy = official["test"][f"k={k},{distance}"]["acc"]
    assert report.scores["pixel accuracy"] == pytest.approx(accuracy, abs=1e-9)


def test_a_vote_of_pixels_from_the_command_line(tmp_path: Path, scores: Scores, says: Cli) -> None:
    path = archive(tmp_path, "capi_voc_like")
    report = scores("segment", "--features", path, "--protocol", "capi", "--config", "memory=80")
    assert report["protocol"] == "capi"
    assert report["parameters"]["k"] in (1, 3, 10, 30)
    assert report["parameters"]["cells"] <= 80
    assert len(report["parameters"]["held_out"]) == 1
    assert (
        scores("segment", "--features", path, "--protocol", "capi", "--config", "k=3")["parameters"]["k"] == 3
    )
    said = says("segment", "--features", path, "--protocol", "capi").out
    assert "as fits held-out images of train best" in said
    assert "renamed" not in said


def test_what_has_no_vote_of_pixels(tmp_path: Path, says: Cli) -> None:
    def refused(*options: object, **changed: object) -> str:
        path = archive(tmp_path, "capi_voc_like", **changed)
        said = says("segment", "--features", path, "--protocol", "capi", *options)
        assert said.code == 2
        assert "Traceback" not in said.err
        return " ".join(said.err.split())

    data = agreement.build("capi_voc_like")
    assert "temperature does not go with" in refused("--config", "temperature=0.1")
    assert "a whole number of pixels a cell" in refused(train_masks=data["train_masks"][:, :63])
    assert "the same in train and test" in refused(train_masks=data["train_masks"][:, ::2, ::2])
    one = {"train": data["train_features"][:1], "train_masks": data["train_masks"][:1]}
    assert "there is one alone" in refused(**one)
    assert "shows mostly a class" in refused(train_masks=np.full_like(data["train_masks"], 255))
