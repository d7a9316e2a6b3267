"""What trainings have seen of the datasets of tasks: images, labels, similar images.

It filters nothing: the score of a backbone that has seen the dataset is shown with a mark.
"""

import re
from dataclasses import dataclass
from typing import Literal

# Images and labels of the dataset's training split or of all of it; by a teacher: a network that it was
# distilled from has seen such images; similar images were retrieved, with the dataset's as queries;
# images of its source: of the collection that the dataset was sampled from, so that some may be the same.
Kind = Literal["images", "labels", "by a teacher", "similar images", "images of its source"]

UNKNOWN = "unknown"  # cannot be told: images of the web, or of a collection that is not public
TEXTS = "with texts"  # added to a mark if the training images came with texts
NO = "no"  # the training data are known, and do not contain the dataset


@dataclass(frozen=True, slots=True)
class Seen:
    """What a training has seen of one dataset, named as on pages, and the source of that information."""

    dataset: str
    kinds: tuple[Kind, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Training:
    """What a training has seen of the datasets of tasks."""

    seen: tuple[Seen, ...] = ()
    listed: bool = True  # whether all its images are of the listed collections: it has seen nothing else
    texts: bool = False  # whether images came with texts

    def mark(self, dataset: str) -> str:
        """What a training has seen of an official dataset, by its name in records, in a few words."""
        kinds = next((", ".join(seen.kinds) for seen in self.seen if seen.dataset == dataset), "")
        mark = kinds or (NO if self.listed else UNKNOWN)
        return f"{mark}, {TEXTS}" if self.texts and mark != NO else mark

    def summary(self) -> str:
        """All that a training has seen of the official datasets, as part of a sentence."""
        by_kind: dict[str, list[str]] = {}
        for seen in self.seen:
            by_kind.setdefault(", ".join(seen.kinds), []).append(seen.dataset)
        parts = [f"{', '.join(names)} ({kind})" for kind, names in by_kind.items()]
        rest = "no other dataset of the tasks" if parts else "no dataset of the tasks"
        if not self.listed:
            rest = "whether others is unknown" if parts else "which datasets of the tasks is unknown"
        return "; ".join([*parts, rest]) + ("; images came with texts" if self.texts else "")

    @property
    def sources(self) -> tuple[str, ...]:
        """Sources of what it has seen, each once."""
        return tuple(dict.fromkeys(seen.source for seen in self.seen))


_VOC = ("voc-2012-val", "voc-2012-aug-val")
_PARTS = "He et al., PartImageNet, arXiv:2112.00933: images of 158 classes of ImageNet"


def _imagenet(*kinds: Kind, source: str) -> tuple[Seen, ...]:
    """Marks of a training on ImageNet; for PartImageNet, which has ImageNet's images, without labels."""
    parts = tuple(kind for kind in kinds if kind != "labels")
    return Seen("imagenet", kinds, source), Seen("partimagenet", parts, _PARTS)


_1K = "its training split is ImageNet-1k's"
_21K = "Deng et al., ImageNet, CVPR 2009: the whole of ImageNet, of which ImageNet-1k is a part"
# ImageNet-22k is in it as it is. Queries of what was retrieved were ImageNet-1k, the training splits of VOC
# 2007 and 2012, of ADE20K and of CUB (from memory, not looked up), the database images of revisited Oxford
# and Paris, and others. What nearly repeats an image of a benchmark's test or validation split was taken out
# before (appendix A.3 there).
_LVD = "Oquab et al., DINOv2, arXiv:2304.07193, table 15"
# Its files have VOC 2012's names. Its paper names PASCAL3D+, too (from memory, not looked up); were images of
# that dataset's part of ImageNet among them, trainings on ImageNet would have seen those.
_SPAIR = "Min et al., SPair-71k, arXiv:1908.10543: its images are Pascal VOC's"
_LVD_MARKS = (
    *_imagenet("images", source=_LVD),
    *(Seen(name, ("similar images",), _LVD) for name in (*_VOC, "ade20k-val", "roxford5k", "rparis6k")),
    Seen("cub", ("similar images",), _LVD),
    Seen("spair-71k-test", ("similar images",), _SPAIR),
)

NOTHING = Training()  # of rendered images, or untrained
IMAGENET_1K = Training(_imagenet("images", source=_1K))
IMAGENET_1K_LABELS = Training(_imagenet("images", "labels", source=_1K))
IMAGENET_21K = Training(_imagenet("images", source=_21K))
IMAGENET_21K_LABELS = Training(_imagenet("images", "labels", source=_21K))
LVD_142M = Training(_LVD_MARKS, listed=False)
# ImageNet-1k and -22k and Mapillary's streets are in the training as they are. Another part was retrieved
# with datasets as queries that are not named, so that nobody can tell of VOC, ADE20K and others.
LVD_1689M = Training(
    _imagenet("images", source="Siméoni et al., DINOv3, arXiv:2508.10104, section 3.1"), listed=False
)
# Beside videos of Something-Something v2, Kinetics, HowTo100M and YT-Temporal-1B, part of which was chosen by
# its likeness to datasets of actions.
VIDEOMIX = Training(
    _imagenet("images", source="Assran et al., V-JEPA 2, arXiv:2506.09985, table 1: VideoMix22M has it"),
    listed=False,
)
# SA-1B's own images were licensed for it, and are in none of the datasets of tasks.
_SA_1B = "Kirillov et al., Segment Anything, arXiv:2304.02643, section 3: it began as an MAE"
MAE_AND_SA_1B = Training(_imagenet("images", source=_SA_1B))
_ADE20K = "Zhou et al., Scene Parsing through ADE20K Dataset, CVPR 2017: images of LabelMe, SUN and Places"
PLACES = Training((Seen("ade20k-val", ("images of its source",), _ADE20K),))
# Images of the web or of a collection that is not public, without and with texts.
WEB = Training(listed=False)
WEB_TEXTS = Training(listed=False, texts=True)


def taught_by_dino(source: str) -> Training:
    """What a network has seen whose teachers saw ImageNet and texts; its own images are not named."""
    return Training(_imagenet("by a teacher", source=source), listed=False, texts=True)


# How much a collection holds, by the name that the data of an entry have for it, and who says so. Where that
# is a paper, the number is from memory of it, not looked up again.
_SIZES = {
    "ImageNet-1k": "1,281,167 images (Russakovsky et al., IJCV 2015, table 2)",
    "ImageNet-21k": "14,197,122 images (image-net.org, 21,841 classes)",
    "ImageNet-22k": "14,197,122 images (image-net.org, 21,841 classes)",
    "Places205": "2.4 M images (Zhou et al., NIPS 2014)",
    "LVD-142M": "142 M images (Oquab et al., DINOv2, table 15)",
    "LVD-1689M": "1,689 M images (Siméoni et al., DINOv3, section 3.1)",
    "SA-1B": "11 M images (Kirillov et al., Segment Anything)",
    "VideoMix22M": "22 M videos and images (Assran et al., V-JEPA 2, table 1)",
    "WIT-400M": "400 M pairs (Radford et al., CLIP, section 2.2)",
    "WebLI": "10 G images, with texts of all languages (Chen et al., PaLI, arXiv:2209.06794)",
    "LAION-2B": "about 2 G pairs (docs/PRETRAINED.md of mlfoundations/open_clip)",
    "LAION-600M": "600 M images (its name)",
    "MetaCLIP, 2.5 G": "2.5 G pairs (README of facebookresearch/MetaCLIP)",
    "MetaCLIP-2B": "2 G images (its name)",
    "5.4 G": "image-text pairs, beside 22 M videos (Bolya et al., Perception Encoder)",
}


def training_size(data: str) -> str:
    """How much data an entry was trained on, by what its ``data`` name, with sources; "" if nobody says."""
    named = [name for name in _SIZES if re.search(rf"{re.escape(name)}(?!\d)", data)]
    return "; ".join(f"{name}: {_SIZES[name]}" for name in named)
