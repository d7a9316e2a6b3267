"""Weights of trained networks, as they are published, into formats that layerboard loads; proofs of both."""

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save_file
from safetensors.torch import save_file as save_tensors
from torch import Tensor

from layerboard.zoo.errors import InputError
from layerboard.zoo.libraries import optional

Arrays = dict[str, "np.ndarray[Any, np.dtype[np.float32]]"]


def create_untrained(name: str) -> Any:  # noqa: ANN401  # timm has no types
    """A network of timm with random weights, ready for evaluation."""
    return optional("timm", "these networks need timm").create_model(name, pretrained=False).eval()


def vit_tiny(folder: Path, to: Path) -> None:
    """Write the tensors of a folder, one file each, under the names that timm gives them.

    A file holds its shape as integers of 32 bits, and then its numbers in float32.
    """
    shapes = {
        name: tensor.shape for name, tensor in create_untrained("vit_tiny_patch16_224").state_dict().items()
    }
    arrays: Arrays = {}
    for name, shape in shapes.items():
        words = np.frombuffer((folder / f"{name.replace('.', '_')}.bin").read_bytes(), np.float32)
        arrays[name] = words[len(words) - shape.numel() :].reshape(shape)
        if not np.isfinite(arrays[name]).all():
            raise InputError(f"{name} in {folder.name} holds numbers that are not finite.")
    save_file(arrays, to)


def efficientnet_lite(name: str) -> Callable[[Path, Path], None]:
    """The function that writes an EfficientNet-Lite under timm's names; both list tensors in order of use."""

    def write(file: Path, to: Path) -> None:
        network = create_untrained(name)
        tensors: dict[str, Tensor] = torch.load(file, map_location="cpu", weights_only=True)
        state = dict(zip(network.state_dict(), tensors.values(), strict=True))
        for new, old in zip(state, tensors, strict=True):
            if new.rpartition(".")[2] != old.rpartition(".")[2]:
                raise InputError(f"{file.name}: {old} stands where timm has {new}.")
        network.load_state_dict(state)
        save_tensors({key: tensor.contiguous() for key, tensor in state.items()}, to)

    return write


def dinov2_of_onnx(file: Path, to: Path) -> None:
    """Write the DINOv2 encoder inside an ONNX graph as a folder in Hugging Face format.

    The export kept the names of vectors, and made matrices operands without names: each is named after the
    bias that is added to its product.
    """
    onnx: Any = optional("onnx", "reading this file needs onnx")
    graph = onnx.load(file).graph
    tensors: Arrays = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    prefix = "backbone."
    state = {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}
    makers = {output: node for node in graph.node for output in node.output}
    for bias, product in _added_biases(graph.node, prefix):
        node = makers.get(product)
        if node is not None and node.op_type == "MatMul":
            (matrix,) = (name for name in node.input if name in tensors)
            state[f"{bias.removeprefix(prefix).removesuffix('bias')}weight"] = tensors[matrix].T
    width = state["layernorm.weight"].size
    (first,) = (a for n, a in tensors.items() if not n.startswith(prefix) and a.shape == (1, 1, width))
    (grid,) = (array for array in tensors.values() if array.shape == (1, (518 // 14) ** 2, width))
    state["embeddings.position_embeddings"] = np.concatenate([first, grid], 1)
    state["embeddings.mask_token"] = np.zeros(
        (1, width), np.float32
    )  # only training reads it; the file has none
    to.mkdir(parents=True, exist_ok=True)
    save_file({name: np.ascontiguousarray(array) for name, array in state.items()}, to / "model.safetensors")
    config = {
        "model_type": "dinov2",
        "architectures": ["Dinov2Model"],
        "hidden_size": width,
        "num_hidden_layers": 12,
        "num_attention_heads": 6,
        "image_size": 518,
        "patch_size": 14,
        "layer_norm_eps": 1e-6,
    }
    (to / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    colours = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
    (to / "preprocessor_config.json").write_text(json.dumps(colours, indent=1) + "\n")


def _added_biases(nodes: Iterable[Any], prefix: str) -> Iterator[tuple[str, str]]:
    """Names of biases of the encoder, each with the name of what it is added to."""
    for node in nodes:
        biases = [name for name in node.input if name.startswith(prefix) and name.endswith(".bias")]
        if node.op_type == "Add" and biases:
            (other,) = (name for name in node.input if name != biases[0])
            yield biases[0], other
