"""Panels in space, equal axes and heat maps with numbers: on the page and in print."""

import base64
import hashlib
import html
import json
import re
import subprocess

import numpy as np
import pytest
from matplotlib.figure import Figure

from hdica.report.interactive import figure
from hdica.report.page import render
from hdica.report.place import is_figure
from hdica.report.printed import draw, files, hidden
from hdica.show.panel import Heat, Line, Panel, Places, Surface, edges
from hdica.show.words import words
from tests.browser.look import CHROMIUM, FLAGS

POLAR, AROUND = np.meshgrid(np.linspace(0, np.pi, 31), np.linspace(0, 2 * np.pi, 61))
X, Y, Z = np.sin(POLAR) * np.cos(AROUND), np.sin(POLAR) * np.sin(AROUND), np.cos(POLAR)
AXES = np.eye(3) * 1.02


def sphere(view=(0.0, 0.0), **changes):
    """A landscape on the sphere with three places, the first of them towards the eye."""
    items = (
        Surface(X, Y, Z, X**4 + Y**4 + Z**4, words("f")),
        Places(*AXES, words("maxima"), "#D55E00"),
        Places(*AXES[:, :2] * -1.0, words("minima"), "#000000", "diamond"),
    )
    labels = words("Landscape"), words("v1"), words("v2")
    return Panel("sphere", *labels, items, z_label=words("v3"), equal=True, view=view, **changes)


def test_a_surface_and_places_are_drawn_in_a_scene_that_turns():
    drawn = figure(sphere(view=(90.0, 0.0)))
    surface, places, others = drawn["data"]
    assert (surface["type"], places["type"]) == ("surface", "scatter3d")
    assert np.array(surface["z"]).shape == Z.shape
    assert np.array(surface["surfacecolor"]) == pytest.approx(X**4 + Y**4 + Z**4, rel=1e-4)
    assert surface["cmin"] == pytest.approx(1 / 3, abs=0.01)
    assert others["marker"]["symbol"] == "diamond"
    scene = drawn["layout"]["scene"]
    assert (scene["aspectmode"], scene["dragmode"]) == ("data", "orbit")
    eye = scene["camera"]["eye"]
    assert abs(eye["x"]) < 1e-9 < eye["y"]
    assert scene["zaxis"]["title"]["text"] == "v3"
    json.dumps(drawn, allow_nan=False)


@pytest.mark.deep
def test_a_printed_surface_is_the_same_bytes_twice():
    first = files(sphere())
    assert files(sphere()) == first
    assert all(is_figure(name, content) for name, content in first.items())


@pytest.mark.parametrize(
    ("view", "expected"), [((0.0, 0.0), 0), ((90.0, 0.0), 1), ((180.0, 0.0), None)]
)
def test_places_behind_a_surface_are_told_in_print(view, expected):
    def unseen(panel):
        axes = Figure().add_subplot(projection="3d", computed_zorder=False)
        axes.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
        axes.view_init(elev=panel.view[1], azim=panel.view[0])
        axes.set_aspect("equal")
        return hidden(axes.get_proj(), [panel.items[0]], panel.items[1])

    panel = sphere(view)
    behind = unseen(panel)
    if expected is not None:
        assert not behind[expected]
    else:
        assert behind[0]
    inner = Places(*(AXES * 0.5), words("inside"), "#000000")
    nothing = Places(*(AXES * 3.0), words("outside"), "#000000")
    for places, all_hidden in ((inner, True), (nothing, False)):
        items = (panel.items[0], places)
        found = unseen(Panel(*["k", *[words("")] * 3], items, view=(35.0, 35.0)))
        assert found.all() == all_hidden
        assert found.any() == all_hidden
    draw(panel)


def test_equal_axes_are_equal_in_both():
    line = Line(np.array([0.0, 4.0]), np.array([0.0, 1.0]), words("way"), "ink")
    panel = Panel("plane", words("Plane"), words("x"), words("y"), (line,), equal=True)
    assert figure(panel)["layout"]["yaxis"]["scaleanchor"] == "x"
    assert draw(panel).axes[0].get_aspect() == 1
    free = Panel("plane", words("Plane"), words("x"), words("y"), (line,))
    assert "scaleanchor" not in figure(free)["layout"]["yaxis"]
    assert draw(free).axes[0].get_aspect() == "auto"


def test_cells_of_a_heat_map_lie_around_their_centres_on_logarithmic_axes_too():
    assert edges(np.array([1.0, 2.0, 4.0]), log=False) == pytest.approx([0.5, 1.5, 3.0, 5.0])
    assert edges(np.array([1.0, 4.0, 16.0]), log=True) == pytest.approx([0.5, 2.0, 8.0, 32.0])
    assert edges(np.array([3.0]), log=False) == pytest.approx([2.5, 3.5])
    z = np.array([[0.0, 0.5, 1.0]])
    heat = Heat(
        np.array([1.0, 4.0, 16.0]), np.array([1.0]), z, words("p"), written=(("0", "½", "1"),)
    )
    panel = Panel("map", words("Map"), words("x"), words("y"), (heat,), log_x=True)
    trace = figure(panel)["data"][0]
    assert trace["x"] == [1.0, 4.0, 16.0]  # told on hover; Plotly's edges are those of print
    assert trace["y"] == [1.0]
    assert trace["text"] == (("0", "½", "1"),)
    texts = draw(panel).axes[0].texts
    assert [t.get_text() for t in texts] == ["0", "½", "1"]
    assert [t.get_color() for t in texts] == ["white", "white", "black"]
    assert [t.get_position()[0] for t in texts] == [1.0, 4.0, 16.0]
    alone = Panel("map", words("Map"), words("x"), words("y"), (heat,), log_y=True)
    assert figure(alone)["data"][0]["y"] == [0.5, 1.5]
    plain = Panel("map", words("Map"), words("x"), words("y"), (heat,))
    assert figure(plain)["data"][0]["x"] == [1.0, 4.0, 16.0]


TURN = """
window.addEventListener("load", () => setTimeout(async () => {
  const plot = document.getElementById("plot-sphere");
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  for (let k = 0; k < 100 && !plot.querySelector("canvas"); k += 1) await pause(100);
  await pause(1000);
  const camera = () => plot._fullLayout.scene._scene.getCamera();
  const eye = () => Object.values(camera().eye).map((v) => v.toFixed(3));
  const box = plot.querySelector(".gl-container, #scene").getBoundingClientRect();
  const canvas = plot.querySelector("canvas");
  const said = [eye()];
  const at = { x: box.left + box.width / 2, y: box.top + box.height / 2 };
  const send = (kind, dx, buttons) => canvas.dispatchEvent(new MouseEvent(kind, {
    bubbles: true, clientX: at.x + dx, clientY: at.y, button: 0, buttons }));
  send("mousemove", 0, 0); send("mousedown", 0, 1);
  for (let dx = 10; dx <= 120; dx += 10) { send("mousemove", dx, 1); await pause(50); }
  send("mouseup", 120, 0);
  await pause(500);
  said.push(eye());
  document.title = JSON.stringify(said);
}, 1000));
"""


TOLD = ["--no-first-run", "--enable-logging=stderr", "--virtual-time-budget=20000"]


@pytest.mark.deep
@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: install the Debian package chromium")
def test_a_surface_is_drawn_and_turned_by_the_mouse_under_the_pages_policy(aggregated, tmp_path):
    text = render(aggregated, {"phase": [sphere()]}, None)
    digest = base64.b64encode(hashlib.sha256(TURN.encode()).digest()).decode()
    text = text.replace("script-src ", f"script-src 'sha256-{digest}' ", 1)
    page = tmp_path / "page.html"
    page.write_text(text.replace("</body>", f"<script>{TURN}</script></body>"), encoding="utf-8")
    command = [CHROMIUM, "--headless", *FLAGS, *TOLD]
    command += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    told = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    bad = [line for line in told if "Security Policy" in line or "ncaught" in line]
    assert bad == []
    title = html.unescape(re.search(r"<title>(.*?)</title>", done.stdout)[1])
    before, after = (np.array(eye, dtype=float) for eye in json.loads(title))
    assert before == pytest.approx([2.2, 0, 0], abs=1e-3)
    # Turned about the middle, as far away as before.
    assert np.linalg.norm(after) == pytest.approx(2.2, rel=0.02)
    assert np.linalg.norm(after - before) > 0.3
