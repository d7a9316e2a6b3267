"""The page of all backbones in docs; run as a module (``python -m``), this writes it again."""

from itertools import groupby
from pathlib import Path

from layerboard.benchmark.plan.facts import teachers
from layerboard.leaderboards.blocks.display import count_text
from layerboard.zoo.registry.find import all_specs
from layerboard.zoo.spec import BackboneSpec

PATH = Path(__file__).parents[3] / "docs" / "reference" / "backbones.md"

_HEAD = """\
# Backbones

<!-- Written by `python -m tests.benchmark.commands.backbones_page` from `zoo/entries/`. -->

The registry. `layerboard list backbones` shows the same, filtered by `--where` (family,
supervision, licence, parameters); `layerboard list backbones NAME` shows all that is known of
one. Any model of the Hub or timm, and your own network, run [without an entry](../how-to/own_backbones.md).

- **blocks** are the layers that are scored, and the width of the last; **grid** is the cells of an image of
  the size in px at which it is evaluated, a side of the first and of the last stage where stages differ;
  **prefix** is the tokens before the patches: the class token (c) and others, such as registers.
- **weights** are those of the network as it is run, without heads and other towers.
- **final** says whether a norm over all tokens or cells follows the last block, so that there is
  a layer `final`.
- A **revision** that is pinned is a commit of the repository, named by two independent sources, or seen as
  its newest. Where none is, the newest is taken when the backbone is first loaded, and
  `OUTPUT/run.yaml` keeps it with the file's SHA-256, as one of its `pins`: later runs into that folder
  take the same, and refuse others.
- **SHA-256**: the first digits of that of the published file, where it is known. A file with another digest
  or size is refused. `list backbones NAME` has all digits, the size, who says so, and what is still open.
- What is loaded is compared with its entry (architecture, blocks, widths, strides, heads, MLP and gate,
  prefix tokens, class token, final norm, size of training images) and refused where they differ.
- **Has seen** says what the training has seen of the datasets that tasks use: `images` and `labels` of their
  training split (or of a collection that holds it); images `by a teacher` that it was distilled from;
  `similar images`, which were looked for with the dataset's as queries; `images of its source`, of which some
  may be the same. For images of the web it is unknown. No backbone and no score is left out for it; the
  leaderboards mark it.
- **gated**: its repository gives the files to those who have accepted its terms and are logged in.
"""
_COLUMNS = (
    *("name", "blocks", "input", "grid", "prefix", "final", "weights", "repository", "revision", "SHA-256"),
)


def page() -> str:
    """The whole page, Markdown."""
    trained = [spec for spec in all_specs() if not spec.origin.supply]
    ours = [spec for spec in all_specs() if spec.origin.supply]
    packaged, generated = (
        ", ".join(f"`{spec.name}`" for spec in ours if spec.is_toy == toy) for toy in (True, False)
    )
    families = [_family(name, list(specs)) for name, specs in groupby(trained, lambda spec: spec.family)]
    last = (
        f"## With the package\n\n{packaged}: the mini suite, trained on rendered images; each has a card in "
        "[mini/weights](../../mini/weights).\n\n"
        f"{generated}: untrained networks and random floors, from a seed.\n"
    )
    text = f"{len(trained)} backbones in {len(families)} families.\n"
    return "\n".join((_HEAD, text, *families, last))


def _family(name: str, specs: list[BackboneSpec]) -> str:
    head = f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}\n"
    rows = "".join(f"| {' | '.join(_cells(spec))} |\n" for spec in specs)
    return f"## {name}\n\n{''.join(_origins(specs))}\n{head}{rows}"


def _origins(specs: list[BackboneSpec]) -> list[str]:
    """What entries were trained on and by whom, one line for all that share it."""
    texts: dict[str, list[str]] = {}
    for spec in specs:
        gated = "; gated" if spec.gated else ""
        code = f", code: [{spec.code}](https://github.com/{spec.code})" if spec.code else ""
        recipe = f"Recipe: {spec.recipe or 'not known'}{code}."
        text = f"{spec.paper}. {_sentence(spec)} {recipe} Licence: {spec.licence}{gated}."
        texts.setdefault(text, []).append(f"`{spec.name}`")
    return [f"- {', '.join(names)}: {text}\n" for text, names in texts.items()]


def _sentence(spec: BackboneSpec) -> str:
    seen = "nobody has said" if spec.seen is None else spec.seen.summary()
    return f"Learned from {teachers(spec)} ({spec.supervision}); data: {spec.data}. Has seen: {seen}."


def _cells(spec: BackboneSpec) -> tuple[str, ...]:
    registers = spec.prefix_tokens - spec.has_cls
    prefix = " + ".join(["c"] * spec.has_cls + [str(registers)] * bool(registers)) or "none"
    at = f"[{spec.repository}](https://huggingface.co/{spec.repository})"
    file = f"none; [file]({spec.original}) with `--weights`"
    return (
        f"`{spec.name}`",
        f"{spec.depth} x {spec.width}",
        f"{spec.input_size} px",
        _grid(spec),
        prefix,
        "yes" if spec.has_final else "no",
        count_text(spec.parameters) or "unknown",
        at if spec.repository else file,
        spec.revision[:12] if spec.revision else "not pinned",
        spec.file.sha256[:12] or "not known",
    )


def _grid(spec: BackboneSpec) -> str:
    """Grid at the input size, such as 14x14; if stages differ, cells per side of first and last, 56..7."""
    sides = [spec.input_size // stage.stride for stage in spec.stages]
    return f"{sides[0]}x{sides[0]}" if len(sides) == 1 else f"{sides[0]}..{sides[-1]}"


if __name__ == "__main__":
    PATH.write_text(page(), encoding="utf-8")
