"""Places365 and iNaturalist 2021: scenes and species, in folders of classes as their archives have them."""

from layerboard.tasks.datasets.classes import ProbeSubset
from layerboard.tasks.datasets.imagenet import ImageNetEntry

# Zhou et al., TPAMI 2018: Places365-Standard, in its small form of 256 x 256 px. Counts are those that the
# documentation of torchvision's Places365 has; the layout of the archive is from memory, not looked up.
PLACES_365 = ImageNetEntry(
    name="places365",
    folder="places365_standard",
    classes=365,
    train=1_803_460,
    val=36_500,
    probe=ProbeSubset(None, per_class=14),  # about 5,000 images, as ImageNet-50 has
    below="<class>/*.jpg",
    unsorted="take the archive in easy format, whose images lie in folders val/<class>/",
)
# Van Horn et al., CVPR 2021, arXiv:2103.16483: the full training set; the 500,000 images of train_mini
# may lie in folder train instead, which is then said to be partial. Counts and layout are from memory, not
# looked up.
INATURALIST_2021 = ImageNetEntry(
    name="inaturalist2021",
    folder="inat2021",
    classes=10_000,
    train=2_686_843,
    val=100_000,
    probe=ProbeSubset(None, per_class=1),
    below="<class>/*.jpg",
    unsorted="its archive val.tar.gz has them in folders val/<class>/",
)
