"""Directories of this machine are called by their last folder, told apart where two are alike."""

from pathlib import Path

import pytest

from layerboard.zoo.load.backbone import describe_backbone
from layerboard.zoo.registry.find import find
from layerboard.zoo.registry.local_names import LOCAL_NAMES, named_locally, path_digest
from tests.benchmark.runs import run
from tests.zoo.load.test_infer import save


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three networks: two in folders of one name, one in a folder named after an entry."""
    root = tmp_path_factory.mktemp("networks")
    for place in ("a/vit", "b/vit", "runs/dino-b16", "c/my net@448px"):
        save(root / place, "ViTModel")
    return root


def names(*folders: Path | str) -> list[str]:
    return [spec.name for spec in find([str(folder) for folder in folders])]


def test_the_last_folder_or_as_many_as_tell_two_apart(
    networks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert names(networks / "a/vit") == ["vit"]
    assert names(f"{networks}/a/vit/") == ["vit"]
    assert names(networks / "a/vit", networks / "b/vit") == ["a/vit", "b/vit"]
    assert names(networks / "b/vit", networks / "a/vit") == ["b/vit", "a/vit"]
    assert names(networks / "runs/dino-b16") == ["runs/dino-b16"]
    assert names(networks / "c/my net@448px") == ["my-net-448px"]
    monkeypatch.chdir(networks / "a/vit")
    assert names(".") == names("../vit") == ["vit"]
    assert names(".", "../../b/vit", networks / "a/vit") == ["a/vit", "b/vit"]  # the same twice


def test_the_details_have_the_path(networks: Path) -> None:
    (spec,) = find([str(networks / "a/vit")])
    assert describe_backbone(spec, None).startswith(f"vit ({networks}/a/vit): 2 blocks")


def test_names_that_an_output_knows_are_kept(networks: Path) -> None:
    both = find([str(networks / "a/vit"), str(networks / "b/vit")])
    known = {"vit": path_digest(str(networks / "a/vit"))}
    assert [spec.name for spec in named_locally(both, known)] == ["vit", "b/vit"]
    assert [spec.name for spec in named_locally(both[1:], known)] == ["b/vit"]
    assert [spec.name for spec in named_locally(both[:1], known)] == ["vit"]


def test_two_runs_into_one_folder(networks: Path, data: Path, tmp_path: Path) -> None:
    for place in ("a/vit", "b/vit", "a/vit"):
        records = run(tmp_path, [str(networks / place)], "knn", data=data, layers="1")
    assert {*records["backbone"]} == {"vit", "b/vit"}
    written = (tmp_path / "out" / LOCAL_NAMES).read_text()
    assert str(networks) not in written
    sizes = run(tmp_path, [f"{networks}/b/vit@112px"], "knn", data=data, layers="1")
    assert {*sizes["backbone"]} == {"vit", "b/vit", "b/vit@112px"}
