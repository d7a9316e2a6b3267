"""A figure as SVG: on a page, in the page's colours, or as a separate file."""

import re
from collections import Counter
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from layerboard.leaderboards.blocks.blocks import Picture, Plot, alternative
from layerboard.leaderboards.charts import engine
from layerboard.leaderboards.charts.pictures import picture_spec
from layerboard.leaderboards.charts.style import FONT

SVG, LINK = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"

# style of a separate file, light or dark as the reader's system is
_STYLE = (
    "svg{color:#1b1f24;background:#fff}"
    "@media(prefers-color-scheme:dark){svg{color:#e6edf3;background:#0d1117}}"
)

# attributes without effect here, default values of attributes, and attributes that a group may set for all of
# its children
_IDLE = ("class", "role", "pointer-events", "font-family", "stroke-miterlimit", "version")
_USUAL = {"opacity": "1", "stroke-width": "1", "font-weight": "normal", "stroke-dasharray": "1,0"}
_INHERITED = ("fill", "stroke", "stroke-width", "stroke-opacity", "font-size", "font-weight", "text-anchor")
_PLACES = ("d", "transform", "x", "y", "x2", "y2", "width", "height")  # attributes whose values are pixels
_NUMBER = re.compile(r"-?\d+\.\d+(e-?\d+)?")


def svg_file(picture: Picture, backbones: Sequence[str] = ()) -> str:
    """The figure as the text of a file, small and deterministic; backbones keep their colours."""
    root = _drawn(picture, backbones, "p")
    style = ET.Element("style")
    style.text = _STYLE
    root.insert(1, style)
    return ET.tostring(root, encoding="unicode") + "\n"


def svg_element(picture: Picture, backbones: Sequence[str], prefix: str) -> str:
    """The figure as an element of a page, in the page's colours, whose anchors begin with a prefix.

    The page makes it about as large as it was drawn, so that the text of all figures has one size.
    """
    root = _drawn(picture, backbones, prefix)
    wide, high = (root.attrib.pop(side) for side in ("width", "height"))
    root.set("style", f"--wide:{wide}px;--high:{high}px")
    return ET.tostring(root, encoding="unicode")


def _drawn(picture: Picture, backbones: Sequence[str], prefix: str) -> ET.Element:
    """The figure without what the library adds for scripts, with numbers of one decimal."""
    text: str = engine.render_chart(picture_spec(picture, backbones))
    root = ET.fromstring(text.replace(f'xmlns="{SVG}"', "", 1))  # noqa: S314 - written by ourselves
    _slim(root)
    _share(root)
    _rename(root, prefix)
    alone = isinstance(picture, Plot) and "panel" not in picture.frame
    box = {"xmlns": SVG, "width": root.get("width", ""), "height": root.get("height", "")}
    said = {"role": "img", "aria-label": engine.written(picture.title if alone else alternative(picture))}
    drawn = ET.Element("svg", box | {"viewBox": root.get("viewBox", ""), "font-family": FONT} | said)
    ET.SubElement(drawn, "title").text = engine.written(picture.title)
    drawn.extend(root)
    ET.indent(drawn, "")
    return drawn


def _slim(element: ET.Element) -> None:
    """Remove elements without visible effect, and groups that only contain other groups."""
    for name, value in [*element.attrib.items()]:
        if name in _IDLE or name.startswith("aria-") or _USUAL.get(name) == value:
            del element.attrib[name]
        elif name in _PLACES:
            element.set(name, _NUMBER.sub(lambda found: f"{round(float(found[0]), 1):g}", value))
    if LINK in element.attrib:
        element.set("href", element.attrib.pop(LINK))
    if element.get("transform") in ("translate(0,0)", "translate(0.5,0.5)"):
        del element.attrib["transform"]
    children = []
    for child in element:
        _slim(child)
        inner = [*child] if child.tag == "g" and not child.attrib else [child]
        children += [part for part in inner if not _blank(part)]
    element[:] = children
    for name in _INHERITED if element.tag == "g" and len(children) > 2 else ():
        values = {child.get(name) for child in children}
        if len(values) == 1 and None not in values:
            element.set(name, children[0].attrib[name])
            for child in children:
                del child.attrib[name]


def _blank(element: ET.Element) -> bool:
    if element.tag == "path":
        painted = {element.get("fill", "none"), element.get("stroke", "none")} != {"none"}
        return not element.get("d") or not painted or element.get("display") == "none"
    return element.tag == "g" and not len(element)


def _share(root: ET.Element) -> None:
    """Store marks that are drawn often only once."""
    marks = [mark for mark in root.iter("path") if mark.get("transform", "").startswith("translate(")]
    kinds = [tuple((name, value) for name, value in mark.items() if name != "transform") for mark in marks]
    counts = enumerate(Counter(kinds).items())
    often = {kind: f"mark{number}" for number, (kind, count) in counts if count > 2}
    for mark, kind in zip(marks, kinds, strict=True):
        if kind in often:
            x, y = mark.attrib["transform"].removeprefix("translate(").removesuffix(")").split(",")
            mark.tag = "use"
            mark.attrib = {"href": f"#{often[kind]}", "x": x, "y": y}
    defined = ET.Element("defs")
    defined.extend(ET.Element("path", {"id": name} | dict(kind)) for kind, name in often.items())
    root[:0] = [defined] if often else []


def _rename(root: ET.Element, prefix: str) -> None:
    """Number the anchors after a prefix: the library counts across all figures of a process."""
    anchors = [name for element in root.iter() if (name := element.get("id"))]
    names = {anchor: f"{prefix}{number}" for number, anchor in enumerate(anchors)}
    for element in root.iter():
        for name, value in element.attrib.items():
            if name == "id":
                element.set(name, names[value])
            elif name == "href" and value.startswith("#"):
                element.set(name, f"#{names[value[1:]]}")
            elif value.startswith("url(#"):
                element.set(name, f"url(#{names[value[5:-1]]})")
