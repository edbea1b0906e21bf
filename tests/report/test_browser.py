import base64
import gzip
import re
import shutil
import subprocess

import pytest

from hdica.report.page import panels, render

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--virtual-time-budget=20000",
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None, reason="needs Chromium: install the Debian package chromium"
    ),
]


def opened(page, profile):
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "--dump-dom", page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


@pytest.fixture(scope="module")
def shown(written, tmp_path_factory):
    return opened(written[0], tmp_path_factory.mktemp("profile"))


def console(done):
    return [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def test_every_plot_is_drawn_without_a_complaint(shown):
    places = len(re.findall(r'class="plot js-plotly-plot"', shown.stdout))
    assert places == len(re.findall(r'id="plot-', shown.stdout)) >= 7
    assert shown.stdout.count('class="main-svg"') >= places
    assert console(shown) == []


def test_downloads_are_offered_and_hostile_text_did_not_run(shown):
    assert len(re.findall(r"<button[^>]*>CSV</button>", shown.stdout)) >= 5
    assert not re.search("<body[^>]*stolen", shown.stdout)


def test_a_script_that_is_not_the_pages_own_does_not_run(written, tmp_path):
    text = written[0].read_text(encoding="utf-8")
    changed = tmp_path / "changed.html"
    extra = '<script>document.body.id = "stolen"</script></body>'
    changed.write_text(text.replace("</body>", extra), encoding="utf-8")
    done = opened(changed, tmp_path / "profile")
    assert not re.search("<body[^>]*stolen", done.stdout)
    assert any("Content Security Policy" in line for line in console(done))


def test_a_page_as_one_file_draws_with_nothing_beside_it(aggregated, tmp_path):
    alone = tmp_path / "alone.html"
    alone.write_text(render(aggregated, panels(aggregated), None), encoding="utf-8")
    done = opened(alone, tmp_path / "profile")
    places = len(re.findall(r'id="plot-', done.stdout))
    assert done.stdout.count('class="plot js-plotly-plot"') == places >= 7
    assert console(done) == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "assets/plotly-.*js is not there"),
        (b'globalThis.hdicaPlotly="H4sI";', "assets/plotly-.*js is not what it was"),
    ],
)
def test_a_page_without_its_script_says_so_and_shows_the_rest(written, tmp_path, content, said):
    folder = tmp_path / "report"
    shutil.copytree(written[0].parent, folder)
    (script,) = (folder / "assets").iterdir()
    if content is None:
        script.unlink()
    else:
        script.write_bytes(content)
    done = opened(folder / "report.html", tmp_path / "profile")
    assert re.search(f'id="no-plots"[^>]*>The plots are not drawn: {said}', done.stdout)
    assert 'class="plot js-plotly-plot"' not in done.stdout
    assert len(re.findall(r"<button[^>]*>CSV</button>", done.stdout)) >= 5


def test_another_script_in_the_shared_file_does_not_run(written, tmp_path):
    folder = tmp_path / "report"
    shutil.copytree(written[0].parent, folder)
    (script,) = (folder / "assets").iterdir()
    other = base64.b64encode(gzip.compress(b"globalThis.Plotly = 1; document.body.id = 'stolen'"))
    script.write_text(f'globalThis.hdicaPlotly="{other.decode()}";')
    done = opened(folder / "report.html", tmp_path / "profile")
    assert not re.search("<body[^>]*stolen", done.stdout)
    assert "is not what it was" in done.stdout


def test_the_gallery_is_shown_without_a_complaint(written, tmp_path):
    done = opened(written[-1], tmp_path / "profile")
    assert written[-1].name == "index.html"
    assert "1 report" in done.stdout
    assert console(done) == []
    assert not re.search("<body[^>]*stolen", done.stdout)
