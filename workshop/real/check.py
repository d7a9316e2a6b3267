"""The k-NN column of the board of real networks, recomputed with timm, transformers, torch and numpy alone.

    python -m workshop.real.check DIR TABLE.csv [NAME ...]

DIR is what ``python -m workshop.real --to DIR`` wrote, TABLE.csv the table of the photographs, and NAME a
backbone of that table, such as ``dinov2-s14-saliency``; without one, every backbone is recomputed. Nothing
of layerboard is imported. A line for each layer and pooling has both scores, and the number of photographs
that make the difference; the exit code is 1 if it is more than one anywhere, or if a row has no counterpart.
Of each network follows how far its last layer is below its best block, and what its last block adds, in
points with a paired interval of 95 %.
"""

import csv
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from safetensors.torch import load_file
from torch import Tensor, nn

Floats = NDArray[np.floating[Any]]
Encoder = Callable[[Tensor], dict[str, Tensor]]
"""From images to vectors by layer, tap and pooling, such as ``7 block cls``."""

NEIGHBOURS, TEMPERATURE, BATCH = 20, 0.07, 25
HALVES = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def shown(file: Path, side: int, colours: tuple[tuple[float, ...], ...]) -> Tensor:
    """A square photograph, enlarged to 8/7 of a side, of which the central square of that side is shown."""
    with Image.open(file) as opened:
        large = opened.convert("RGB").resize((round(side * 8 / 7),) * 2, Image.Resampling.BICUBIC)
    edge = round((large.width - side) / 2)
    pixels = np.asarray(large.crop((edge, edge, edge + side, edge + side)))
    mean, std = (torch.tensor(values)[:, None, None] for values in colours)
    return (torch.from_numpy(pixels.copy()).permute(2, 0, 1) / 255 - mean) / std


def outputs_of(network: nn.Module, blocks: Iterable[nn.Module]) -> Callable[[Tensor], list[Tensor]]:
    """A function from images to the output of every block."""
    seen: list[Tensor] = []
    for block in blocks:
        block.register_forward_hook(lambda _, __, output: seen.append(output))

    def outputs(images: Tensor) -> list[Tensor]:
        seen.clear()
        network(images)
        return seen

    return outputs


def of_tokens(network: nn.Module, blocks: Iterable[nn.Module], norm: nn.Module) -> Encoder:
    """Class token and mean of patches after every block of a transformer, and after its final norm."""
    outputs = outputs_of(network, blocks)

    def vectors(images: Tensor) -> dict[str, Tensor]:
        seen = outputs(images)
        layers = {f"{number} block": tokens for number, tokens in enumerate(seen, 1)}
        layers[f"{len(seen)} final"] = norm(seen[-1])
        by_pooling: dict[str, Callable[[Tensor], Tensor]] = {
            "cls": lambda tokens: tokens[:, 0].clone(),
            "mean": lambda tokens: tokens[:, 1:].mean(1),
        }
        return {
            f"{layer} {name}": pool(tokens)
            for layer, tokens in layers.items()
            for name, pool in by_pooling.items()
        }

    return vectors


def of_maps(network: nn.Module, blocks: Iterable[nn.Module]) -> Encoder:
    """Mean of the map after every block of a convolutional network."""
    outputs = outputs_of(network, blocks)
    return lambda images: {
        f"{at} block mean": maps.mean((2, 3)) for at, maps in enumerate(outputs(images), 1)
    }


def encoders(folder: Path) -> Iterator[tuple[str, int, tuple[tuple[float, ...], ...], Encoder]]:
    """Every network by its name on the board, with the side and normalisation of what it is shown."""
    import timm
    from transformers import Dinov2Model

    for name in ("vit_tiny_patch16_224", *(f"tf_efficientnet_lite{size}" for size in range(3))):
        network: Any = timm.create_model(name, pretrained=False).eval()
        network.load_state_dict(load_file(folder / f"{name}.safetensors"))
        if name.startswith("vit"):
            yield f"timm:{name}", 224, HALVES, of_tokens(network, network.blocks, network.norm)
        else:  # of which 240 and 260 pixels are no multiple of the last stage's 32
            side = 224 if name.endswith("0") else 256
            blocks = [block for stage in network.blocks for block in stage]
            yield f"timm:{name}", side, HALVES, of_maps(network, blocks)
    dino: Any = Dinov2Model.from_pretrained(folder / "dinov2-s14-saliency", dtype=torch.float32)
    dino.eval()
    yield "dinov2-s14-saliency", 224, IMAGENET, of_tokens(dino, dino.encoder.layer, dino.layernorm)


def hits(bank: Floats, labels: NDArray[np.int64], queries: Floats, truth: NDArray[np.int64]) -> Floats:
    """100 for each query whose nearest neighbours vote for its class, weighted by exp(cosine / T), else 0."""
    bank, queries = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (bank, queries))
    cosine = queries @ bank.T
    near = np.argsort(-cosine, axis=1, kind="stable")[:, :NEIGHBOURS]
    weights = np.exp(np.take_along_axis(cosine, near, axis=1) / TEMPERATURE)
    votes = np.zeros((len(queries), labels.max() + 1))
    np.add.at(votes, (np.arange(len(queries))[:, None], labels[near]), weights)
    correct: Floats = 100.0 * (votes.argmax(axis=1) == truth)
    return correct


def recomputed(folder: Path, names: Collection[str]) -> Iterator[tuple[tuple[str, str], Floats]]:
    """Of every named network, layer, tap and pooling, which photographs are classified rightly."""
    photographs = folder / "tiny-imagenet-50"
    files = {split: sorted((photographs / split).glob("*/*.JPEG")) for split in ("train", "val")}
    classes = sorted({file.parent.name for file in files["train"]})
    labels = {split: np.array([classes.index(file.parent.name) for file in files[split]]) for split in files}
    for name, side, colours, encode in encoders(folder):
        if name not in names:
            continue
        vectors: dict[str, dict[str, Floats]] = {}
        for split, every in files.items():
            parts: dict[str, list[Tensor]] = {}
            for start in range(0, len(every), BATCH):
                images = torch.stack([shown(file, side, colours) for file in every[start : start + BATCH]])
                with torch.inference_mode():
                    for layer, part in encode(images).items():
                        parts.setdefault(layer, []).append(part)
            for layer, some in parts.items():
                vectors.setdefault(layer, {})[split] = torch.cat(some).double().numpy()
        for layer, both in vectors.items():
            yield (name, layer), hits(both["train"], labels["train"], both["val"], labels["val"])


def on_board(table: Path) -> dict[tuple[str, str], tuple[float, int]]:
    """Scores of the k-NN column by network and layer, tap and pooling, with the number of photographs."""
    with table.open(encoding="utf-8", newline="") as stream:
        return {
            (row["backbone"], f"{row['layer']} {row['tap']} {row['pooling']}"): (
                float(row["value"]),
                int(row["n"]),
            )
            for row in csv.DictReader(stream)
            if row["task"] == "knn" and row["metric"] == "top-1" and row["trained"] == "True"
        }


def gaps_between_layers(right: Mapping[str, Floats]) -> Iterator[str]:
    """What the last layer costs beside the best block of one pooling, and what the last block adds."""
    blocks = [layer for layer in right if " block " in layer]
    best = max(blocks, key=lambda layer: right[layer].mean())
    pooling = best.rpartition(" ")[2]
    last = [layer for layer in right if layer.endswith(pooling)][-1]
    *_, before, end = (layer for layer in blocks if layer.endswith(pooling))
    for higher, lower in ((best, last), (end, before)):
        gap = right[higher] - right[lower]
        margin = 1.96 * gap.std(ddof=1) / len(gap) ** 0.5
        ends = f"{gap.mean() - margin:.1f} to {gap.mean() + margin:.1f}"
        yield f"{higher} is {gap.mean():.1f} points above {lower} (95 %: {ends})"


def main(folder: str, table: str, *names: str) -> int:
    """Compare what is recomputed with the rows of the table, or of some networks; returns the exit code."""
    every, worst = on_board(Path(table)), 0
    chosen = names or {name for name, _ in every}
    if unknown := {*chosen} - {name for name, _ in every}:
        print(f"not on the board: {', '.join(sorted(unknown))}")
        return 2
    board = {key: row for key, row in every.items() if key[0] in chosen}
    by_network: dict[str, dict[str, Floats]] = {}
    for key, right in recomputed(Path(folder), chosen):
        by_network.setdefault(key[0], {})[key[1]] = right
        score = float(right.mean())
        known, count = board.pop(key, (float("nan"), 1))
        images = round(abs(score - known) * count / 100) if known == known else count
        worst = max(worst, images)
        print(f"{' '.join(key)}: {score:.4f}, on the board {known:.4f}: {images} photographs", flush=True)
    for name, layer in board:
        print(f"{name} {layer}: on the board alone")
    for name, layers in by_network.items():
        for sentence in gaps_between_layers(layers):
            print(f"{name}: {sentence}")
    return int(worst > 1 or bool(board))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
