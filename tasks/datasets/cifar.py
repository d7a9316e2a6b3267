"""CIFAR-10 and CIFAR-100 (Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009).

They are read from the Hub's tables, or as PNG files in folders of classes, such as those of fast.ai's
archive ``cifar10.tgz``. Write the images of the authors' batches there to use those.
"""

from dataclasses import replace

from layerboard.tasks.datasets.classes import ProbeSubset
from layerboard.tasks.datasets.imagenet import ImageNetEntry
from layerboard.tasks.datasets.packs.hub_tables import tables_of

CLASSES = (*("airplane", "automobile", "bird", "cat", "deer"), *("dog", "frog", "horse", "ship", "truck"))


def _entry(name: str, classes: int, probe: ProbeSubset) -> ImageNetEntry:
    tables = tables_of(f"uoft-cs/{name}")
    return ImageNetEntry(
        name=name,
        folder=tables.folder,
        classes=classes,
        train=50_000,
        val=10_000,
        probe=probe,
        below="<class>/*.png",
        tested="test",
        unsorted="sort its images into folders test/<class>/",
        source=f"hf:{tables.repository}",
        revision=tables.revision or "",
    )


CIFAR_10 = _entry("cifar10", len(CLASSES), ProbeSubset(CLASSES, per_class=500))  # as many as ImageNet-50 has
CIFAR_100 = _entry("cifar100", 100, ProbeSubset(None, per_class=50))
# The split of Raghu et al., NeurIPS 2021, arXiv:2108.08810: the last 5,000 training images are validation.
CIFAR_RAGHU = tuple(
    replace(entry, name=f"{entry.name}-raghu", train=45_000, val=5_000, first_tested=45_000)
    for entry in (CIFAR_10, CIFAR_100)
)
