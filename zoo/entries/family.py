"""The sizes of networks, and how an entry is made from what its family shares."""

from dataclasses import dataclass, replace

from layerboard.zoo.spec import HALF, IMAGENET, BackboneSpec, Normalisation, Stage
from layerboard.zoo.spec.origin import ORIGINAL


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


# Of plain ViTs, as far as other files name them.
SMALL = NetworkSize((12,), (384,), 6)
BASE = NetworkSize((12,), (768,), 12)
LARGE = NetworkSize((24,), (1024,), 16)
HUGE = NetworkSize((32,), (1280,), 16)
SO400M = NetworkSize((27,), (1152,), 16, mlp=4304)

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


def entry(
    family: BackboneSpec, name: str, source: str, size: NetworkSize, patch: int, parameters: int
) -> BackboneSpec:
    """A backbone of a family; ``parameters`` is the number of weights that run.

    ``source`` is inserted into the pattern of its family's repository or files; files in no repository have
    the names of the authors' code. ``patch`` is the side in pixels of a cell of the first stage; it doubles
    from stage to stage. Without prefix tokens there is no class token.
    """
    commit = family.revision or "main"
    strides = (patch * 2**index for index in range(len(size.blocks)))
    return replace(
        family,
        name=name,
        repository="" if family.original else family.repository.format(source),
        original=family.original.format(source).replace("/resolve/main/", f"/resolve/{commit}/"),
        origin=ORIGINAL if family.original else family.origin,
        stages=tuple(map(Stage, size.blocks, size.widths, strides)),
        mlp_width=size.mlp,
        gated_mlp=size.gated,
        heads=size.heads,
        has_cls=family.has_cls and family.prefix_tokens > 0,
        parameters=parameters,
    )
