"""A trained backbone as a directory in Hugging Face format, with a card that says how it was made."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor
from transformers import PreTrainedModel

from mini.random_weights import preprocessor
from zoo.atomic import whole_file
from zoo.errors import InputError
from zoo.spec import BackboneSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """What a model card says."""

    name: str
    objective: str
    supervision: str  # what it learned from
    paper: str  # where the method is from
    data: str  # what the images are
    steps: int
    batch_size: int
    images: int  # different training images
    seed: int  # of weights, order and draws
    device: str  # where it was trained, in words
    version: str  # of the package
    commit: str | None  # of its repository; None where that is not known
    command: str  # that trains it again
    recipe: str  # all numbers of the objective, in words
    licence: str  # SPDX id of the weights' licence
    history: Sequence[Mapping[str, float]]  # rows of the training, the last of which is shown


def export(backbone: PreTrainedModel, spec: BackboneSpec, card: Card, folder: Path) -> None:
    """Write ``config.json``, float16 weights, the input normalisation, the history and the model card.

    Raises InputError: a weight is not finite in float16.
    """
    tensors = {name: _half(name, tensor) for name, tensor in backbone.state_dict().items()}
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(folder / "model.safetensors") as draft:
        draft.write_bytes(save(tensors, metadata={"format": "pt"}))
    config = backbone.config.to_dict() | {"architectures": [type(backbone).__name__], "dtype": "float16"}
    _write(folder / "config.json", json.dumps(config, indent=2, sort_keys=True) + "\n")
    _write(folder / "preprocessor_config.json", preprocessor(spec) + "\n")
    _write(folder / "history.json", json.dumps(list(card.history), indent=0) + "\n")
    _write(folder / "README.md", text(card))


def _half(name: str, tensor: Tensor) -> Tensor:
    if not tensor.is_floating_point():
        return tensor.detach().cpu().contiguous()
    half = tensor.detach().to("cpu", torch.float16).contiguous()
    if not bool(torch.isfinite(half).all()):
        raise InputError(f"the weight {name} does not fit into float16; train with a smaller learning rate")
    return half


def _write(path: Path, content: str) -> None:
    with whole_file(path) as draft:
        draft.write_text(content, encoding="utf-8")


# The end of every card.
IN_FLOAT32 = """\
The weights are float16, and so is the network that `AutoModel.from_pretrained` makes of this directory. In
float32, as layerboard runs it:

```python
import torch
from transformers import AutoModel

model = AutoModel.from_pretrained("path/to/this/directory", dtype=torch.float32)
```
"""


def text(card: Card) -> str:
    """The model card, in Markdown."""
    epochs = card.steps * card.batch_size / card.images
    rows = {
        "objective": f"{card.objective} ({card.paper})",
        "learned from": card.supervision,
        "data": card.data,
        "steps": f"{card.steps:,}",
        "batch": f"{card.batch_size:,}",
        "images seen": f"{card.steps * card.batch_size:,} ({epochs:.1f} epochs of {card.images:,})",
        "seed": card.seed,
        "device": card.device,
        "package": f"layerboard {card.version}, commit {card.commit or 'not known'}",
        "weights": "float16",
    }
    for row in card.history[-1:]:
        rows |= {f"last {name}": f"{value:.4g}" for name, value in row.items() if name != "step"}
    table = "\n".join(f"| {name} | {value} |" for name, value in rows.items())
    return (
        f"---\nlicense: {card.licence.lower()}\nlibrary_name: transformers\n---\n\n# {card.name}\n\n"
        "A small backbone of layerboard's mini suite, trained on rendered images. It shows how families "
        "differ layer by layer; it is of no use for photographs.\n\n"
        f"| | |\n|---|---|\n{table}\n\nMade by\n\n```bash\n{card.command}\n```\n\n"
        f"Numbers of the objective:\n\n```\n{card.recipe}\n```\n\n"
        "`history.json` has the losses and the collapse checks of the whole training.\n\n"
        f"{IN_FLOAT32}"
    )
