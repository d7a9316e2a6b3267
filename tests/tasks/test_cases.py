"""Every task of the registry on planted data: the facts are in `tests.tasks.cases`."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from layerboard.tasks.anomaly.scores import ONE_KIND
from layerboard.tasks.datasets.base import Coverage, FileSample
from layerboard.tasks.datasets.classes import Classification, classification
from layerboard.tasks.datasets.coco import CocoRegion, RegionImage, Regions
from layerboard.tasks.datasets.davis import Video, Videos
from layerboard.tasks.datasets.instances import instances
from layerboard.tasks.datasets.reading.masks import read_mask
from layerboard.tasks.datasets.spair import Keypoints
from layerboard.tasks.datasets.spair_facts import PairFacts
from layerboard.tasks.datasets.targets import ImageLabels, ImageNumbers
from layerboard.tasks.framework.examples import Predicted
from layerboard.tasks.framework.protocols import STANDARD
from layerboard.tasks.framework.registry import TASKS, config_of, load_code
from layerboard.tasks.framework.task import Task
from layerboard.tasks.metrics.folds import ALWAYS_TRAINING
from layerboard.tasks.segmentation import capi as capi_vote
from layerboard.tasks.segmentation.in_context import NO_MEMORY
from layerboard.tasks.segmentation.shown import NO_LABELS
from layerboard.zoo.view.views import Stretch, WholeFrame
from tests.benchmark.doubles import MemorySample
from tests.tasks import cases
from tests.tasks.analyses import test_saliency as saliency
from tests.tasks.anomaly import test_task as anomaly
from tests.tasks.clustering.test_task import QUICK
from tests.tasks.framework.test_sources import classification as listed
from tests.tasks.framework.test_sources import probed, sources
from tests.tasks.keypoints import test_problem as matched
from tests.tasks.passes import Features
from tests.tasks.propagation.test_task import drawn
from tests.tasks.retrieval.test_instances import planted, task_of
from tests.tasks.retrieval.test_landmarks import EASY, HARD, JUNK, problem
from tests.tasks.segmentation import test_capi as capi
from tests.tasks.segmentation import test_hummingbird as hummingbird
from tests.tasks.segmentation import test_problem as segmentation

TRAIN, VAL = np.repeat(np.arange(4), 12), np.arange(20) % 4
TRAIN_PERMUTED = np.random.default_rng(3).permutation(TRAIN)


def eye(number: int, dim: int = 8) -> NDArray[np.float32]:
    return np.eye(dim, dtype=np.float32)[number]


class LabelledCase(cases.VectorCase):
    """Four classes, with images to learn from and others that are asked."""

    chance = (0.0, 55.0)

    @property
    def config(self) -> Any:
        return config_of(STANDARD, self.name)

    def of(self, data: Classification, order: NDArray[np.int64]) -> Any:
        return self.kind(probed(data, sources(data, order, size=7)), self.config)

    def made(self, folder: Path) -> Task:
        return self.of(listed(TRAIN_PERMUTED, VAL), np.arange(3, 40, 2))

    def perfect(self, task: Any) -> Features:
        sides = task.images.sides.values()
        return {key: eye(label) for side in sides for key, label in zip(side.keys, side.labels, strict=True)}

    def same(self, task: Any, folder: Path) -> Iterator[Task]:
        for order in (np.array([47]), np.arange(48)):  # whatever the probe subset
            yield replace(self.of(task.images, order), row=self.row)

    def changed(self, task: Any, folder: Path) -> Iterator[Task]:
        yield self.of(listed(np.roll(TRAIN_PERMUTED, 1), VAL), np.arange(9))
        yield self.of(listed(TRAIN_PERMUTED, np.roll(VAL, 1)), np.arange(9))

    def few(self, task: Any) -> Iterator[tuple[Task, Features, str]]:
        perfect, reason = self.perfect(task), "of two classes; all that could be read are of one"
        asked = {*task.images.val.keys} if task.images.val else set()
        one = {key: each for key, each in self.noise(task).items() if perfect[key][0] or key in asked}
        yield task, one, reason
        yield from self.unread(task)

    def unread(self, task: Any) -> Iterator[tuple[Task, Features, str]]:
        """Where there is another side to ask, none of the images to learn from."""
        asked = {*task.images.tested.keys}
        if task.images.val:
            features = {key: each for key, each in self.noise(task).items() if key in asked}
            yield task, features, "no image could be read"

    def check_examples(self, facts: Predicted, predicted: Predicted) -> None:
        assert predicted["predicted"].tolist() == facts["class"].tolist()
        assert predicted["class_right"].tolist() == predicted["class_images"].tolist()
        assert predicted["mistaken"].sum() == 0


class TestKnn(LabelledCase):
    name, scorer = "knn", "knn"
    near = 3e-6  # votes follow cosines, which float32 rounds
    best: ClassVar = {"top-1": 100, "top-5": 100, "ECE top-1": (0, 1)}

    @property
    def config(self) -> Any:
        return replace(config_of(STANDARD, "knn"), k=5, others=(1, 12, 1000))

    def few(self, task: Any) -> Iterator[tuple[Task, Features, str]]:
        yield from self.unread(task)  # one class can be voted for

    def check_examples(self, facts: Predicted, predicted: Predicted) -> None:
        super().check_examples(facts, predicted)
        assert (predicted["neighbour_class"] == facts["class"][:, None]).all()


class TestFewShot(LabelledCase):
    name, turned, lengths = "fewshot", False, False
    best: ClassVar = {"top1-10shot": 100, "top1-1shot": 100, "top1-5shot": 100}
    unscored = ("top1-25shot",)


class TestLinear(LabelledCase):
    name, turned, lengths, factor = "linear", False, False, 1.0
    best: ClassVar = {"top1": 100, "top1-bn": 100, "top1-ridge": 100}

    @property
    def config(self) -> Any:
        return replace(config_of(STANDARD, "linear"), rates=(1.0, 10.0), epochs=4)


class AmongThemselves(LabelledCase):
    """Images of which each is tested by others that are not of its group."""

    def data(self, groups: int = 24, shift: int = 0) -> Classification:
        images = [(f"c{(n + shift) % 4}", FileSample(f"{n:04d}", "")) for n in range(48)]
        made = classification("mine", images, None, "here", Coverage(()))
        return made.grouped({f"{n:04d}": f"p{n * 5 % groups}" for n in range(48)}) if groups else made

    def made(self, folder: Path) -> Task:
        return self.of(self.data(), np.arange(1, 48, 2))

    def same(self, task: Any, folder: Path) -> Iterator[Task]:
        yield replace(self.of(task.images, np.arange(5)), row=self.row)

    def changed(self, task: Any, folder: Path) -> Iterator[Task]:
        for data in (self.data(0), self.data(20), self.data(shift=1)):
            yield self.of(data, np.arange(9))


class TestKnnAmongThemselves(AmongThemselves, TestKnn):
    pass


class TestFewShotAmongThemselves(AmongThemselves, TestFewShot):
    best: ClassVar = {"top1-1shot": 100, "top1-5shot": 100}
    unscored = ("top1-10shot", "top1-25shot")


class TestLinearAmongThemselves(AmongThemselves, TestLinear):
    pass


class TestRetrieval(cases.VectorCase):
    """Four landmarks of two queries each; two images of each are easy, two hard, and one is ignored."""

    name = "retrieval"
    best: ClassVar = {
        f"{metric} {level}": 100 for metric in ("mAP", "mP@1", "mP@5") for level in ("easy", "medium", "hard")
    }
    chance, skips = (0.0, 60.0), False
    kinds = np.array([EASY, EASY, HARD, HARD, JUNK, 0, 0])

    def relevance(self) -> NDArray[np.int64]:
        return np.array(
            [[self.kinds[n // 4] if n % 4 == query % 4 else 0 for query in range(8)] for n in range(28)]
        )

    def made(self, folder: Path) -> Task:
        return problem(self.relevance())

    def perfect(self, task: Any) -> Features:
        found = {f"q{query}": eye(query % 4, 16) for query in range(8)}
        return found | {f"d{n}": eye(n % 4 if self.kinds[n // 4] else 4 + n % 8, 16) for n in range(28)}

    def changed(self, task: Any, folder: Path) -> Iterator[Task]:
        for one, other in ((EASY, HARD), (HARD, JUNK), (EASY, JUNK)):
            swapped = self.relevance()
            yield problem(np.where(swapped == one, other, np.where(swapped == other, one, swapped)))

    def few(self, task: Any) -> Iterator[tuple[Task, Features, str]]:
        yield problem(np.zeros((12, 3), np.int64)), self.noise(task), "no query has a positive"

    def check_examples(self, facts: Predicted, predicted: Predicted) -> None:
        assert (facts["positives"] == 4).all()
        assert {*predicted["kind"].flat} == {"easy", "hard"}


class TestInstances(cases.VectorCase):
    name, scorer = "instances", "instances"
    best: ClassVar = {
        **dict.fromkeys(("recall@1", "recall@5", "recall@10", "mAP", "R-precision", "ROC AUC"), 100),
        "TAR at FAR 0.01": 100,
        "cosine at precision 0.99": 1,
        "cosine at precision 0.9": 1,
        "recall at precision 0.99": 100,
        "recall at precision 0.9": 100,
    }
    chance = (0.0, 40.0)
    alone = frozenset(f"{name} at precision {p}" for name in ("cosine", "recall") for p in ("0.99", "0.9"))
    unscored = ("TAR at FAR 0.001",)
    parts: ClassVar[tuple[Any, ...]] = ()

    def made(self, folder: Path) -> Task:
        return task_of(planted(15, 4, self.parts, distractors=3))

    def perfect(self, task: Any) -> Features:
        number = {image.sample.key: n for n, image in enumerate(task.data.images)}
        return {
            image.sample.key: eye(int(image.thing) if image.thing else 20 + number[image.sample.key], 96)
            for image in task.data.images
        }

    def changed(self, task: Any, folder: Path) -> Iterator[Task]:
        images = task.data.images
        renamed = [image._replace(thing="00" if image.thing < "03" else "03") for image in images]
        parted = [image._replace(part="query" if image.thing == "02" else image.part) for image in images]
        grouped = [image._replace(group=image.thing and image.sample.key[:4]) for image in images]
        for other in (renamed, parted, grouped):
            yield task_of(instances("planted", other, "here", Coverage(())))

    def few(self, task: Any) -> Iterator[tuple[Task, Features, str]]:
        single = {key: each for key, each in self.noise(task).items() if key.endswith("/0") or "none" in key}
        yield task, single, "no query has another image of its thing that could be read"

    def check_examples(self, facts: Predicted, predicted: Predicted) -> None:
        positives = 4 - max(1, self.parts.count("query"))
        assert (facts["positives"] == positives).all()
        assert (predicted["kind"][:, :positives] == "same").all()
        assert (predicted["kind"][:, positives:] == "wrong").all()
        np.testing.assert_allclose(predicted["cosine"][:, :positives], 1)


class TestInstancesOfADatabase(TestInstances):
    parts = ("query", "database", "database", "database")
    best: ClassVar = {name: best for name, best in TestInstances.best.items() if "TAR" not in name}
    unscored = ("TAR at FAR 0.01", "TAR at FAR 0.001")


class TargetCase(cases.VectorCase):
    """Sixty images in five folds."""

    turned = lengths = False
    spread = 0.5
    targets: ClassVar[type[Any]]

    def data(self, values: NDArray[Any], groups: int = 60, train: int = 0) -> Any:
        samples = tuple(FileSample(f"{number}.png", "") for number in range(60))
        fold = np.where(np.arange(60) < train, ALWAYS_TRAINING, np.arange(60) % 5)
        names = [f"l{number}" for number in range(values.shape[1])]
        return self.targets(
            "planted", samples, values, names, fold, tuple(str(n % groups) for n in range(60)), Coverage(())
        )

    def made(self, folder: Path) -> Task:
        return self.of(self.data(self.values()))

    def of(self, data: Any) -> Task:
        return self.kind(data, config_of(STANDARD, "regress"))  # type: ignore[no-any-return]

    def values(self) -> NDArray[np.float64]:
        raise NotImplementedError

    def perfect(self, task: Any) -> Features:
        random = np.random.default_rng(5).normal(size=(60, 4))
        rows = np.concatenate([self.values(), random], axis=1).astype(np.float32)
        return {f"{number}.png": row for number, row in enumerate(rows)}

    def changed(self, task: Any, folder: Path) -> Iterator[Task]:
        yield self.of(self.data(self.values()[::-1]))
        yield self.of(self.data(self.values(), groups=20))
        yield self.of(self.data(self.values(), train=40))

    def few(self, task: Any) -> Iterator[tuple[Task, Features, str]]:
        noise = self.noise(task)
        for few in (range(9), range(0, 60, 5)):  # too few, and of one fold
            some = {f"{number}.png": noise[f"{number}.png"] for number in few}
            yield task, some, "10 images that can be read are needed"
        yield self.of(self.data(np.ones((60, 2)))), self.noise(task), self.constant

    constant: ClassVar[str]


class TestRegress(TargetCase):
    name, scorer, targets = "regress", "regress", ImageNumbers
    best: ClassVar = {"R2": (99.9, 100), "rho": (99.5, 100), "MAE": (0, 0.05)}
    chance = (-100.0, 30.0)
    constant = "is the same for all images"

    def values(self) -> NDArray[np.float64]:
        return 3 * np.random.default_rng(0).normal(size=(60, 1)) + 7

    def check_examples(self, facts: Predicted, predicted: Predicted) -> None:
        told = zip(facts["truth"], predicted["predicted"], strict=True)
        assert len(facts["truth"]) == 16
        assert max(abs(float(truth) - float(guess)) for truth, guess in told) < 0.1

    example = 85.0


class TestMultilabel(TargetCase):
    name, scorer, targets = "multilabel", "multilabel", ImageLabels
    best: ClassVar = {"macro AP": (99, 100), "macro AUROC": (99, 100), "macro AUROC k-NN": (75, 100)}
    chance = (0.0, 75.0)
    constant = "no label is there, and not there, in every fold and what it learns from"

    def values(self) -> NDArray[np.float64]:
        return (np.random.default_rng(1).normal(size=(60, 2)) > 0).astype(np.float64)

    def check_examples(self, facts: Predicted, predicted: Predicted) -> None:
        for truth, guess in zip(facts["truth"], predicted["predicted"], strict=True):
            assert {*truth.split(", ")} == {*guess.split(", ")}


class TestClusterImage(cases.VectorCase):
    name, scorer, sets, lengths = "cluster-image", "clustering", False, False
    best: ClassVar = dict.fromkeys(("purity", "NMI", "ARI"), 100)
    chance = (25.0, 65.0)

    def of(self, labels: NDArray[np.int64], order: NDArray[np.int64], size: int = 7) -> Any:
        images = listed(labels, labels[:3])
        return self.kind(probed(images, sources(images, order, size=size)), QUICK)

    def made(self, folder: Path) -> Task:
        return self.of(np.sort(np.arange(80) % 4), np.arange(0, 80, 2))

    def perfect(self, task: Any) -> Features:
        samples = task.data.probe.samples
        return {sample.key: eye(label) for sample, label in zip(samples, task.data.labels, strict=True)}

    def same(self, task: Any, folder: Path) -> Iterator[Task]:
        yield replace(self.of(np.sort(np.arange(80) % 4), np.arange(78, -1, -2), size=5), row=self.row)

    def changed(self, task: Any, folder: Path) -> Iterator[Task]:
        yield replace(task, data=replace(task.data, labels=np.roll(task.data.labels, 1)))
        yield replace(task, clusters=3)

    def few(self, task: Any) -> Iterator[tuple[Task, Features, str]]:
        features = [*self.noise(task).items()]
        yield task, dict(features[:3]), "3 images are fewer than 4 clusters"
        yield task, dict(features[:4]), "4 images in 4 clusters say nothing about the features"

    def check_examples(self, facts: Predicted, predicted: Predicted) -> None:
        pairs = {*zip(facts["class"].tolist(), predicted["cluster"].tolist(), strict=True)}
        assert len(pairs) == len({label for label, _ in pairs}) == 4


class TestClusterObject(cases.GridCase):
    """Images with two regions each, on the borders of cells, of three labels with gaps."""

    name, unit, sets, lengths, examples = "cluster-object", "objects", False, False, False
    best: ClassVar = {**dict.fromkeys(("purity", "NMI", "ARI"), 100), "purity ceiling": 100}
    alone = frozenset({"purity ceiling"})
    chance = (33.0, 75.0)
    labels = (3, 17, 90)

    def regions(self, labels: tuple[int, ...] = labels, side: float = 16.0) -> Regions:
        images = []
        for number in range(12):
            chosen = (labels[number % 3], labels[(number * 5 + 1) % 3])
            boxes = ((0.0, 0.0, side, side), (32 - side, 32 - side, 32.0, 32.0))
            regions = [
                CocoRegion(f"i{number}#{n}", label, (32, 32), [[a, b, c, b, c, d, a, d]])
                for n, (label, (a, b, c, d)) in enumerate(zip(chosen, boxes, strict=True))
            ]
            sample = MemorySample(f"i{number}", 0, (32, 32))
            images.append(RegionImage(sample, (32, 32), tuple(regions)))  # type: ignore[arg-type]
        return Regions("double", tuple(images), {}, Coverage(()), clusters=3, unit=self.unit)

    def made(self, folder: Path) -> Task:
        return self.kind(self.regions(), QUICK)

    def perfect(self, task: Any) -> Features:
        found = {}
        for image in task.data.images:
            grid = np.zeros((4, 4, 8), np.float32)
            for part, region in zip((slice(0, 2), slice(2, 4)), image.regions, strict=True):
                grid[part, part] = eye(
                    sorted({r.label for i in task.data.images for r in i.regions}).index(region.label)
                )
            found[image.sample.key] = grid
        return found

    def same(self, task: Any, folder: Path) -> Iterator[Task]:
        yield replace(task, data=self.regions((1, 0, 2)))  # labels are names only

    def changed(self, task: Any, folder: Path) -> Iterator[Task]:
        yield replace(task, data=self.regions((3, 90, 17)))
        yield replace(task, data=self.regions(side=8.0))
        yield replace(task, data=replace(task.data, clusters=4))
        images = task.data.images
        named = replace(
            images[0], regions=(replace(images[0].regions[0], key="other"), *images[0].regions[1:])
        )
        yield replace(task, data=replace(task.data, images=(named, *images[1:])))

    def few(self, task: Any) -> Iterator[tuple[Task, Features, str]]:
        for k, reason in (
            (25, "are fewer than 25 clusters"),
            (1, "in 1 clusters say"),
            (24, "in 24 clusters"),
        ):
            few = replace(task, data=replace(task.data, clusters=k))
            yield few, self.noise(task), f"24 {self.unit} {reason}"


class TestClusterPart(TestClusterObject):
    name, unit = "cluster-part", "parts"


TestClusterObject.reasons = TestClusterPart.reasons = {
    0.0: "all zero",
    3.0: "same for all",
    1e-30: "same for all",
}


class TestDavis(cases.GridCase):
    """Two videos of two boxes, which move by a token a frame."""

    name, view, stamped = "davis", WholeFrame(32, 8), True
    best: ClassVar = {"J&F": (80, 100), "J": (80, 100), "F": (70, 100), "J&F ceiling": (80, 100)}
    chance, example, last = (0.0, 60.0), 80.0, -2

    def masks(self, shift: int) -> list[NDArray[np.uint8]]:
        frames = []
        for frame in range(5):
            mask = np.zeros((32, 48), np.uint8)
            mask[8 * shift : 8 * shift + 16, 8 * min(frame, 2) : 8 * min(frame, 2) + 16] = 1
            mask[8:24, 32:48] = 2
            frames.append(mask)
        return frames

    def made(self, folder: Path) -> Task:
        videos = [drawn(folder / name, self.masks(number)).videos[0] for number, name in enumerate("ab")]
        named = [
            replace(video, frames=tuple(MemorySample(f"{video.name}/{one.key}", 0) for one in video.frames))
            for video in videos
        ]
        return self.kind(Videos("double", tuple(named), Coverage(())), config_of(STANDARD, "davis"))

    def perfect(self, task: Any) -> Features:
        found = {}
        for video in task.data.videos:
            for sample, path in zip(video.frames, video.masks, strict=True):
                found[sample.key] = np.eye(6, dtype=np.float32)[read_mask(path)[4::8, 4::8]]
        return found

    def changed(self, task: Any, folder: Path) -> Iterator[Task]:
        first, second = task.data.videos
        (other,) = drawn(folder / "b", [mask[::-1].copy() for mask in self.masks(1)]).videos
        yield replace(task, data=replace(task.data, videos=(first, replace(second, masks=other.masks))))

    def few(self, task: Any) -> Iterator[tuple[Task, Features, str]]:
        short = tuple(
            Video(video.name, video.frames[:2], video.masks[:2], video.size) for video in task.data.videos
        )
        reason = "no video has an annotated object in a frame that counts"
        yield replace(task, data=replace(task.data, videos=short)), self.noise(task), reason


class TestSpair(cases.GridCase):
    """Pairs of two categories, whose images show the same."""

    name, view = "spair", matched.VIEW_64
    best: ClassVar = {
        "PCK@0.1": 100,
        "PCK@0.1 per image": 100,
        "PCK@0.1 per keypoint": 100,
        "PCK@0.05": (90, 100),
    }
    chance, spread = (0.0, 40.0), 0.2

    def made(self, folder: Path) -> Task:
        random, pairs = np.random.default_rng(3), []
        for number in range(8):
            points = [random.uniform(0, 64, (4, 2))] * 2
            size = {"source_size": (64, 64), "target_size": (64, 64), "target_box": (0.0, 0.0, 64.0, 64.0)}
            pairs.append(
                matched.pair(number, number % 6, (number + 1) % 6, ["dog", "cat"][number % 2], points, **size)
            )
        return matched.task_of(pairs, sizes=[(64, 64)] * 6)

    def perfect(self, task: Any) -> Features:
        cells = np.arange(16) / 16
        waves = 8 * np.random.default_rng(0).standard_normal((2, 48))
        phase = cells[:, None, None] * waves[1] + cells[None, :, None] * waves[0]
        grid = np.concatenate([np.sin(phase), np.cos(phase)], axis=-1).astype(np.float32)
        return {sample.key: grid.copy() for sample in task.data.samples}

    def same(self, task: Any, folder: Path) -> Iterator[Task]:
        yield replace(task, data=replace(task.data, pairs=task.data.pairs[::-1]))

    def changed(self, task: Any, folder: Path) -> Iterator[Task]:
        first, *others = task.data.pairs
        for change in (
            {"source_points": first.source_points + 1},
            {"target_points": first.target_points + 1},
            {"target_box": (0.0, 0.0, 1.0, 2.0)},
            {"target_size": (99, 98)},
            {"source_size": (99, 98)},
            {"category": "cow"},
            {"facts": PairFacts(1, 0, 3, 1, None)},
            {"source": (first.source + 2) % 6},
            {"target": (first.target + 2) % 6},
        ):
            yield replace(task, data=replace(task.data, pairs=(replace(first, **change), *others)))

    def few(self, task: Any) -> Iterator[tuple[Task, Features, str]]:
        yield replace(task, data=Keypoints("double", (), (), Coverage(()))), {}, "no pair has a keypoint"


class SceneCase(cases.GridCase):
    """Images of columns of one class, of which cells know the class."""

    best: ClassVar = dict.fromkeys(("mIoU", "pixel accuracy", "class accuracy"), 100)
    chance, near, stamped = (0.0, 45.0), 3.0, True
    side: ClassVar[int] = 8
    forgotten: ClassVar[str] = ""  # why a memory of images without a class is none

    @property
    def view(self) -> Any:  # type: ignore[override]
        return Stretch(self.side)

    def cells(self, images: int, seed: int) -> NDArray[np.uint8]:
        columns = np.repeat(segmentation.drawn(images, seed)[:, :1], 4, axis=1)
        columns[1, :, :] = 4  # the class that four columns cannot hold
        return columns

    def scenes(
        self, folder: Path, order: list[int] | None = None, void: bool = False, memory: int = 1000
    ) -> Any:
        train, val = (segmentation.enlarged(self.cells(*each)) for each in ((9, 0), (10, 1)))
        if void:
            nothing = np.full((1, 24, 24), 255, np.uint8)
            train, val = np.concatenate([train, nothing]), np.concatenate([val, nothing])
        data = segmentation.scenes(folder, train, val, memory)
        every = [
            tuple(replace(scene, sample=FileSample(scene.sample.key, str(scene.mask))) for scene in part)
            for part in (data.train, data.val)
        ]
        listed = tuple(every[0][place] for place in order or range(len(every[0])))
        return replace(data, train=listed, val=every[1])

    def task_on(self, data: Any) -> Any:
        raise NotImplementedError

    def made(self, folder: Path) -> Task:
        return self.task_on(self.scenes(folder))  # type: ignore[no-any-return]

    def perfect(self, task: Any) -> Features:
        cells = {"train": self.cells(9, 0), "val": self.cells(10, 1)}
        found = {}
        for sample in (*task.memory.source.samples, *task.source.samples):
            part, number = sample.key.partition("#")[0].split("-")
            found[sample.key] = np.eye(8, dtype=np.float32)[cells[part][int(number) % len(cells[part])]]
        return found

    def same(self, task: Any, folder: Path) -> Iterator[Task]:
        yield replace(self.task_on(self.scenes(folder / "order", [4, 2, 8, 0, 1, 7, 3, 5, 6])), row=self.row)

    def changed(self, task: Any, folder: Path) -> Iterator[Task]:
        yield self.task_on(replace(task.data, memory=50, most=5))
        for part in ("train", "val"):  # another mask
            first, second, *others = getattr(task.data, part)
            scenes = (replace(first, mask=second.mask), second, *others)
            yield self.task_on(replace(task.data, **{part: scenes}))
        yield self.task_on(replace(task.data, offset=1, classes=task.data.classes[1:]))

    def few(self, task: Any) -> Iterator[tuple[Task, Features, str]]:
        hidden = task.data.val[0].mask.with_name("hidden.png")
        segmentation.write_mask(hidden, np.full((24, 24), 255, np.uint8))
        for part, reason in (("val", NO_LABELS), ("train", self.forgotten)):
            scenes = tuple(replace(scene, mask=hidden) for scene in getattr(task.data, part))
            if reason:
                yield self.task_on(replace(task.data, **{part: scenes})), self.noise(task), reason


class TestSegment(SceneCase):
    name, forgotten = "segment", NO_MEMORY
    best: ClassVar = dict.fromkeys(
        ("mIoU", "pixel accuracy", "class accuracy", "mIoU k=1", "mIoU ceiling"), 100
    )

    def task_on(self, data: Any) -> Any:
        return self.kind(data, segmentation.rule())

    def same(self, task: Any, folder: Path) -> Iterator[Task]:
        yield from super().same(task, folder)
        yield replace(self.task_on(self.scenes(folder / "void", void=True)), row=self.row)  # of no class


class TestHummingbird(SceneCase):
    name, protocol, side, examples = "segment", "hummingbird", 24, False

    def task_on(self, data: Any) -> Any:
        return self.kind(data, hummingbird.rule())

    def changed(self, task: Any, folder: Path) -> Iterator[Task]:
        yield from islice(super().changed(task, folder), 3)


class TestCapi(SceneCase):
    name, protocol, side, forgotten = "segment", "capi", 24, capi_vote.NO_MEMORY
    examples = sets = lengths = turned = False

    def task_on(self, data: Any) -> Any:
        return self.kind(data, capi.rule())

    def same(self, task: Any, folder: Path) -> Iterator[Task]:
        yield from ()  # which image is held out follows from the names in order


class TestAnomaly(cases.GridCase):
    """Two products; defects look another way."""

    name = "anomaly"
    best: ClassVar = dict.fromkeys(
        ("AUROC", "AP", "F1max", "AUROC 1-shot", "AUROC 4-shot", "memory"), 100
    ) | {"pixel AUROC": (97, 100)}
    chance, alone, spread, near = (25.0, 75.0), frozenset({"memory"}), 0.3, 2.0

    def made(self, folder: Path) -> Task:
        masks = {name: anomaly.corners(14, 8) for name in ("nut", "bolt")}
        return self.kind(anomaly.products(folder, masks, references=5), anomaly.CONFIG)

    def perfect(self, task: Any) -> Features:
        return {key: grid.numpy() for key, grid in anomaly.drawn(task.data, 3.0).items()}

    def changed(self, task: Any, folder: Path) -> Iterator[Task]:
        first, *others = task.data.products
        image, *images = first.images
        yield replace(task, data=replace(task.data, memory=7))
        for changed in (replace(image, kind="good"), replace(image, mask=None)):
            product = replace(first, images=(changed, *images))
            yield replace(task, data=replace(task.data, products=(product, *others)))

    def few(self, task: Any) -> Iterator[tuple[Task, Features, str]]:
        good = tuple(replace(each, images=each.images[8:]) for each in task.data.products)
        kinds = tuple(
            replace(each, images=tuple(replace(image, mask=None, kind="good") for image in each.images))
            for each in good
        )
        yield replace(task, data=replace(task.data, products=kinds)), self.noise(task), ONE_KIND


class TestTokenProbes(cases.AnalysisCase):
    name = "token-probes"

    def of(self, labels: NDArray[np.int64]) -> Task:
        data = listed(labels, VAL)
        return self.kind(probed(data, sources(data, np.arange(48), size=8)), config_of(STANDARD, "fewshot"))

    def made(self, folder: Path) -> Task:
        return self.of(TRAIN)

    def changed(self, task: Any, folder: Path) -> Iterator[Task]:
        yield self.of(np.roll(TRAIN, 1))


class TestSaliency(cases.AnalysisCase):
    name = "saliency"

    def of(self, left: int) -> Task:
        mask = np.zeros((16, 16), np.uint8)
        mask[:8, left : left + 8] = 1
        return saliency.problem([[mask], [mask]], config_of(STANDARD, "saliency"))

    def made(self, folder: Path) -> Task:
        return self.of(0)

    def changed(self, task: Any, folder: Path) -> Iterator[Task]:
        yield self.of(4)


def named() -> set[tuple[str, str]]:
    """Names and protocols of the cases."""
    made = [each for name, each in globals().items() if name.startswith("Test")]
    return {(each.name, each.protocol) for each in made}


for row in TASKS:  # of analyses and comparisons a few images say enough; others need a case of their own
    kind = load_code(row)
    base = next((base for code, base in cases.BASES.items() if issubclass(kind, code)), cases.TaskCase)
    if (row.name, "standard") not in named() and (row.analysis or base is cases.ComparisonCase):
        facts = {"name": row.name, "beside": ("repeats",) if row.name == "residual-cka" else ()}
        globals()[f"Test{kind.__name__}"] = type(f"Test{kind.__name__}", (base,), facts)


def test_every_task_and_class_of_the_registry_has_a_case() -> None:
    assert named() == {(row.name, name) for row in TASKS for name in ("standard", *dict(row.by_protocol))}
