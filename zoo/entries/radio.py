"""C-RADIO: networks distilled from several teachers at once, of NVIDIA.

One class token for each teacher precedes the registers: the one that is read is that of the first teacher
in the authors' list. Positions are fitted bilinearly to the longer side and then cut, and
``--interpolation`` has no say in it. No norm follows the last block. The authors' ``config.json`` is read
as it is, also that of other RADIO repositories (``--backbones nvidia/...``); their code is not run.
Evaluated at 224 px here; the authors recommend 512 px. Teachers of v3: DFN CLIP, SigLIP 2, DINOv2 and SAM;
of v4: SigLIP 2, DINOv3 and SAM 3.
"""

from dataclasses import replace

from zoo.entries.shapes import HUGE, ViTFamily
from zoo.seen import taught_by_dino
from zoo.spec import UNIT, BackboneSpec

_RADIO = ViTFamily(
    family="RADIO",
    supervision="images, by teachers of images, texts and masks",
    data="not public",
    seen=taught_by_dino("Oquab et al., DINOv2, arXiv:2304.07193, table 15"),
    normalisation=UNIT,  # The network itself normalises, by the numbers in its file.
    licence="NVIDIA Open Model License",
    paper="Heinrich et al., RADIOv2.5: Improved Baselines for Agglomerative Vision Foundation Models, "
    "CVPR 2025, arXiv:2412.07679",
    model_types=("radio",),
    prefix_tokens=8,
)
_V4 = replace(
    _RADIO,
    seen=taught_by_dino("Siméoni et al., DINOv3, arXiv:2508.10104, section 3.1"),
    paper="Ranzinger et al., C-RADIOv4, 2026, arXiv:2601.17237",
    prefix_tokens=10,
)


def _unnormed(spec: BackboneSpec) -> BackboneSpec:
    return replace(spec, has_final=False)


ENTRIES: tuple[BackboneSpec, ...] = (
    _unnormed(_RADIO.entry("c-radio-v3-h16", "nvidia/C-RADIOv3-H", HUGE, 16, 651_724_800)),
    _unnormed(_V4.entry("c-radio-v4-h16", "nvidia/C-RADIOv4-H", HUGE, 16, 651_727_360)),
)
