"""The sizes of networks, and how an entry is made from what its family shares."""

import csv
from dataclasses import dataclass, replace
from pathlib import Path

from layerboard.zoo.spec import HALF, IMAGENET, BackboneSpec, Normalisation, Stage
from layerboard.zoo.spec.origin import ORIGINAL
from layerboard.zoo.spec.weights import NO_FILE, WeightFile


@dataclass(frozen=True, slots=True)
class NetworkSize:
    """Blocks and channels of each stage (a plain ViT has one), attention heads, and hidden width of the MLP.

    Heads are those of the last stage, None for a ConvNet; ``mlp`` is None for 4 x the width. A ``gated`` MLP
    has that width on either side of its gate.
    """

    blocks: tuple[int, ...]
    widths: tuple[int, ...]
    heads: int | None = None
    mlp: int | None = None
    gated: bool = False


SMALL = NetworkSize((12,), (384,), 6)
BASE = NetworkSize((12,), (768,), 12)
LARGE = NetworkSize((24,), (1024,), 16)
HUGE = NetworkSize((32,), (1280,), 16)
SO400M = NetworkSize((27,), (1152,), 16, mlp=4304)
GIANT = NetworkSize((40,), (1536,), 24, mlp=4096, gated=True)  # DINOv2's, two thirds of 4 x the width

WIDTHS_T = (96, 192, 384, 768)  # of ConvNeXt and Swin, and the next two
WIDTHS_B = (128, 256, 512, 1024)
WIDTHS_L = (192, 384, 768, 1536)

# What most families share. In the entry of a family, ``repository`` and ``original`` are patterns, in which
# ``{0}`` is replaced by the name that its members give; with ``original``, no repository has the weights.
# ``trained_size`` is given if checkpoints for images of other sizes are other members of the family. A
# ``recipe`` whose source is a file of the authors' code was read there in November 2026; one whose source is
# a paper is from memory of it, not looked up again.
FAMILY = BackboneSpec(
    name="",
    family="",
    supervision="",
    repository="{0}",
    model_types=("vit",),
    stages=(),
    heads=None,
    prefix_tokens=1,
    has_cls=True,
    has_final=True,
    mean=IMAGENET.mean,
    std=IMAGENET.std,
    licence="Apache-2.0",
)


def normalised(family: BackboneSpec, by: Normalisation) -> BackboneSpec:
    """The family with this normalisation of images."""
    return replace(family, mean=by.mean, std=by.std)


CENTRED = normalised(FAMILY, HALF)  # the same, for images from -1 to 1

PINS = Path(__file__).parent / "pins.csv"
"""One row for each entry of whose published file something is known: commit, name, SHA-256, bytes, sources.

A commit is pinned if two independent sources name it, or if one saw it as the newest of the repository.
"""


def _published() -> dict[str, tuple[str | None, WeightFile]]:
    """The pinned commit, None for none, and the published file of entries, by name of the entry."""
    with PINS.open(encoding="utf-8", newline="") as lines:
        return {
            row["entry"]: (
                row["revision"] or None,
                WeightFile(
                    row["file"],
                    row["sha256"],
                    int(row["size"]) if row["size"] else None,
                    row["source"],
                    row["note"],
                ),
            )
            for row in csv.DictReader(lines)
        }


_PUBLISHED = _published()


def entry(
    family: BackboneSpec, name: str, source: str, size: NetworkSize, patch: int, parameters: int
) -> BackboneSpec:
    """A backbone of a family; ``parameters`` is the number of weights that run.

    ``source`` is inserted into the pattern of its family's repository or files; files in no repository have
    the names of the authors' code. ``patch`` is the side in pixels of a cell of the first stage; it doubles
    from stage to stage. Without prefix tokens there is no class token.
    """
    revision, file = _PUBLISHED.get(name, (None, NO_FILE))
    strides = (patch * 2**index for index in range(len(size.blocks)))
    return replace(
        family,
        name=name,
        repository="" if family.original else family.repository.format(source),
        original=family.original.format(source).replace("/resolve/main/", f"/resolve/{revision or 'main'}/"),
        origin=ORIGINAL if family.original else family.origin,
        revision=revision,
        file=file,
        stages=tuple(map(Stage, size.blocks, size.widths, strides)),
        mlp_width=size.mlp,
        gated_mlp=size.gated,
        heads=size.heads,
        has_cls=family.has_cls and family.prefix_tokens > 0,
        parameters=parameters,
    )
