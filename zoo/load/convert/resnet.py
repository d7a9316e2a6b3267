"""ResNets under torchvision's names, as DINO and MoCo-v3 publish theirs."""

from collections.abc import Mapping

from torch import Tensor
from transformers import ResNetConfig

from zoo.load.convert.names import Converted, affine, check_names, depth_of, needed, refuse, shape_of
from zoo.spec import BackboneSpec

_UNUSED = (r"^(fc|head)\.", r"num_batches_tracked$")
_STAGES = 4
_STATISTICS = ("running_mean", "running_var")


def convert_resnet(tensors: Mapping[str, Tensor], spec: BackboneSpec) -> Converted:
    """A ResNet as ``ResNetModel``; see `zoo.load.convert.convert`.

    Blocks with three convolutions stride in the 3x3 one (v1.5), as torchvision's always have.
    """
    if spec.heads is not None:
        refuse(spec, "it is a ResNet, and the entry is a transformer")
    tensors = needed(tensors, _UNUSED)
    depths = [depth_of(tensors, f"layer{number}.{{}}.") for number in range(1, _STAGES + 1)]
    convolutions = 3 if "layer1.0.conv3.weight" in tensors else 2
    table = _pair("conv1", "bn1", "embedder.embedder")
    for stage, depth in enumerate(depths):
        for index in range(depth):
            old, new = f"layer{stage + 1}.{index}", f"encoder.stages.{stage}.layers.{index}"
            for part in range(convolutions):
                table |= _pair(f"{old}.conv{part + 1}", f"{old}.bn{part + 1}", f"{new}.layer.{part}")
            if f"{old}.downsample.0.weight" in tensors:
                table |= _pair(f"{old}.downsample.0", f"{old}.downsample.1", f"{new}.shortcut")
    check_names(tensors, table, "torchvision's ResNet", spec)
    if 0 in depths:
        refuse(spec, f"its {_STAGES} stages have {depths} blocks")
    last = (f"layer{number}.0.conv{convolutions}.weight" for number in range(1, _STAGES + 1))
    config = ResNetConfig(
        num_channels=shape_of(tensors, "conv1.weight", 4, spec)[1],
        embedding_size=shape_of(tensors, "conv1.weight", 4, spec)[0],
        hidden_sizes=[shape_of(tensors, name, 4, spec)[0] for name in last],
        depths=depths,
        layer_type="bottleneck" if convolutions == 3 else "basic",
        hidden_act="relu",
    )
    return Converted(config, {new: tensors[old] for old, new in table.items()})


def _pair(convolution: str, norm: str, new: str) -> dict[str, str]:
    """Names of a convolution and of the batch norm after it, old to new."""
    statistics = {f"{norm}.{name}": f"{new}.normalization.{name}" for name in _STATISTICS}
    return {
        f"{convolution}.weight": f"{new}.convolution.weight",
        **affine({norm: f"{new}.normalization"}),
        **statistics,
    }
