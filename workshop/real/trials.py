"""Proofs that converted weights are the trained network: classes of photographs, or its own ONNX graph."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file

from layerboard.benchmark.plan.backbones import with_weights
from layerboard.zoo.errors import InputError
from layerboard.zoo.libraries import optional
from layerboard.zoo.load.backbone import load_backbone
from layerboard.zoo.load.feature_fingerprint import FeatureFingerprint, feature_fingerprint
from layerboard.zoo.registry.find import find
from layerboard.zoo.spec import BackboneSpec
from workshop.real.convert import create_untrained
from workshop.real.networks import RealNetwork

FINGERPRINTS = Path(__file__).parent / "fingerprints"
"""Folder with twelve numbers of layers of each network on drawn images, by the name of its weights."""

LEAST_RIGHT = 15
"""Of the 17 photographs, those that a network has to classify rightly."""

LARGEST_DIFFERENCE = 1e-4
"""Between features of two implementations, in parts of the largest feature."""


def try_network(network: RealNetwork, weights: Path, converted: Path, photographs: Path) -> str:
    """What a converted network was tried on, with the result; raises InputError if it is not the trained."""
    if network.timm:
        return _try_classes(network.timm, converted, photographs)
    return _try_graph(weights, converted)


def fingerprint_of(network: RealNetwork, converted: Path) -> FeatureFingerprint:
    """Twelve numbers of the middle and of the last layers of a converted network on drawn images."""
    specs: Sequence[BackboneSpec] = find([f"timm:{network.timm}" if network.timm else str(converted)])
    if network.timm:
        specs = with_weights(specs, {f"timm:{network.timm}": converted})
    (spec,) = (each for each in specs if not each.is_floor)
    backbone = load_backbone(spec, device=torch.device("cpu"), cache_dir=converted.parent)
    return replace(feature_fingerprint(backbone), backbone=converted.stem)


def _try_classes(name: str, converted: Path, photographs: Path) -> str:
    """Show photographs, in timm's own view, to the network with its classifier."""
    data: Any = optional("timm.data", "these networks need timm")
    network = create_untrained(name)
    network.load_state_dict(load_file(converted))
    view = data.create_transform(**data.resolve_data_config({}, model=network))
    wordnet = data.ImageNetInfo()
    files = sorted(photographs.glob("*.JPEG"))
    right = 0
    for file in files:  # called after its class in WordNet
        with Image.open(file) as image, torch.inference_mode():
            best = network(view(image.convert("RGB"))[None]).argmax()
        right += wordnet.index_to_label_name(int(best)) == file.name.partition("_")[0]
    if right < LEAST_RIGHT:
        raise InputError(f"{name} classifies {right} of {len(files)} photographs rightly, not {LEAST_RIGHT}.")
    return f"{right} of {len(files)} photographs classified rightly"


def _try_graph(file: Path, converted: Path) -> str:
    """Compare the features after the final norm with those of the ONNX graph that the weights come from."""
    from transformers import Dinov2Model

    onnx: Any = optional("onnx", "reading this file needs onnx")
    runtime: Any = optional("onnxruntime", "running this file needs onnxruntime")
    model = onnx.load(file)
    (norm,) = (n.output[0] for n in model.graph.node if "backbone.layernorm.bias" in n.input)
    model.graph.output.append(onnx.helper.make_empty_tensor_value_info(norm))
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    images = torch.randn(2, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    (wanted,) = session.run([norm], {session.get_inputs()[0].name: images.numpy()})
    network: Any = Dinov2Model.from_pretrained(converted, dtype=torch.float32)
    with torch.inference_mode():
        features = network(images).last_hidden_state.numpy()
    difference = float(np.abs(features - wanted).max() / np.abs(wanted).max())
    if not difference <= LARGEST_DIFFERENCE:
        raise InputError(
            f"{converted.name} differs from {file.name} by {difference:.1e} of the largest feature."
        )
    return f"within {difference:.1e} of the largest feature of its own ONNX graph"
