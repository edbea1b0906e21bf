import re
import shutil
import subprocess

import pytest

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
