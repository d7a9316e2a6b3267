"""The page of `look` in a real browser, opened from a file, with the network watched."""

import re

import numpy as np
import pytest
from PIL import Image

import layerboard
from layerboard.benchmark.commands.result import page_files
from tests import fakes

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("look")
    generator = np.random.default_rng(0)
    for name in ("a <b>.png", "b.png"):
        fakes.fake_image(len(name), (64, 48), generator)[0].save(folder / name)
    layerboard.look(
        folder, backbones=["mini-dino", "mini-resnet"], to=folder / "page.html", input_size=64, save=True
    )
    return folder / "page.html"


@pytest.fixture(scope="module")
def tab(browser, page, watch):
    """One tab for all tests; what it asks for and what it says is kept."""
    opened = browser.new_context(viewport={"width": 1000, "height": 800}).new_page()
    asked, said = watch(opened)
    opened.goto(f"{page.as_uri()}#view=similarity&layer=6&picture=1&x=0.3&y=0.6")
    opened.wait_for_selector("html[data-ready]")
    yield opened
    files = {url.partition("#")[0] for url in asked if not url.startswith(("data:", "blob:", "about:"))}
    assert files == {page.as_uri()}
    assert said == []


def until(tab, script):
    """Wait until an expression of the page is true; the page's policy lets no library ask for that."""
    for _ in range(200):
        if tab.evaluate(script):
            return
        tab.wait_for_timeout(25)
    raise AssertionError(script)


def captions(tab):
    """What stands below the maps of the first backbone."""
    return tab.locator(".row").nth(1).locator("figcaption").all_inner_texts()


def test_the_address_says_what_is_shown_and_cosines_are_numpys(tab, page):
    assert tab.input_value("#view") == "similarity"
    assert tab.inner_text("#layer-name") == "7"
    assert tab.inner_text("#chosen") == "Patch in row 4, column 3 of b.png."
    with np.load(page.with_name("page-files") / "mini-dino.npz") as file:
        scores, along, square = (file[f"7.{name}"] for name in ("scores", "along", "square"))
        rows, columns = file["7.grids"][1]
    chosen = rows * columns + 3 * columns + 2  # both pictures have one size
    cosines = square + along[chosen] + along + scores @ scores[chosen]
    shown = [list(map(float, re.findall(r"-?[\d.]+", text))) for text in captions(tab)]
    expected = [[part.min(), part.max()] for part in np.split(cosines, 2)]
    np.testing.assert_allclose(shown, expected, atol=0.02)
    assert tab.locator(".row").nth(1).locator(".nearest").count() == 1


def test_the_patch_follows_the_pointer_until_it_is_held(tab):
    box = tab.locator("button.stack").first.bounding_box()
    tab.mouse.move(box["x"] + 5, box["y"] + 5)
    until(
        tab, "document.querySelector('#chosen').textContent.startsWith('Patch in row 1, column 1 of a <b>')"
    )
    tab.mouse.click(box["x"] + box["width"] - 5, box["y"] + 5)
    until(tab, "document.querySelector('#chosen').textContent.includes('column 8')")
    tab.mouse.move(box["x"] + 5, box["y"] + 5)
    tab.wait_for_timeout(50)
    assert "row 1, column 8 of a <b>.png, held" in tab.inner_text("#chosen")
    tab.mouse.move(1, 1)
    tab.keyboard.press("Escape")
    until(tab, "!document.querySelector('#chosen').textContent.includes('held')")


def test_the_keyboard_suffices(tab):
    tab.locator("#below").focus()
    for _ in range(3):  # the region that scrolls, then the pictures
        tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.dataset.picture") == "1"
    tab.keyboard.press("ArrowDown")
    until(tab, "document.querySelector('#chosen').textContent.includes('row 2, column 8 of b.png')")
    tab.locator("#layer").focus()
    tab.keyboard.press("ArrowRight")
    until(tab, "document.querySelector('#layer-name').textContent === '8'")
    assert "layer=7" in tab.url
    assert "y=0.25" in tab.url


def test_what_a_network_lacks_is_said_in_its_row(tab):
    tab.select_option("#view", "rollout")
    until(tab, "document.querySelectorAll('.row p:not([hidden])').length === 1")
    assert tab.inner_text(".row p:not([hidden])") == "mini-resnet has no attention."
    assert tab.locator(".row").nth(1).locator("canvas:visible").count() == 2
    assert tab.locator(".row").nth(2).locator("canvas:visible").count() == 0


def test_heads_and_layers_are_columns(tab):
    tab.select_option("#columns", "heads")
    assert tab.input_value("#view") == "attention"
    until(tab, "document.querySelectorAll('.row:nth-child(2) figcaption:not(:empty)').length === 4")
    assert [text.partition(":")[0] for text in captions(tab)] == ["mean", "head 1", "head 2", "head 3"]
    tab.select_option("#view", "colours")
    tab.select_option("#columns", "layers")
    until(tab, "document.querySelectorAll('.row:nth-child(2) figcaption:not(:empty)').length === 13")
    assert captions(tab)[-1] == "final norm"


def test_attention_of_the_chosen_patch_is_beside_its_cosine(tab, page):
    tab.select_option("#columns", "pictures")
    tab.select_option("#view", "similarity")
    tab.select_option("#columns", "heads")
    assert tab.input_value("#view") == "similarity"
    until(tab, "document.querySelectorAll('.row:nth-child(2) figcaption:not(:empty)').length === 5")
    names, spans = zip(*(text.split(": ") for text in captions(tab)), strict=True)
    assert names == ("cosine", "mean", "head 1", "head 2", "head 3")
    row, column, picture = re.search(
        r"row (\d+), column (\d+) of (.*?)[.,]", tab.inner_text("#chosen")
    ).groups()
    layer, number = tab.inner_text("#layer-name"), 1 + (picture == "b")
    with np.load(page.with_name("page-files") / "mini-dino.npz") as file:
        wide = file[f"{layer}.grids"][number - 1][1]
        given = file[f"{layer}.matrix-{number}"][:, 1 + (int(row) - 1) * wide + int(column) - 1, 1:]
    shown = [[float(each) for each in re.findall(r"[\d.]+", span)] for span in spans[1:]]
    np.testing.assert_allclose(
        shown, 100 * np.stack([given.min(axis=1), given.max(axis=1)], axis=1), atol=0.2
    )


def test_all_tokens_are_a_picture_of_one_head(tab):
    tab.select_option("#view", "matrix")
    until(
        tab, "document.querySelector('.row:nth-child(2) canvas').width === 49"
    )  # class token, 6 x 8 patches
    assert [text.partition(":")[0] for text in captions(tab)] == ["mean", "head 1", "head 2", "head 3"]
    assert tab.inner_text("#reading").startswith("Attention of every token (rows) to every token (columns)")
    tab.select_option("#columns", "pictures")
    tab.wait_for_selector("#head", state="visible")  # the page draws when it has time
    tab.select_option("#view", "colours")


def test_a_wall_shows_every_head_of_every_layer_in_the_frame_of_its_kind(tab):
    tab.select_option("#columns", "wall")
    assert tab.input_value("#view") == "attention"
    until(tab, "document.querySelectorAll('.wall figcaption:not(:empty)').length === 36")
    assert captions(tab)[:13] == [*(f"{layer}.1" for layer in range(1, 13)), "1.2"]
    assert len(tab.locator("#reading .kind").all_inner_texts()) == 5
    kinds = tab.evaluate(
        "[...document.querySelectorAll('.wall .stack')].map((stack) => stack.title.split(':')[0])"
    )
    assert set(kinds) <= {"strict", "offset", "axial", "soft", "global"}
    frames = tab.evaluate(
        "[...document.querySelectorAll('.wall .stack')].map((stack) => stack.style.outlineWidth)"
    )
    assert frames == ["3px"] * 36
    tab.select_option("#view", "colours")
    assert tab.input_value("#columns") == "pictures"
    tab.select_option("#columns", "layers")
    until(tab, "document.querySelectorAll('.row:nth-child(2) figcaption:not(:empty)').length === 13")


def test_colours_are_those_of_the_arrays(tab, page):
    with np.load(page.with_name("page-files") / "mini-dino.npz") as file:
        expected = file["final.colours"].reshape(2, -1, 3)[1]
    script = """() => { const canvas = [...document.querySelectorAll('.row:nth-child(2) canvas')].at(-1);
      return [...canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data]; }"""
    found = np.array(tab.evaluate(script)).reshape(-1, 4)[:, :3]
    np.testing.assert_array_equal(found, expected)
    with Image.open(page.with_name("page-files") / "mini-dino.colours.png") as figure:
        assert figure.size == (14 * 230 - 6, 20 + 2 * 174 - 6)  # the picture and 13 layers; two pictures
        assert figure.getpixel((13 * 230 + 2, 20 + 174 + 2)) == tuple(expected[0])


def test_cells_are_smooth_or_blocks(tab):
    drawn = "getComputedStyle(document.querySelector('.row canvas')).imageRendering"
    assert tab.evaluate(drawn) == "auto"
    tab.select_option("#cells", "blocks")
    until(tab, f"{drawn} === 'pixelated'")
    assert "cells=blocks" in tab.url


def test_the_page_opens_at_the_layer_whose_colours_hold_most(tab, page):
    shares = []
    for name in ("mini-dino", "mini-resnet"):
        with np.load(page.with_name("page-files") / f"{name}.npz") as file:
            names = [key.removesuffix(".shares") for key in file.files if key.endswith(".shares")]
            shares.append([file[f"{layer}.shares"][:3].sum() for layer in names])
    most = len(shares[0])
    places = [round(place * (len(shares[1]) - 1) / (most - 1) + 1e-9) for place in range(most)]
    best = int(np.argmax([shares[0][place] + shares[1][other] for place, other in enumerate(places)]))
    tab.goto("about:blank")
    tab.goto(page.as_uri())
    tab.wait_for_selector("html[data-ready]")
    assert tab.input_value("#layer") == str(best)
    assert best != most - 1
    assert tab.inner_text("#layer-name") == [*map(str, range(1, 13)), "final"][best]


def test_axe_finds_nothing_serious(tab, serious):
    tab.evaluate("document.querySelector('details').open = true")
    for view in ("similarity", "length"):
        tab.select_option("#view", view)
        assert serious(tab) == []


@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_is_wider_than_the_window(tab, width):
    tab.set_viewport_size({"width": width, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    tab.click("#theme")
    assert "theme=" in tab.url


def test_in_the_frame_of_a_notebook_it_works_as_by_itself(tab, page, tmp_path, watch):
    around = tmp_path / "cell.html"
    around.write_text(f"<!doctype html>{page_files([page])._repr_html_()}", encoding="utf-8")
    opened = tab.context.new_page()
    _, said = watch(opened)
    opened.goto(around.as_uri())
    frame = opened.frame_locator("iframe")
    frame.locator("html[data-ready]").wait_for()
    frame.locator("#view").select_option("similarity")
    assert frame.locator("#chosen").inner_text().startswith("Patch in row")
    assert said == []
    opened.close()
