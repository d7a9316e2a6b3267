import numpy as np
import pytest

from layerboard.tasks.datasets.reading.masks import read_mask
from tests import fakes
from tests.tasks.agreement import golden
from workshop.render.masks import write_mask

CASE = golden.cases("davis_jf")["two_sequences"]


def write_masks(folder, frames):
    """``<folder>/<frame>.png``."""
    folder.mkdir(parents=True)
    for number, mask in enumerate(frames):
        write_mask(folder / f"{number:05d}.png", mask)


def test_agrees_with_the_official_evaluator(scores, tmp_path):
    for key, frames in golden.build(CASE).items():
        name, kind = key.split("/")
        write_masks(tmp_path / kind / name, frames)
    found = scores("davis", "--ground-truth", tmp_path / "gt", "--predictions", tmp_path / "pred")
    expected = CASE["expected"]
    assert found["scores"] == pytest.approx({k: 100 * v for k, v in expected["global"].items()}, abs=1e-6)
    assert set(found["details"]["objects"]) == set(expected["per_object"])
    for name, columns in expected["per_object"].items():
        wanted = {column: 100 * value for column, value in columns.items()}
        listed = found["details"]["objects"][name]
        assert {column: listed[column] for column in wanted} == pytest.approx(wanted, abs=1e-6)
    for metric, (low, high) in found["details"]["intervals"].items():
        assert low <= found["scores"][metric] <= high
    assert found["n"] == 3
    assert not found["notes"]


@pytest.fixture
def exported(tmp_path):
    """A fake DAVIS and perfect predictions of it, which hold no void."""
    root = fakes.write_fake_davis(tmp_path)
    for path in (root / "Annotations" / "480p").glob("*/*.png"):
        mask = read_mask(path)
        (tmp_path / "masks" / path.parent.name).mkdir(parents=True, exist_ok=True)
        clean = np.where(mask == 255, 0, mask).astype(np.uint8)
        write_mask(tmp_path / "masks" / path.parent.name / path.name, clean)
    return root, tmp_path / "masks"


def test_the_layout_of_davis(scores, exported):
    root, masks = exported
    found = scores("davis", "--ground-truth", root, "--predictions", masks)
    assert found["scores"]["J&F-Mean"] == 100
    assert set(found["details"]["objects"]) == {f"sequence-{s}_{n}" for s in (0, 1) for n in (1, 2)}
    for below in (root / "Annotations", root / "Annotations" / "480p"):
        again = scores("davis", "--ground-truth", below, "--predictions", masks)
        assert again["scores"] == found["scores"]


def test_sequences_without_prediction_are_said(scores, exported):
    root, masks = exported
    (masks / "sequence-1").rename(masks / "other")
    found = scores("davis", "--ground-truth", root, "--predictions", masks)
    assert {*found["details"]["objects"]} == {"sequence-0_1", "sequence-0_2"}
    assert found["notes"] == ["1 of 2 sequences have no prediction and do not count: sequence-1"]


def test_wrong_masks(says, exported, tmp_path):
    root, masks = exported
    given = ("davis", "--ground-truth", root, "--predictions")
    assert (
        f"predicted masks (<sequence>/*.png) at {tmp_path / 'none'}" in says(*given, tmp_path / "none").error
    )
    frame = masks / "sequence-0" / "00001.png"
    mask = read_mask(frame)
    void, high = mask.copy(), mask.copy()
    void[0, 0], high[0, 0] = 255, 3
    write_mask(frame, void)
    error = says(*given, masks).error
    assert f"expected object ids in {frame}, found 255 (void)" in error
    write_mask(frame, high)
    error = says(*given, masks).error
    assert f"object ids up to 2 in {frame}, as in the first annotation of sequence-0, found 3" in error
    write_mask(frame, mask[1:])
    error = says(*given, masks).error
    assert "sequence-0/00001.png to be 48 x 32 pixels" in error
    assert "found 48 x 31" in error
    assert "export masks at the size of the frames" in error
    frame.unlink()
    error = says(*given, masks).error
    assert "found none for 00001.png" in error
    assert "export every frame under the name of its annotation" in error
    error = says(*given, masks / "sequence-1").error
    assert "named after the sequences" in error
    assert "(sequence-0, sequence-1), found none" in error
