"""Defects in folders of one's own, from images to an answer."""

from pathlib import Path

import pytest

from layerboard.zoo.errors import InputError
from tests import fakes
from tests.benchmark.runs import answer, once, run


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two products; not to be changed."""
    return fakes.write_fake_defects(tmp_path_factory.mktemp("own") / "parts", names=("bolt", "nut"))


@pytest.mark.slow
def test_a_folder_is_scored_by_two_passes_and_comes_to_an_answer_in_a_few_commands(
    parts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records, shown = once(tmp_path, "anomaly", images=[parts])
    assert shown == {"references": 10, "test": 12}
    primary = records[records["primary"]]
    assert {*primary["metric"]} == {"AUROC"}
    assert (primary["value"] == 100).all()  # the square is seen by any network
    assert primary["ci_low"].between(50, 100).all()
    assert primary["coverage"].str.startswith("2 products, 10 reference images, 12 test images").all()
    assert {"AUROC bolt", "AU-PRO nut", "AUROC 4-shot", "memory"} <= {*records["metric"]}
    line = (
        "2 products, 10 reference images, 12 test images; 6 test images with a defect, 6 of them with a mask"
    )
    page = answer(capsys, tmp_path, line, "anomaly AUROC", "--images", parts)
    assert "distance of layer" in page
    assert "bolt, dent" in page


def test_shots_are_chosen_and_another_mask_is_other_data(tmp_path: Path) -> None:
    own = fakes.write_fake_defects(tmp_path / "parts", names=("bolt", "nut"))
    first = run(tmp_path, ["mini-fs"], "anomaly", images=[own], layers="12", shots=(2,))
    few = {metric for metric in first["metric"] if "-shot" in metric}
    assert few == {"AUROC 2-shot", "AUROC 2-shot bolt", "AUROC 2-shot nut"}
    with pytest.raises(InputError, match=r"shots= is for fewshot and anomaly, which are not run"):
        run(tmp_path, ["mini-fs"], "cost", images=[own], shots=(2,))
    (own / "nut" / "ground_truth" / "dent" / "0_mask.png").unlink()
    second = run(tmp_path, ["mini-fs"], "anomaly", images=[own], layers="12", shots=(2,))
    assert second["partial"].all()
    assert {*first["data"]}.isdisjoint(second["data"])
    assert {"pixel AUROC bolt"} == {
        name for name in second["metric"] if name in ("pixel AUROC bolt", "pixel AUROC nut")
    }
