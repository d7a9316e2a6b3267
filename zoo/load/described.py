"""The facts of a spec that was inferred, as a run says them of a backbone outside the registry."""

from layerboard.zoo.errors import counted
from layerboard.zoo.spec import BackboneSpec


def titled(spec: BackboneSpec) -> str:
    """A backbone's name, with its path if that is another one on this machine."""
    is_path = spec.path and spec.repository != spec.name
    return f"{spec.name} ({spec.repository.removeprefix(spec.origin.mark)})" if is_path else spec.name


def shape_in_words(spec: BackboneSpec) -> str:
    """A backbone's blocks, heads, tokens, cells and norm in words."""
    widths, strides = (
        "/".join(map(str, dict.fromkeys(getattr(stage, name) for stage in spec.stages)))
        for name in ("width", "stride")
    )
    tokens = "a class token" if spec.has_cls else "no class token"
    parts = [
        f"{counted(spec.depth, 'blocks')} of width {widths}",
        f"{spec.heads} heads" if spec.heads else "no attention",
        f"{counted(spec.prefix_tokens, 'prefix tokens')} ({tokens})",
        f"patch size {strides} px",
        "a final norm" if spec.has_final else "no final norm",
    ]
    return ", ".join(parts)


def images_in_words(spec: BackboneSpec) -> str:
    """The size of its images, and their normalisation."""
    return f"images at {spec.input_size} px; {normalisation_of(spec)}"


def normalisation_of(spec: BackboneSpec) -> str:
    """The numbers by which pixels in [0, 1] are normalised."""
    mean, std = (", ".join(f"{value:.4g}" for value in values) for values in (spec.mean, spec.std))
    return f"mean ({mean}) and std ({std})"
