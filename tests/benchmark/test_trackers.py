"""What trackers are told of a run, read back from the files of each, and what they refuse."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from layerboard.benchmark.commands.run import LogOption
from layerboard.benchmark.trackers import TRACKERS, log_board, open_tracker, refusals_told
from layerboard.leaderboards.board.board import Board
from layerboard.zoo.errors import InputError
from tests.leaderboards.builder import floor, frame, layers

Points = Mapping[str, list[tuple[int, float]]]
NAMES = {"mini-clip", "run@step5", "run@step10"}

LOGGED: Points = {
    "knn top-1/mini-clip": [(1, 20.0), (2, 30.0)],
    "knn top-1/run/layer 01": [(5, 10.0), (10, 12.0)],
    "knn top-1/run/layer 02": [(5, 11.0), (10, 9.0)],
    "best score/knn top-1/mini-clip": [(0, 30.0)],
    "best layer/knn top-1/mini-clip": [(0, 2.0)],
    "best score/knn top-1/run": [(5, 11.0), (10, 12.0)],
    "best layer/knn top-1/run": [(5, 2.0), (10, 1.0)],
}


@pytest.fixture
def board() -> Board:
    other = {"family": "other"}
    return Board.of(
        frame(
            layers([20.0, 30.0], backbone="mini-clip", family="CLIP"),
            layers([10.0, 11.0], backbone="run@step5", **other),
            layers([12.0, 9.0], backbone="run@step10", **other),
            layers([1.0, 2.0], backbone="not-in-this-run", **other),
            floor([3.0, 5.0]),
        )
    )


def log(name: str, board: Board, output: Path) -> None:
    """A whole run of a tracker, with a report; it leaves none open."""
    tracker = open_tracker(name, output)
    log_board(tracker, board, NAMES)
    (output / "mini.html").write_text("<p>report</p>")
    tracker.attach(output / "mini.html")
    tracker.close()


def test_tensorboard_reads_the_curves(board: Board, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log("tensorboard", board, tmp_path)
    (folder,) = (tmp_path / "tensorboard").iterdir()
    read = EventAccumulator(str(folder)).Reload()
    found = {tag: [(each.step, each.value) for each in read.Scalars(tag)] for tag in read.Tags()["scalars"]}
    assert found == LOGGED
    assert str(tmp_path) not in str(read.Tensors("report/text_summary"))


def test_mlflow_keeps_the_curves_and_the_report(
    board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    log("mlflow", board, tmp_path)
    assert mlflow.active_run() is None
    client = mlflow.MlflowClient()
    (run,) = client.search_runs([client.get_experiment_by_name("layerboard").experiment_id])
    found = {
        name: [(each.step, each.value) for each in client.get_metric_history(run.info.run_id, name)]
        for name in run.data.metrics
    }
    assert found == LOGGED
    assert [each.path for each in client.list_artifacts(run.info.run_id, "report")] == ["report/mini.html"]
    with mlflow.start_run() as mine:
        log("mlflow", board, tmp_path)
        assert mlflow.active_run().info.run_id == mine.info.run_id  # the user's own stays open
    assert client.get_run(mine.info.run_id).data.metrics["best layer/knn top-1/run"] == 1


def test_wandb_writes_the_curves_and_the_report_offline(
    board: Board, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DATA_DIR", str(tmp_path / "staging"))
    monkeypatch.setenv("WANDB_API_KEY", key := "0123456789" * 4)
    log("wandb", board, tmp_path)
    assert wandb.run is None
    wandb.teardown()  # its service has written all
    (file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    found: dict[str, list[tuple[int, float]]] = {}
    artifacts = []
    for record in wandb_records(file):
        row = {"/".join(item.nested_key) or item.key: float(item.value_json) for item in record.history.item}
        axis = next((row.pop(name) for name in ("layer", "training step") if name in row), 0.0)
        for name in row.keys() & LOGGED.keys():
            found.setdefault(name, []).append((int(axis), row[name]))
        artifacts += [entry.path for entry in record.request.log_artifact.artifact.manifest.contents]
        artifacts += [entry.path for entry in record.artifact.manifest.contents]
    assert found == LOGGED
    assert artifacts == ["mini.html"]
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in written if key.encode() in path.read_bytes()]


def wandb_records(file: Path) -> list[Any]:
    """The records of an offline run: protocol buffers in a log of LevelDB, cut at blocks of 32 KiB."""
    from wandb.proto.wandb_internal_pb2 import Record

    content, place, parts, records = file.read_bytes(), 7, b"", []
    while place + 7 < len(content):
        if (left := 2**15 - place % 2**15) < 7:
            place += left
            continue
        size, kind = int.from_bytes(content[place + 4 : place + 6], "little"), content[place + 6]
        parts += content[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # a whole record, or the last part of one
            records.append(Record.FromString(parts))
            parts = b""
    return records


@pytest.mark.parametrize("name", [*TRACKERS])
def test_a_tracker_that_is_missing_is_said_with_what_installs_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def import_module(library: str) -> None:
        raise ModuleNotFoundError(f"No module named {library!r}", name=library)

    monkeypatch.setattr("layerboard.zoo.libraries.import_module", import_module)
    with pytest.raises(
        InputError, match=rf"^--log {name} needs {name}; .* pip install 'layerboard\[{name}\]'$"
    ):
        open_tracker(name, tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    (tmp_path / "tensorboard").touch()
    with pytest.raises(
        InputError, match=rf"^--log tensorboard: {tmp_path}/tensorboard.* cannot be written: "
    ):
        open_tracker("tensorboard", tmp_path)


def test_a_refusal_tells_no_key_and_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "abcdef0123456789")
    monkeypatch.setenv("MY_TOKEN", "secret-of-mine")
    with pytest.raises(InputError) as caught, refusals_told("wandb"):
        raise RuntimeError("http://me:word@host/x refuses abcdef0123456789 and secret-of-mine")
    assert str(caught.value) == "--log wandb: http://host/x refuses $WANDB_API_KEY and $MY_TOKEN"
    assert caught.value.__cause__ is None


def test_the_option_names_every_tracker() -> None:
    assert tuple(vars(LogOption)["log"].choices) == tuple(TRACKERS)
