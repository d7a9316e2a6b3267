"""Light: shading of surfaces, cast shadows, and effects of the lens and the sensor."""

from dataclasses import dataclass
from math import cos, sin

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFilter

from workshop.render.seeds import Rng
from workshop.render.shapes import Field, clamp


@dataclass(frozen=True, slots=True)
class Light:
    """Directional light and camera response."""

    direction: float  # radians in the image plane that the light comes from
    height: float  # radians above the image plane
    ambient: float  # brightness of a surface that faces away, 0 to 1
    exposure: float  # brightness factor of the whole picture
    tint: tuple[float, float, float]  # factor of each channel
    ramp: float  # strength of the brightness ramp over the picture, 0 to 1
    vignette: float  # darkening of the corners, 0 to 1
    shadow: float  # darkness of cast shadows, 0 to 1
    grain: float  # standard deviation of sensor noise, 0 to 1
    blur: float  # radius of the lens blur in pixels

    @property
    def vector(self) -> tuple[float, float, float]:
        """Unit vector to the light: x right, y down, z to the viewer."""
        flat = cos(self.height)
        return (flat * cos(self.direction), flat * sin(self.direction), sin(self.height))


def draw_light(rng: Rng, strength: float) -> Light:
    """Random light; 0 is an overcast noon, 1 anything from dusk to a lamp from the side."""
    warmth = rng.uniform(-0.22, 0.22) * strength
    return Light(
        direction=float(rng.uniform(-np.pi, 0) if rng.uniform() < 0.85 else rng.uniform(0, np.pi)),
        height=float(rng.uniform(1.2 - 0.8 * strength, 1.3)),
        ambient=float(rng.uniform(0.65 - 0.3 * strength, 0.78)),
        exposure=float(np.exp(0.1 + rng.uniform(-0.5, 0.3) * strength)),
        tint=(float(1 + warmth), float(1 + rng.uniform(-0.06, 0.06) * strength), float(1 - warmth)),
        ramp=float(rng.uniform(0, 0.55) * strength),
        vignette=float(rng.uniform(0, 0.4) * strength),
        shadow=float(rng.uniform(0.15, 0.55)),
        grain=float(rng.uniform(0.004, 0.008 + 0.025 * strength)),
        blur=float(max(0.0, rng.uniform(-0.6, 0.7) * strength)),
    )


def brightness(light: Light, x: Field, y: Field) -> Field:
    """Brightness of a surface with that normal in image axes; about 0.4 to 1.15."""
    z = np.sqrt(clamp(1 - (x * x + y * y), 0.04, 1))
    lx, ly, lz = (np.float32(component) for component in light.vector)
    facing = clamp(x * lx + y * ly + z * lz, 0, 1)
    return np.float32(light.ambient) + np.float32(1.12 - light.ambient) * facing


def cast_shadow(light: Light, coverage: Field, reach: float) -> Field:
    """Darkening by something of that coverage ``reach`` pixels before the background, [height width]."""
    image = Image.fromarray((coverage * np.float32(255)).astype(np.uint8))
    blurred = image.filter(ImageFilter.BoxBlur(max(1.0, reach * 0.4)))
    x, y, _ = light.vector
    shifted = blurred.transform(
        image.size, Image.Transform.AFFINE, (1, 0, reach * x, 0, 1, reach * y), Image.Resampling.BILINEAR
    )
    return np.asarray(shifted, np.float32) * np.float32(light.shadow / 255)


def develop(light: Light, scene: Field, rng: Rng) -> NDArray[np.uint8]:
    """Picture, uint8 [height width 3], of a scene [3 height width]: ramp, vignette, tint, blur, grain."""
    height, width = scene.shape[1:]
    x = np.linspace(-1, 1, width, dtype=np.float32)[None, :]
    y = np.linspace(-1, 1, height, dtype=np.float32)[:, None]
    lx, ly, _ = light.vector
    gain = 1 + np.float32(light.ramp * 0.7) * (x * np.float32(lx) + y * np.float32(ly))
    gain = gain * (1 - np.float32(light.vignette * 0.5) * (x * x + y * y)) * np.float32(light.exposure)
    lit = scene * gain * np.array(light.tint, np.float32)[:, None, None]
    # One grain for all channels, as of film: a third of the draws.
    lit += rng.standard_normal((height, width), np.float32) * np.float32(light.grain)
    planes = (clamp(lit, 0, 1) * np.float32(255) + np.float32(0.5)).astype(np.uint8)
    picture = np.ascontiguousarray(planes.transpose(1, 2, 0))
    if light.blur < 0.15:
        return picture
    return np.asarray(Image.fromarray(picture).filter(ImageFilter.GaussianBlur(light.blur)))
