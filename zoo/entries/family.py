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
# ``trained_size`` is given if checkpoints for images of other sizes are other members of the family.
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

# Commits of repositories to which entries are pinned.
_REVISIONS = {
    "clip-b32": "3d74acf9a28c67741b2f4f2ea7635f0aaf6f0268",
    "clip-b16": "57c216476eefef5ab752ec549e440a49ae4ae5f3",
    "clip-l14": "32bd64288804d66eefd0ccbe215aa642df71cc41",
    "dinov2-s14": "ed25f3a31f01632728cabb09d1542f84ab7b0056",
    "dinov2-b14": "f9e44c814b77203eaa57a6bdbbd535f21ede1415",
    "dinov2-l14": "47b73eefe95e8d44ec3623f8890bd894b6ea2d6c",
    "dinov2-g14": "611a9d42f2335e0f921f1e313ad3c1b7178d206d",
    "siglip-b16": "7fd15f0689c79d79e38b1c2e2e2370a7bf2761ed",
    "siglip-l16": "d0da9f876e7d66b4e250cd2450c3ba2ce735e447",
    "siglip-so400m14": "d04cf29fca7b6374f74d8bea1969314492266b5e",
    "siglip2-b16": "75de2d55ec2d0b4efc50b3e9ad70dba96a7b2fa2",
    "aimv2-l14": "fcb5093a9c5b3efb7db5acee213849967fd18210",
    "aimv2-h14": "172051d9df825cda55607cfe9016da30f249a133",
}


def entry(
    family: BackboneSpec, name: str, source: str, size: NetworkSize, patch: int, parameters: int
) -> BackboneSpec:
    """A backbone of a family; ``parameters`` is the number of weights that run.

    ``source`` is inserted into the pattern of its family's repository or files; files in no repository have
    the names of the authors' code. ``patch`` is the side in pixels of a cell of the first stage; it doubles
    from stage to stage. Without prefix tokens there is no class token.
    """
    strides = (patch * 2**index for index in range(len(size.blocks)))
    return replace(
        family,
        name=name,
        repository="" if family.original else family.repository.format(source),
        original=family.original.format(source),
        origin=ORIGINAL if family.original else family.origin,
        revision=_REVISIONS.get(name),
        stages=tuple(map(Stage, size.blocks, size.widths, strides)),
        mlp_width=size.mlp,
        gated_mlp=size.gated,
        heads=size.heads,
        has_cls=family.has_cls and family.prefix_tokens > 0,
        parameters=parameters,
    )
