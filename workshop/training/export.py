"""A trained backbone as a directory in Hugging Face format, with a card that says how it was made."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor
from transformers import PreTrainedModel

from layerboard.mini.random_weights import preprocessor
from layerboard.zoo.atomic import write_whole
from layerboard.zoo.errors import InputError
from layerboard.zoo.spec import BackboneSpec


def save_backbone(
    backbone: PreTrainedModel,
    spec: BackboneSpec,
    card: str,
    history: Sequence[Mapping[str, float]],
    folder: Path,
) -> None:
    """Write ``config.json``, float16 weights, the input normalisation, the history and the model card.

    Raises InputError: a weight is not finite in float16.
    """
    tensors = {name: _half(name, tensor) for name, tensor in backbone.state_dict().items()}
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "model.safetensors", save(tensors, metadata={"format": "pt"}))
    config = backbone.config.to_dict() | {"architectures": [type(backbone).__name__], "dtype": "float16"}
    write_whole(folder / "config.json", json.dumps(config, indent=2, sort_keys=True) + "\n")
    write_whole(folder / "preprocessor_config.json", preprocessor(spec) + "\n")
    write_whole(folder / "history.json", json.dumps(list(history), indent=0) + "\n")
    write_whole(folder / "README.md", card)


def _half(name: str, tensor: Tensor) -> Tensor:
    if not tensor.is_floating_point():
        return tensor.detach().cpu().contiguous()
    half = tensor.detach().to("cpu", torch.float16).contiguous()
    if not bool(torch.isfinite(half).all()):
        raise InputError(f"the weight {name} does not fit into float16; train with a smaller learning rate")
    return half


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


def model_card(name: str, facts: Mapping[str, object], command: str, recipe: str) -> str:
    """The model card of a backbone, in Markdown: facts by what they are of, and the command that trains it.

    The recipe is all numbers of the objective, in words.
    """
    table = "\n".join(f"| {what} | {fact} |" for what, fact in facts.items())
    return (
        f"---\nlicense: apache-2.0\nlibrary_name: transformers\n---\n\n# {name}\n\n"
        "A small backbone of layerboard's mini suite, trained on rendered images. It shows how families "
        "differ layer by layer; it is of no use for photographs.\n\n"
        f"| | |\n|---|---|\n{table}\n\nMade by\n\n```bash\n{command}\n```\n\n"
        f"Numbers of the objective:\n\n```\n{recipe}\n```\n\n"
        "`history.json` has the losses and the collapse checks of the whole training.\n\n"
        f"{IN_FLOAT32}"
    )
