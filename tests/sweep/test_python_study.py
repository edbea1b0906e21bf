"""Studies in Python: the same plans, runs and reports as those of the command line."""

import os
import pickle
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import hdica
from hdica.cli import call
from hdica.errors import HdicaError
from hdica.process.private import scratch
from hdica.run.plan import plan as make_plan
from hdica.study.study import Study as Spec
from hdica.study.study import study_from
from tests.sweep import toy

ROOT = Path(__file__).parents[2]
PROBE = {
    "study": "probe",
    "system": "OnlineICA",
    "parameters": {"source": "uniform"},
    "grid": {"tau": [0.02, 0.04], "Q0": [0.5, 0.8]},
    "times": {"stop": 4, "num": 5},
    "methods": {"chain": {"n": [100, 200], "seeds": 3}, "ode": {}},
}


def probe(**changes):
    return hdica.Study(**{**PROBE, **changes})


def leftovers():
    return [path.name for path in scratch().glob("study-*")]


def numbers(tree):
    """Everything but the processor time and when it was."""
    return {
        name: group.to_dataset().drop_vars("cpu_seconds") for name, group in tree.children.items()
    }


def identical(one, other):
    mine, theirs = numbers(one), numbers(other)
    assert mine.keys() == theirs.keys()
    return all(mine[name].identical(theirs[name]) for name in mine)


def test_it_is_the_study_of_a_file(tmp_path):
    study = probe(title="Where does it learn?")
    assert isinstance(study.spec, Spec)
    assert hdica.Study.from_mapping({**PROBE, "title": "Where does it learn?"}) == study
    path = tmp_path / "probe.yaml"
    path.write_text(study.to_yaml())
    assert hdica.Study.load(path) == study
    assert hdica.Study.load(str(path)).spec.full_hash() == study.spec.full_hash()
    assert len({study, hdica.Study.load(path), probe()}) == 2
    assert pickle.loads(pickle.dumps(study)) == study  # noqa: S301 - our own
    assert study != PROBE
    assert "probe: chain, ode of OnlineICA over tau, Q0, at most 28 points" in repr(study)
    with pytest.raises(AttributeError):
        study.spec = None


def test_the_title_is_the_name_unless_it_is_given():
    assert probe().title == "probe"
    assert probe().spec == probe(title="probe").spec
    assert probe(title="Other").title == "Other"


@pytest.mark.parametrize("path", sorted(ROOT.glob("config/studies/*.yaml")), ids=lambda p: p.stem)
def test_shipped_studies_survive_being_written(path, tmp_path):
    study = hdica.Study.load(path)
    assert hdica.Study.from_mapping(study.to_mapping()) == study
    written = tmp_path / path.name
    written.write_text(study.to_yaml())
    assert hdica.Study.load(written) == study


def test_numbers_of_numpy_and_ranges_are_numbers():
    study = probe(
        grid={"tau": np.array([0.02, 0.04]), "Q0": (np.float64(0.5), 0.8)},
        times=np.linspace(0, 4, 5),
        methods={"chain": {"n": np.array([100, 200]), "seeds": range(3)}, "ode": None},
    )
    assert study == probe()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tims": [0]}, "study 'probe': tims is not a known key .did you mean 'times'"),
        ({"grid": {"tua": [1]}}, "study 'probe': grid.tua is not a known parameter"),
        ({"grid": {"tau": [-1]}}, "study 'probe': grid.tau: tau = -1.0 is not allowed"),
        ({"times": [2, 1]}, "times: 1 comes after 2"),
        ({"title": ""}, "title = '' is not allowed"),
        ({"study": "A b"}, "study = 'A b' is not allowed"),
        ({"methods": {"chain": {"n": 100}}}, "methods.chain.seeds is missing"),
    ],
)
def test_what_is_wrong_is_one_sentence(changes, said):
    with pytest.raises(HdicaError, match=said) as caught:
        probe(**changes)
    assert type(caught.value) is HdicaError
    assert "\n" not in str(caught.value)


def test_what_is_no_study_is_refused(tmp_path):
    with pytest.raises(HdicaError, match="study is missing"):
        hdica.Study()
    with pytest.raises(HdicaError, match="a list is not allowed"):
        hdica.Study.from_mapping([PROBE])
    with pytest.raises(HdicaError, match="cannot read"):
        hdica.Study.load(tmp_path / "none.yaml")


def test_a_plan_has_points_seconds_and_bytes(tmp_path):
    study = probe()
    plan = study.plan()
    assert (plan.points, plan.pending) == (28, 28)
    assert plan.bytes > 0
    assert plan.seconds > 0
    assert [s.method for s in plan.segments] == ["chain", "chain", "ode"]
    assert plan == make_plan(study_from(PROBE), tmp_path / "probe.zarr")
    first, *rest = str(plan).splitlines()
    assert first.startswith("probe: 28 points, 28 pending, ")
    assert rest[0].startswith("  chain n=100: 12 points, 12 pending, ")
    assert rest[2].startswith("  ode: 4 points, ")
    assert not list(tmp_path.iterdir())


def test_a_run_is_that_of_the_command_line(tmp_path):
    study = probe()
    tree = study.run(out=tmp_path / "probe.zarr")
    assert tree.identical(hdica.open_results(tmp_path / "probe.zarr"))
    assert tree["chain"]["Q"].dims == ("tau", "Q0", "n", "seed", "time")
    (tmp_path / "probe.yaml").write_text(study.to_yaml())
    other = tmp_path / "other.zarr"
    assert call(["run", str(tmp_path / "probe.yaml"), "--out", str(other), "--quiet"]) == 0
    assert identical(tree, hdica.open_results(other))


@pytest.mark.deep
def test_a_rerun_computes_what_is_pending(out, calls):
    study = hdica.Study.from_mapping(toy.study(grid={"tau": [0.1], "Q0": [0.25]}))
    first = study.run(out)
    count = len(calls.read_text().splitlines())
    assert study.plan(out).pending == 0
    assert identical(first, study.run(out))
    assert len(calls.read_text().splitlines()) == count
    more = hdica.Study.from_mapping(toy.study(grid={"tau": [0.1, 0.2], "Q0": [0.25]}))
    pending = more.plan(out).pending
    assert 0 < pending < more.plan().pending
    more.run(out)
    assert len(calls.read_text().splitlines()) == count + pending


@pytest.mark.deep
def test_results_in_memory_leave_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tree = probe().run()
    assert identical(tree, probe().run(out=tmp_path / "probe.zarr"))
    assert not leftovers()
    assert "source" not in tree.encoding
    assert float(tree["ode"]["Q"].isel(time=0).max()) == pytest.approx(0.8)
    assert [path.name for path in tmp_path.iterdir() if "probe" not in path.name] == []


def test_an_interruption_leaves_nothing_behind(monkeypatch):
    def interrupted(*args, **kwargs):
        assert leftovers()
        raise KeyboardInterrupt

    monkeypatch.setattr("hdica.run.compute.publish_new", interrupted)
    with pytest.raises(KeyboardInterrupt):
        probe().run()
    assert not leftovers()


@pytest.mark.deep
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_leaves_nothing_behind(tmp_path, number):
    script = tmp_path / "script.py"
    script.write_text(
        "import hdica\n"
        "study = hdica.Study(study='long', system='OnlineICA', parameters={'tau': 0.05},\n"
        "    times=[0, 1000], methods={'vector': {'n': 100_000, 'seeds': 50}})\n"
        "print('begins', flush=True)\n"
        "study.run()\n"
    )
    folder = tmp_path / "tmp"
    folder.mkdir(mode=0o700)
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, script], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begins\n"
        until = time.monotonic() + 60
        while not list(folder.glob("hdica-*/study-*/*.work/*")) and time.monotonic() < until:
            time.sleep(0.05)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert b"stopped by " + number.name.encode() in said
    assert not list(folder.glob("hdica-*"))


def test_points_that_diverge_or_fail_are_told_and_the_rest_is_there(out):
    study = hdica.Study.from_mapping(toy.study(grid={"tau": [0.1, 0.13, 0.17], "Q0": [0.5]}))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        tree = study.run(out)
    said = [str(one.message) for one in told]
    assert said == [
        "12 points diverged; when and why is in the variable 'reason'",
        f"12 points failed; the reasons are in the variable 'reason' of {out} "
        "(retry_failed=True computes them again)",
    ]
    status = tree["walk"]["status"].sel(Q0=0.5)
    assert [set(status.sel(tau=tau).values.ravel().tolist()) for tau in (0.1, 0.13, 0.17)] == [
        {1},
        {3},
        {2},
    ]
    with (
        pytest.warns(UserWarning, match="12 points diverged"),
        pytest.warns(UserWarning, match="12 points failed; .* of the results"),
    ):
        assert identical(tree, study.run())


@pytest.mark.deep
def test_a_run_says_nothing_where_nothing_is_to_be_said(out, capfd):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        probe().run(out.with_name("probe.zarr"))
        probe().run()
    assert capfd.readouterr() == ("", "")


def test_another_study_is_refused_and_replaced_if_asked(tmp_path):
    out = tmp_path / "probe.zarr"
    probe().run(out)
    other = probe(study="other", grid={"tau": [0.03], "Q0": [0.6]})
    with pytest.raises(HdicaError, match="probe"):
        other.run(out)
    assert other.run(out, replace=True).attrs["study"] == "other"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"workers": 0}, "workers = 0 is not allowed"),
        ({"workers": "two"}, "workers = 'two' is not allowed"),
        ({"out": 3}, "out = 3 is not allowed"),
        ({"out": "probe"}, "results 'probe' is not allowed .the name must end in .zarr"),
        ({"cluster": {"mdoe": "local"}}, "mdoe is not a known key"),
    ],
)
def test_settings_of_a_run_are_checked(given, said):
    with pytest.raises(HdicaError, match=said):
        probe().run(**given)
    assert not leftovers()


@pytest.mark.deep
def test_several_workers_have_the_same_bits(tmp_path):
    tree = probe().run(tmp_path / "probe.zarr", workers=2, cluster={"mode": "local"})
    assert identical(tree, probe().run())


@pytest.mark.deep
def test_a_script_that_every_worker_would_run_again_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import hdica\n"
        "study = hdica.Study(study='probe', system='OnlineICA', parameters={'tau': 0.05},\n"
        "    times=[0, 1], methods={'chain': {'n': 100, 'seeds': 3}})\n"
        "study.run(workers=2, cluster={'mode': 'local'})\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "has to begin its work below: if __name__ == '__main__'" in done.stderr


@pytest.mark.usefixtures("unprinted")
def test_the_report_of_results_in_memory_is_a_page(tmp_path):
    page = probe().report(probe().run(), tmp_path / "report")
    assert page == tmp_path / "report" / "report.html"
    assert "probe" in page.read_text()


@pytest.mark.deep
@pytest.mark.usefixtures("unprinted")
def test_the_report_is_that_of_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    study, out = probe(), tmp_path / "there" / "probe.zarr"
    tree = study.run(out)
    page = study.report(tree)
    assert page == tmp_path / "there" / "probe" / "report.html"
    first = page.read_text()
    assert "probe" in first
    assert study.report(str(out)) == page
    assert page.read_text() == first
    elsewhere = study.report(out, tmp_path / "elsewhere")
    assert elsewhere.parent == tmp_path / "elsewhere"
    assert call(["report", str(out), "--out", str(tmp_path / "cli")]) == 0
    assert (tmp_path / "cli" / "report.html").read_text() == elsewhere.read_text()
    in_memory = study.report(study.run())
    assert in_memory == Path("results/probe/report.html")
    assert in_memory.exists()


@pytest.mark.deep
def test_the_report_shows_what_the_study_asks_for_now(tmp_path):
    tree = probe().run()
    asked = {"convergence": {"simulation": "chain", "limit": "ode"}}
    study = probe(title="How far is the limit?", analysis=asked)
    page = study.report(tree, tmp_path / "report")
    assert "How far is the limit?" in page.read_text()
    assert "title" in tree.attrs
    assert tree.attrs["title"] == "probe"
    assert len(list((tmp_path / "report" / "figures").iterdir())) > 0


def test_results_of_another_study_make_no_report(tmp_path):
    tree = probe().run()
    with pytest.raises(HdicaError, match="results of study 'probe' are not allowed"):
        probe(times=[0, 1]).report(tree, tmp_path)
    with pytest.raises(HdicaError, match="a int is not allowed|an int is not allowed"):
        probe().report(3)
    with pytest.raises(HdicaError, match="does not exist"):
        probe().report(tmp_path / "none.zarr")
    assert not list(tmp_path.iterdir())
