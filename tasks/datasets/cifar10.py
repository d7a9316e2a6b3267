"""CIFAR-10 (Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009) as PNG files.

They are in folders of classes, ``cifar10/{train,test}/<class>/*.png``, as in fast.ai's archive
``cifar10.tgz``. Write the images of the authors' batches there to use those.
"""

from layerboard.tasks.datasets.classes import ProbeSubset
from layerboard.tasks.datasets.imagenet import ImageNetEntry

CLASSES = (*("airplane", "automobile", "bird", "cat", "deer"), *("dog", "frog", "horse", "ship", "truck"))
CIFAR_10 = ImageNetEntry(
    name="cifar10",
    folder="cifar10",
    classes=len(CLASSES),
    train=50_000,
    val=10_000,
    probe=ProbeSubset(CLASSES, per_class=500),  # as many images as ImageNet-50 has
    below="<class>/*.png",
    tested="test",
    unsorted="sort its images into folders test/<class>/",
)
