"""Facts of the registry for pages, which do not import it. Imports no torch."""

from math import nan
from typing import TYPE_CHECKING

from layerboard.leaderboards.findings.facts import Facts
from layerboard.zoo.entries.supervised import WITH_LITTLE_DATA
from layerboard.zoo.registry.find import all_specs
from layerboard.zoo.spec import BackboneSpec, Retraining

if TYPE_CHECKING:
    import pandas as pd


def known_facts() -> dict[str, Facts]:
    """The facts of every backbone of the registry, by name."""
    return {
        spec.name: Facts(
            teachers(spec),
            spec.licence,
            nan if spec.parameters is None else spec.parameters,
            tuple(stage.width for stage in spec.stages for _ in range(stage.blocks)),
            toy=spec.is_toy,
        )
        for spec in all_specs()
    }


def known_trainings() -> dict[str, Retraining]:
    """Every backbone that is another training of one of the registry, by name."""
    trainings = ((spec.name, spec.retrained) for spec in all_specs())
    return WITH_LITTLE_DATA | {name: training for name, training in trainings if training}


def known_depths() -> dict[str, int]:
    """The number of blocks of every backbone of the registry, by name."""
    return {spec.name: spec.depth for spec in all_specs()}


def teachers(spec: BackboneSpec) -> str:
    """The supervision in a word or two: images (alone), texts, labels."""
    words = {"images": ("images",), "texts": ("texts", "image-text"), "labels": ("labels",)}
    signals = [name for name, marks in words.items() if any(mark in spec.supervision for mark in marks)]
    return ", ".join(signals) or spec.supervision


def with_seen(records: "pd.DataFrame") -> "pd.DataFrame":
    """Records with what the training of each backbone has seen of the dataset (`leaderboards.sections.seen`).

    The mark is "" for backbones outside the registry, and for datasets that are not official.
    """
    from layerboard.tasks.datasets.catalogue import DATASETS

    official = {entry.name for entry in DATASETS}
    trainings = {spec.name: spec.seen for spec in all_specs()}
    pairs = records[["backbone", "dataset"]].drop_duplicates().assign(seen="")
    known = [trainings.get(str(name).partition("@")[0]) for name in pairs["backbone"]]
    pairs["seen"] = [
        training.mark(str(dataset)) if training is not None and dataset in official else ""
        for training, dataset in zip(known, pairs["dataset"], strict=True)
    ]
    return records.assign(seen=records[["backbone", "dataset"]].merge(pairs, how="left")["seen"].to_numpy())
