"""Networks of this machine: directories, called by their last folder, and networks of this process."""

from pathlib import Path

import pytest

import layerboard
from layerboard.benchmark.forms.request import Request
from layerboard.zoo.errors import InputError
from layerboard.zoo.load.backbone import describe_backbone
from layerboard.zoo.registry.find import LOCAL_NAMES, find, named_locally, path_digest
from tests.benchmark.runs import Tally, run
from tests.zoo.load.test_infer import save
from tests.zoo.own.module.networks import SIZE, Vit


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


def test_it_runs_among_names_and_is_not_computed_again(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = Vit(0)
    own = layerboard.from_module(net, name="own-vit", family="Own", supervision="nothing", image_size=SIZE)
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("own-vit: 3 blocks of net.blocks, 0 prefix tokens + 4x4 grid of patch 8")
    with Tally().watching() as tally:
        records = run(tmp_path, [own, "mini-fs"], "knn", "davis", data=data, layers="1-3")  # type: ignore[list-item]
    assert tally.loads == ["mini-fs", "own-vit"]
    rows = records[records["backbone"] == "own-vit"]
    assert set(rows["task"]) == {"knn", "davis"}
    assert set(rows["family"]) == {"Own"}
    assert set(rows["revision"]) == {own.revision}
    assert rows[rows["primary"]]["value"].notna().all()
    again = layerboard.from_module(Vit(0), name="own-vit", family="Own", image_size=SIZE, verbose=False)
    assert capsys.readouterr().out == ""
    with Tally().watching() as tally:
        run(tmp_path, [again], "knn", "davis", data=data, layers="1-3")  # type: ignore[list-item]
    assert tally.loads == []
    versus = layerboard.compare(own, "mini-fs", output=tmp_path / "out", tasks="knn")
    assert versus.title == "own-vit and mini-fs, paired"


def test_a_request_holds_names_only() -> None:
    own = layerboard.from_module(Vit(), image_size=SIZE, verbose=False)
    assert Request(own).backbones == (own.reference,)
    assert Request(["mini-fs", own]).backbones == ("mini-fs", own.reference)
    with pytest.raises(InputError, match="--backbones takes a word; found 3"):
        Request([own, 3])  # type: ignore[list-item]
    with pytest.raises(InputError, match="image_size= takes a whole number of at least 1; found 'x'"):
        layerboard.from_module(Vit(), image_size="x")  # type: ignore[arg-type]
