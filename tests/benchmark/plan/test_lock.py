"""The weights of earlier runs into a folder: kept, taken again, and others refused unless asked for."""

import json
import shutil
from os.path import commonpath
from pathlib import Path

import pytest

import layerboard
from layerboard.benchmark.forms.campaign import RUN_FILE
from layerboard.benchmark.plan.lock import LockedWeights, given_weights, read_lock
from layerboard.leaderboards.records.record import read_records
from layerboard.zoo.errors import InputError
from layerboard.zoo.registry.find import all_specs
from tests.benchmark.runs import run
from tests.zoo.load.test_infer import save

FIRST, SECOND = "1" * 40, "2" * 40
HUB = Path("cache", "hub", "models--somebody--vit")


@pytest.fixture(scope="module")
def first(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose cache is laid out as huggingface_hub does, of a repository that then has two commits."""
    place = tmp_path_factory.mktemp("first")
    store = place / HUB
    (store / "refs").mkdir(parents=True)
    for commit in (FIRST, SECOND):
        save(store / "snapshots" / commit, "ViTModel")
    newest(store, FIRST)
    other = store / "snapshots" / SECOND / "model.safetensors"
    content = other.read_bytes()
    other.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    run(place, ["somebody/vit"], "knn", data=data, layers="1")
    return place


@pytest.fixture
def hub(first: Path, tmp_path: Path) -> Path:
    """The repository in a copy of the first run."""
    shutil.copytree(first, tmp_path, dirs_exist_ok=True)
    return tmp_path / HUB


def newest(store: Path, commit: str) -> None:
    (store / "refs" / "main").write_text(commit)


def test_a_later_run_takes_the_weights_of_the_first(hub: Path, data: Path, tmp_path: Path) -> None:
    first = read_records([tmp_path / "out" / "records"])
    (known,) = read_lock(tmp_path / "out").values()
    assert (known.repository, known.revision, len(known.sha256)) == ("somebody/vit", FIRST, 64)
    assert {*first["sha256"]} == {known.sha256}
    newest(hub, SECOND)
    later = run(tmp_path, ["somebody/vit"], "knn", "retrieval", data=data, layers="1")
    assert {*later["revision"]} == {FIRST}
    assert read_lock(tmp_path / "out") == {"somebody/vit": known}


def test_other_bytes_are_refused_unless_asked_for(hub: Path, data: Path, tmp_path: Path) -> None:
    before = read_lock(tmp_path / "out")
    weights = hub / "snapshots" / FIRST / "model.safetensors"
    shutil.copyfile(hub / "snapshots" / SECOND / "model.safetensors", weights)
    records = run(tmp_path, ["somebody/vit"], "retrieval", data=data, layers="1", fails=True)
    (reason,) = records.attrs["failures"]
    assert "the weights of somebody/vit have the SHA-256" in reason
    assert f"those pinned in {tmp_path / 'out' / RUN_FILE} have" in reason
    assert "give another --output, or --again to go on with those of today" in reason
    assert read_lock(tmp_path / "out") == before
    run(tmp_path, ["somebody/vit"], "retrieval", data=data, layers="1", again=True)
    assert read_lock(tmp_path / "out") != before


@pytest.mark.usefixtures("hub")
def test_again_without_anything_to_do_again_is_an_error(data: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cost is not among the tasks, and no weights have changed"):
        run(tmp_path, ["somebody/vit"], "knn", data=data, layers="1", again=True)


def test_what_is_packaged_or_the_users_own_has_no_row(data: Path, tmp_path: Path) -> None:
    save(tmp_path / "mine", "ViTModel")
    run(tmp_path, ["mini-fs", str(tmp_path / "mine")], "knn", data=data, layers="1")
    assert read_lock(tmp_path / "out") == {}


def test_a_campaign_pins_the_weights_of_a_run_into_another_folder(
    hub: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(commonpath([tmp_path, data]))
    campaign = tmp_path / "out" / RUN_FILE
    newest(hub, SECOND)
    elsewhere = {"campaign": campaign, "output": tmp_path / "again", "cache": tmp_path / "cache"}
    again = layerboard.run(**elsewhere)
    assert ({*again.frame["revision"]}, again.failures) == ({FIRST}, ())
    assert read_lock(tmp_path / "again") == read_lock(tmp_path / "out")
    today = layerboard.run(**elsewhere | {"output": tmp_path / "today", "again": True})
    assert {*today.frame["revision"]} == {SECOND}
    with pytest.raises(InputError, match=rf"the key pins of .*{RUN_FILE} has somebody/vit with the SHA-256"):
        layerboard.run(**elsewhere | {"output": tmp_path / "today"})
    pinned = campaign.read_text().replace(read_lock(tmp_path / "out")["somebody/vit"].sha256, "f" * 64)
    (tmp_path / "other.yaml").write_text(pinned)
    other = layerboard.run(**elsewhere | {"campaign": tmp_path / "other.yaml", "output": tmp_path / "third"})
    (reason,) = other.failures
    assert f"those pinned in {tmp_path / 'other.yaml'} have {'f' * 64}" in reason
    assert "give another --campaign" in reason


def test_pins_are_what_a_run_writes(tmp_path: Path) -> None:
    assert read_lock(tmp_path) == {}
    good = {"pins": {"a": {"repository": "b/a", "revision": FIRST, "sha256": "0" * 64}}}
    (tmp_path / RUN_FILE).write_text(json.dumps(good))
    assert read_lock(tmp_path) == {"a": LockedWeights("b/a", FIRST, "0" * 64)}
    (tmp_path / RUN_FILE).write_text("tasks: knn")
    assert read_lock(tmp_path) == {}
    row = '{"repository": "b/a", "revision": 3, "sha256": "0"}'
    for bad in ("", "[]", "pins: 1", "pins: {a: 1}", "pins: {a: {b: 1}}", f"pins: {{a: {row}}}"):
        (tmp_path / RUN_FILE).write_text(bad)
        with pytest.raises(InputError, match=r"run\.yaml.*remove the file to accept the weights of today"):
            read_lock(tmp_path)


def test_weights_that_were_given_say_whether_they_are_the_published_ones() -> None:
    published = next(spec for spec in all_specs() if spec.file.name and spec.file.sha256)
    unknown = next(spec for spec in all_specs() if not spec.file.sha256 and not spec.origin.supply)
    same, other = published.file.sha256.ljust(64, "0"), "f" * 64
    assert given_weights({published.name: LockedWeights("", "sha256:1", same)}) == ""
    assert given_weights({published.name: LockedWeights("owner/name", FIRST, other)}) == ""
    sentence = given_weights(
        {name: LockedWeights("", "sha256:1", other) for name in (published.name, unknown.name)}
    )
    assert f"{published.name}: other files than the published ones" in sentence
    assert f"{unknown.name}: no SHA-256 of the published files is known" in sentence
