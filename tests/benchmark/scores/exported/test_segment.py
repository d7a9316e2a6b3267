from pathlib import Path

import numpy as np
import pytest

from tasks.datasets.davis_masks import write_mask
from tests.benchmark.scores.exported.conftest import Says, Scores
from tests.tasks.metrics.agreement import in_context as agreement


def archive(folder: Path, name: str, **changed: object) -> Path:
    data = agreement.build(name)
    arrays = {"train": data["train_features"], "train_masks": data["train_masks"]}
    arrays |= {"test": data["val_features"], "test_masks": data["val_masks"]}
    path = folder / "features.npz"
    np.savez(path, **(arrays | changed))  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize("name", ["voc_like_whole_memory", "ade_like_zero_ignored", "planted_swapped"])
def test_features(tmp_path: Path, scores: Scores, name: str) -> None:
    case = agreement.CASES[name]
    params, path = case["params"], archive(tmp_path, name)
    for k in params["k"]:
        expected = case["expected"][str(k)]
        options = ["--features", path, "--k", k, "--classes", params["classes"]]
        ignored = [option for one in params["ignore"] for option in ("--ignore", one)]
        found = scores("segment", *options, *ignored)["scores"]
        own = expected["own_standard"]
        assert found["mIoU"] == pytest.approx(own["mIoU"], abs=1e-4)
        assert found["pixel accuracy"] == pytest.approx(own["pixel_accuracy"], abs=1e-4)
        seen = own["mIoU_over_classes_with_union"]
        assert found["mIoU of shown or predicted"] == pytest.approx(seen, abs=1e-4)
        ignored = ["--ignore", params.get("hummingbird_ignore_index", 255)]
        found = scores("segment", *options, *ignored, "--protocol", "hummingbird")["scores"]
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
    options += ["--classes", case["params"]["classes"]]
    options += [option for one in case["params"]["ignore"] for option in ("--ignore", one)]
    report, expected = scores("segment", *options), case["expected"]
    found = report["scores"]
    assert found["mIoU"] == pytest.approx(expected["own_standard"]["mIoU"], abs=1e-9)
    assert found["pixel accuracy"] == pytest.approx(expected["official_capi"]["acc"], abs=1e-9)
    assert found["mIoU of shown or predicted"] == pytest.approx(expected["official_capi"]["mIoU"], abs=1e-9)
    assert found["mIoU of all, renamed"] == pytest.approx(expected["official_hummingbird"]["mIoU"], abs=1e-9)
    assert report["notes"] == ["1 of 5 masks have no prediction and do not count: more.png"]


def test_the_table_is_readable(tmp_path: Path, says: Says) -> None:
    said = says("segment", "--features", archive(tmp_path, "planted_stripes")).out
    assert "class" in said
    assert "100.00" in said
    assert "3 images, protocol: standard. Scores are percentages." in said


def test_bad_input(tmp_path: Path, says: Says) -> None:
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
    assert "no cell of train_masks" in with_(train_masks=np.full_like(masks, 255))
    assert "vectors of different lengths" in with_(train=np.ones((4, 6, 6, 3)))
    assert "tell cells apart" in with_(test=np.ones((3, 6, 6, 5)))
    path = archive(tmp_path, "planted_stripes")
    assert "--classes of 5 to 255" in refused("--features", path, "--classes", 2)
    assert "positive --temperature" in refused("--features", path, "--temperature", 0)
    (tmp_path / "t").mkdir()
    (tmp_path / "p").mkdir()
    both = ["--ground-truth", tmp_path / "t", "--predictions", tmp_path / "p"]
    write_mask(tmp_path / "p" / "a.png", np.zeros((2, 2), np.uint8))
    assert "none for a.png" in refused(*both)
    write_mask(tmp_path / "t" / "a.png", np.zeros((2, 3), np.uint8))
    assert "another size" in refused(*both)
    write_mask(tmp_path / "t" / "a.png", np.zeros((2, 2), np.uint8))
    write_mask(tmp_path / "p" / "a.png", np.full((2, 2), 255, np.uint8))
    assert "a class for every pixel" in refused(*both)
