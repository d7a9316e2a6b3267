"""Networks trained on other networks or on masks, and the floor: RADIO, SAM, random."""

from dataclasses import replace

from layerboard.zoo.entries.architecture import Architecture
from layerboard.zoo.entries.distilled import DINOV2
from layerboard.zoo.entries.family import CENTRED, FAMILY, normalised
from layerboard.zoo.spec import UNIT, BackboneSpec, Stage
from layerboard.zoo.spec.origin import FLOOR
from layerboard.zoo.spec.seen import MAE_AND_SA_1B, NOTHING, taught_by_dino

# C-RADIO: networks distilled from several teachers at once, of NVIDIA. One class token for each teacher
# precedes the registers: the one that is read is that of the first teacher in the authors' list. Positions
# are fitted bilinearly to the longer side and then cut, and ``--interpolation`` has no say in it. No norm
# follows the last block. The authors' ``config.json`` is read as it is, also that of other RADIO repositories
# (``--backbones nvidia/...``); their code is not run. Evaluated at 224 px here; the authors recommend 512 px.
# Teachers of v3: DFN CLIP, SigLIP 2, DINOv2 and SAM; of v4: SigLIP 2, DINOv3 and SAM 3.
RADIO = replace(
    normalised(FAMILY, UNIT),  # the network itself normalises, by the numbers in its file
    family="RADIO",
    supervision="images, by teachers of images, texts and masks",
    data="not public",
    seen=taught_by_dino("Oquab et al., DINOv2, arXiv:2304.07193, table 15"),
    licence="NVIDIA Open Model License",
    paper="Heinrich et al., RADIOv2.5: Improved Baselines for Agglomerative Vision Foundation Models, "
    "CVPR 2025, arXiv:2412.07679",
    recipe="from DFN CLIP, SigLIP 2, DINOv2 and SAM; the authors recommend 512 px, evaluated at 224 px here "
    "(README of its code)",
    code="NVlabs/RADIO",
    model_types=("radio",),
    prefix_tokens=8,
    has_final=False,
)
RADIO_V4 = replace(
    RADIO,
    seen=taught_by_dino("Siméoni et al., DINOv3, arXiv:2508.10104, section 3.1"),
    paper="Ranzinger et al., C-RADIOv4, 2026, arXiv:2601.17237",
    recipe="from SigLIP 2, DINOv3 and SAM 3; the authors recommend 512 px, evaluated at 224 px here (README "
    "of its code)",
    prefix_tokens=10,
)

# SAM: image encoders that were pre-trained by masking (MAE), then with masks of SA-1B. Blocks attend inside
# windows of 14 cells a side, four of them to the whole image; relative positions are fitted linearly, as the
# authors' code does. It has no rule for the absolute ones at other sizes, where they are resized here.
# Evaluated at the 1024 px of the training; ``--input-size`` takes others. No layer is read behind the last
# block, where convolutions follow (the neck).
SAM = replace(
    FAMILY,
    family="SAM",
    supervision="images, then masks of SA-1B",
    data="ImageNet-1k (by MAE), SA-1B",
    seen=MAE_AND_SA_1B,
    paper="Kirillov et al., Segment Anything, ICCV 2023, arXiv:2304.02643",
    recipe="MAE, then masks of SA-1B at 1024 px (the paper, section 3)",
    code="facebookresearch/segment-anything",
    model_types=("sam_vision_model",),
    prefix_tokens=0,
    has_final=False,
    input_size=1024,
    trained_size=1024,
)

ARCHITECTURES: tuple[Architecture, ...] = (
    replace(
        DINOV2,
        model_type="radio",
        final_norm=None,
        unused=(r"(^|\.)summary_idxs$", r"^radio_model\.(adaptors|(inter_)?feature_normalizer)\."),
        family="RADIO",
        normalisation=UNIT,
    ),
    Architecture(
        model_type="sam_vision_model",
        tower_of="sam",
        body="vision_encoder",
        blocks="vision_encoder.layers",
        final_norm=None,
        prefix_tokens=0,
        layout="cells",
        unused=(r"^(prompt_encoder|mask_decoder|shared_image_embedding)\.",),
        family="SAM",
    ),
)


def floor(name: str, width: int, patch: int, input_size: int) -> BackboneSpec:
    """The random floor of a suite with that width, patch and input size in pixels; it has ten draws."""
    return replace(
        CENTRED,
        name=name,
        family="random",
        supervision="none",
        data="none",
        seen=NOTHING,
        parameters=0,
        repository="generated",
        origin=FLOOR,
        model_types=(),
        stages=(Stage(10, width, patch),),
        has_final=False,
        input_size=input_size,
        licence="none",
        paper="Walmer et al., Teaching Matters, CVPR 2023, arXiv:2212.03862",
        trained=False,
    )


def raw_pixels(name: str, patch: int, input_size: int) -> BackboneSpec:
    """The raw pixels, as a second floor with that patch and input size; it has one block."""
    return replace(
        floor(name, 3 * patch**2, patch, input_size),
        family="pixels",
        stages=(Stage(1, 3 * patch**2, patch),),
        paper="Torralba et al., 80 million tiny images, TPAMI 2008",
    )
