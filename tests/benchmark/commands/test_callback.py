"""A training that is followed from within: the same as without, scored at its steps, by every trainer."""

import random
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from transformers import TrainerCallback

import layerboard
from layerboard.leaderboards.board.near_duplicates import read_near_duplicates
from layerboard.zoo.errors import InputError
from tests import fakes
from tests.zoo.own.module.networks import SIZE, Vit

BATCHES = 3
CALLBACK = "layerboard.benchmark.commands.callback"  # imports Lightning, which takes seconds, when it is used
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "training.md"
HINTS = {"image_size": SIZE, "verbose": False}
BEST = "knn top-1/best"  # name of a score in logs


class Classifier(nn.Module):
    """A backbone with a head, whose training draws numbers."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.encoder, self.drop, self.head = Vit(0), nn.Dropout(0.5), nn.LazyLinear(4)
        self.loss(torch.zeros(1, 3, SIZE, SIZE), torch.zeros(1, dtype=torch.long))

    def loss(self, pixels: Tensor, labels: Tensor) -> Tensor:
        features = self.encoder(pixels)
        return nn.functional.cross_entropy(self.head(self.drop(features.flatten(1))), labels)

    def forward(self, pixels: Tensor, labels: Tensor) -> dict[str, Tensor]:
        return {"loss": self.loss(pixels, labels)}


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("callback")
    fakes.write_fake_imagenet(root)
    return root / "imagenet"


@pytest.fixture
def callback(photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a callback that scores each second step; its pages are named, not written."""
    written: list[str] = []
    monkeypatch.setattr(f"{CALLBACK}.write_board", lambda board, folder: written.append(board.suite))
    monkeypatch.setattr(f"{CALLBACK}.report", lambda output, suite: written.append(suite))

    def made(**options: Any) -> Any:
        options |= {"every": 2, "name": "run", "part": "encoder", "network": HINTS}
        places = {"images": photos, "output": tmp_path / "out", "cache": tmp_path / "cache"}
        found = layerboard.Callback("knn", floor=False, layers="1-3", **places, **options)
        found.written = written
        return found

    return made


@pytest.fixture
def follow(callback: Any) -> Any:
    return callback()


def numpy_state() -> str:
    return str(np.random.get_state())  # noqa: NPY002  # read, not drawn from


def examples() -> list[dict[str, Tensor]]:
    draw = torch.Generator().manual_seed(1)
    pixels = torch.randn(4 * BATCHES, 3, SIZE, SIZE, generator=draw)
    return [{"pixels": each, "labels": torch.tensor(row % 4)} for row, each in enumerate(pixels)]


def train_by_hand(net: Classifier, callbacks: list[Any], place: Path) -> None:
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for step, batch in enumerate([None, *torch.utils.data.DataLoader(examples(), 4)]):
        if batch is not None:
            optimizer.zero_grad()
            net.loss(**batch).backward()
            optimizer.step()
        before = [random.getstate(), numpy_state(), [p.grad for p in net.parameters()]]
        modes = [each.training for each in net.modules()]
        for follow in callbacks:
            if step in (0, 2, BATCHES):
                follow(net, step)
        assert [random.getstate(), numpy_state()] == before[:2]
        assert all(p.grad is grad for p, grad in zip(net.parameters(), before[2], strict=True))
        assert [each.training for each in net.modules()] == modes
    for follow in callbacks:
        follow.finish()


class Recorder(TrainerCallback):
    """What a tracker of the Trainer gets: what is logged, with its step, and the end of its run."""

    def __init__(self) -> None:
        self.logged: list[tuple[int, dict[str, float]]] = []

    def on_log(self, args: Any, state: Any, control: Any, **words: Any) -> None:
        self.logged.append((state.global_step, dict(words["logs"])))

    def on_train_end(self, args: Any, state: Any, control: Any, **words: Any) -> None:
        self.logged.append((state.global_step, {"end": 1.0}))


def train_with_transformers(net: Classifier, callbacks: list[Any], place: Path) -> None:
    """Train, and see that the scores reach what the Trainer reports to."""
    pytest.importorskip("accelerate")
    from transformers import Trainer, TrainingArguments

    options: dict[str, Any] = {"per_device_train_batch_size": 4, "num_train_epochs": 1, "seed": 0}
    options |= {"report_to": [], "save_strategy": "no", "disable_tqdm": True}
    args = TrainingArguments(str(place), use_cpu=True, dataloader_pin_memory=False, **options)
    recorder = Recorder()
    trainer = Trainer(net, args, train_dataset=examples(), callbacks=[recorder, *callbacks])
    for follow in callbacks:
        follow._log = trainer.log  # as log=trainer.log, of a trainer that was made before its callback
    trainer.train()
    for follow in callbacks:
        history = [(each["step"], each) for each in trainer.state.log_history]
        assert best_of(recorder.logged) == best_of(history) == expected_of(follow)
        assert recorder.logged[-1] == (BATCHES, {"end": 1.0})  # then trackers take nothing more


def train_with_lightning(net: Classifier, callbacks: list[Any], place: Path) -> None:
    """Train, and see that the scores reach every logger."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lightning = pytest.importorskip("lightning.pytorch")
        from lightning.pytorch.loggers.logger import DummyLogger

        class Recording(DummyLogger):  # type: ignore[misc, unused-ignore]
            def __init__(self) -> None:
                super().__init__()
                self.logged: list[tuple[int, dict[str, float]]] = []

            def log_metrics(self, metrics: dict[str, float], step: int) -> None:
                self.logged.append((step, metrics))

            def finalize(self, status: str) -> None:
                self.logged.append((BATCHES, {status: 1.0}))

        class Module(lightning.LightningModule):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.encoder, self.net = net.encoder, net

            def training_step(self, batch: dict[str, Tensor], index: int) -> Tensor:
                return self.net.loss(**batch)

            def configure_optimizers(self) -> torch.optim.Optimizer:
                return torch.optim.SGD(self.net.parameters(), 0.1)

        lightning.seed_everything(0, verbose=False)
        names = ("checkpointing", "progress_bar", "model_summary")
        options: dict[str, Any] = {f"enable_{name}": False for name in names} | {"default_root_dir": place}
        options |= {"max_epochs": 1, "accelerator": "cpu"}
        loggers = [Recording(), Recording()]
        trainer = lightning.Trainer(callbacks=callbacks, logger=loggers, **options)
        trainer.fit(Module(), torch.utils.data.DataLoader(examples(), 4))
        for follow in callbacks:
            assert isinstance(follow, lightning.Callback)
            assert all(best_of(logger.logged) == expected_of(follow) for logger in loggers)
        assert all(logger.logged[-1] == (BATCHES, {"success": 1.0}) for logger in loggers)


@pytest.mark.parametrize("train", [train_by_hand, train_with_transformers, train_with_lightning])
def test_a_training_is_the_same_and_its_steps_are_scored(
    train: Any, follow: Any, photos: Path, tmp_path: Path
) -> None:
    weights = []
    for callbacks in ([], [follow]):
        net = Classifier()
        train(net, callbacks, tmp_path / "trainer")
        weights.append(net.state_dict())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert not torch.equal(weights[0]["head.weight"], Classifier().state_dict()["head.weight"])  # it trained
    scores = follow.scores
    assert scores["step"].tolist() == [0, 2, BATCHES]
    assert scores["value"].between(scores["ci_low"], scores["ci_high"]).all()
    assert follow.written == [follow.board.suite] * 2
    (counted,) = read_near_duplicates(tmp_path / "out").values()
    assert counted.backbone == f"run@step{BATCHES}"  # to an untrained network all images are alike
    if train is train_by_hand:
        own = layerboard.from_module(net.encoder, name="own", **HINTS)
        options: dict[str, Any] = {"images": photos, "floor": False, "examples": False, "layers": "1-3"}
        alone = layerboard.run(own, "knn", output=tmp_path / "alone", cache=tmp_path / "cache2", **options)
        assert scores["value"].iloc[-1] == alone.best["score"].iloc[0]


def best_of(logged: Any) -> list[tuple[int, float, float]]:
    """Steps with scores, each with the best layer's score and its number."""
    return [(step, each[BEST], each[f"{BEST} layer"]) for step, each in logged if BEST in each]


def expected_of(follow: Any) -> list[tuple[int, float, float]]:
    return [*follow.scores[["step", "value", "layer"]].itertuples(index=False, name=None)]


def test_a_loop_of_ones_own_is_given_the_scores_of_each_step(callback: Any) -> None:
    net, logged = Classifier(), []
    follow = callback(log=logged.append)
    for step in (3, 7):
        found = follow(net, step)
        assert best_of([(step, found)]) == [each for each in expected_of(follow) if each[0] == step]
        (column,) = follow.board.columns
        rows = column.candidates[column.candidates["backbone"] == f"run@step{step}"]
        layers = {f"knn top-1/layer {row.layer:02}": row.value for row in rows.itertuples()}
        assert len(layers) == 3
        assert found == {BEST: found[BEST], f"{BEST} layer": found[f"{BEST} layer"]} | layers
        assert logged[-1] == found
        assert follow(net, step) == {}
    assert len(logged) == 2


def test_a_log_that_refuses_does_not_end_the_training(callback: Any) -> None:
    def refuse(scores: dict[str, float]) -> None:
        raise OSError("no quota")

    with pytest.raises(OSError, match="no quota"):
        callback(log=refuse)(Classifier(), 0)
    follow = callback(log=refuse)
    follow._last = 0
    with pytest.warns(UserWarning, match="scores of step 2, which log= refused: OSError: no quota"):
        assert BEST in follow(Classifier(), 2)  # as if a tracker's run was closed early
    assert follow.scores["step"].tolist() == [0, 2]


def test_later_failures_are_warnings_and_the_first_is_raised(follow: Any) -> None:
    net = Classifier()
    good = [weight.clone() for weight in net.encoder.parameters()]
    for weight in net.encoder.parameters():
        weight.data.zero_()
    with pytest.raises(InputError, match="all weights of the Vit are zero"):
        follow(net, 0)
    follow._last = 0
    with pytest.warns(UserWarning, match="no scores of step 2: all weights of the Vit are zero"):
        follow(net, 2)
    for weight, before in zip(net.encoder.parameters(), good, strict=True):
        weight.data.copy_(before)
    follow(net, 4)
    assert follow.scores["step"].tolist() == [4]


def test_a_training_that_loses_its_folder_goes_on(follow: Any, tmp_path: Path, monkeypatch: Any) -> None:
    net = Classifier()
    follow(net, 0)
    monkeypatch.setattr(f"{CALLBACK}.write_board", lambda *_: (tmp_path / "gone" / "file").write_text(""))
    with pytest.warns(UserWarning, match="has not written the pages of the training into .*FileNotFound"):
        follow.finish()
    monkeypatch.setattr(torch.nn.Module, "__call__", lambda *_: torch.empty(1 << 60))
    with pytest.warns(UserWarning, match="no scores of step 2: Vit runs out of memory on images"):
        follow(net, 2)


def test_other_processes_score_nothing(follow: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    follow(Classifier(), 0)
    follow.finish()
    assert (follow.board, follow.written) == (None, [])


def test_a_part_that_is_not_there_and_parameters_that_are_elsewhere(follow: Any) -> None:
    net = Classifier()
    follow._part = "backbone"
    with pytest.raises(InputError, match="part='backbone' names no module of Classifier; it has encoder"):
        follow(net, 0)
    follow._part, follow._last = "encoder", -1
    next(net.encoder.parameters()).ds_id = 1  # type: ignore[attr-defined]  # as ZeRO-3 marks them
    with pytest.raises(InputError, match="spread over processes"):
        follow(net, 0)


@pytest.mark.filterwarnings("ignore:FSDP is switching")  # since one process shards nothing
@pytest.mark.parametrize("shard", ["FullyShardedDataParallel", "fully_shard"])
def test_parameters_that_fsdp_has_spread(shard: str, follow: Any) -> None:
    fsdp = pytest.importorskip("torch.distributed.fsdp")
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        net = Classifier()
        own = {"device_id": torch.device("cpu")} if shard == "FullyShardedDataParallel" else {}
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
        spread = getattr(fsdp, shard)(net, **(own or {"mesh": mesh}))
        for each in (spread, net):  # trainers hand over the wrapper, or what is in it
            follow._last = -1
            with pytest.raises(InputError, match="spread over processes"):
                follow(each, 0)
    finally:
        torch.distributed.destroy_process_group()


def train_in_two(rank: int, photos: Path, place: Path) -> None:
    """Train without and with a callback, whose second evaluation fails, in one of two processes."""
    address = f"file://{place}/meeting"
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    weights, scores = [], None
    for follows in (False, True):
        net = Classifier()
        together = nn.parallel.DistributedDataParallel(net)
        optimizer = torch.optim.SGD(net.parameters(), 0.1)
        options = {"images": photos, "floor": False, "output": place / "out", "cache": place / "cache"}
        follow = layerboard.Callback("knn", name="run", part="encoder", network=HINTS, layers="3", **options)
        for step, batch in enumerate([None, *torch.utils.data.DataLoader(examples()[rank::2], 2)]):
            if batch is not None:
                optimizer.zero_grad()
                together(**batch)["loss"].backward()
                optimizer.step()
            if follows and step in (0, 1, BATCHES):
                follow._network = {**HINTS, "image_size": 7} if step == 1 else HINTS
                follow(together, step)
        weights.append({name: each.clone() for name, each in net.state_dict().items()})
        scores = follow.scores["step"].tolist()
    same = all(torch.equal(each, weights[1][name]) for name, each in weights[0].items())
    (place / f"{rank}.txt").write_text(f"{same} {scores}")
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_of_two_processes_the_first_scores_and_the_training_is_the_same(photos: Path, tmp_path: Path) -> None:
    torch.multiprocessing.spawn(train_in_two, (photos, tmp_path), nprocs=2)  # type: ignore[no-untyped-call]
    said = [(tmp_path / f"{rank}.txt").read_text() for rank in range(2)]
    assert said == [f"True {[0, BATCHES]}", "True []"]


def test_the_loop_of_the_page(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (loop,) = re.findall(r"<!-- walk -->\n```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").symlink_to(photos)
    monkeypatch.setattr(f"{CALLBACK}.report", lambda output, suite: None)
    names: dict[str, Any] = {"__name__": "loop"}
    exec(loop, names)  # the page's own words
    assert capsys.readouterr().out.startswith("run1@step0: 3 blocks of net.")
    assert names["follow"].scores["step"].tolist() == [0, 5, 10]
    (page,) = (tmp_path / "results" / "tables").glob("*.md")
    assert "## Over a training" in page.read_text(encoding="utf-8")


def test_a_training_begun_again_leaves_out_the_steps_of_the_first_one(callback: Any) -> None:
    net, first, second = Classifier(), callback(), callback()
    for step in (0, 2, 4):
        first(net, step)
    with pytest.warns(UserWarning, match=r"run@step2, run@step4 are of an earlier training .*earlier/1"):
        second(net, 0)
    assert second.scores["step"].tolist() == [0]
