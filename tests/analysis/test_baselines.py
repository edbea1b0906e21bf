"""What is drawn beside runs and not judged: estimates of as many samples, and what they are."""

import numpy as np
import pytest
import xarray as xr

from hdica.analysis.aggregate import aggregate, summary
from hdica.analysis.convergence.compute import findings
from hdica.analysis.convergence.figure import trajectories
from hdica.analysis.trajectories.methods import compare_panels
from hdica.analysis.trajectories.runs import paths_panels
from hdica.errors import HdicaError
from hdica.show.panel import Points
from hdica.show.terms import speaking_of
from hdica.show.wording import remarks
from hdica.study.study import study_from
from tests.analysis import escapes, toy
from tests.report.shown import plain

convergence, paths, compare = (toy.computed(k) for k in ("convergence", "paths", "compare"))
OFFLINE = np.array([np.nan, np.nan, 0.2, 0.4, 0.6, 0.7])
"""At the times of the toy, of which the first two have too few samples."""
ASKED = {**toy.CONVERGENCE, "baselines": ["batch_fastica", "closed"]}


def store() -> xr.DataTree:
    """The toy with offline estimates of two n, and a baseline without seeds."""
    tree = toy.store()
    dims = ("tau", "Q0", "n", "seed", "time")
    noise = 0.01 * np.random.default_rng(0).standard_normal((2, 2, 2, 5, 6))
    coords = {"tau": toy.TAUS, "Q0": toy.STARTS, "n": [50, 200], "time": toy.TIMES}
    runs = xr.Dataset({"Q": (dims, OFFLINE + noise)}, {**coords, "seed": np.arange(5)})
    tree["batch_fastica"] = xr.DataTree(escapes.group(runs, "batch_fastica", {"time"}))
    line = tree["ode"].to_dataset()[["Q", "status", "cpu_seconds"]]
    tree["closed"] = xr.DataTree(line.assign_attrs(tree["ode"].attrs))
    return tree


@pytest.fixture(scope="module")
def tree() -> xr.DataTree:
    return store()


def test_means_are_over_seeds_at_the_largest_n_and_leave_out_what_has_too_few_samples(tree):
    data = convergence(tree, ASKED)
    here = data.sel(baseline="batch_fastica", tau=0.02, Q0=0.7)
    q = tree["batch_fastica"]["Q"].sel(tau=0.02, Q0=0.7, n=200).values
    assert here["baseline_mean"].values == pytest.approx(q.mean(axis=0), nan_ok=True)
    assert here["baseline_se"].values[2:] == pytest.approx(q.std(axis=0, ddof=1)[2:] / 5**0.5)
    assert float(here["baseline_n"]) == 200
    line = data.sel(baseline="closed")
    assert np.array_equal(line["baseline_mean"].values, data["limit"].values)
    assert line["baseline_n"].isnull().all()


def test_nothing_is_judged_by_them(tree):
    plainly, with_them = (convergence(tree, asked) for asked in (toy.CONVERGENCE, ASKED))
    xr.testing.assert_identical(plainly, with_them[list(plainly)])
    own = [one for one in findings(with_them) if one.place.get("simulation") == "batch_fastica"]
    assert len(findings(plainly)) == len(findings(with_them)) - 4 * 2 * 2
    assert not any(one.verdict for one in own)
    first, last, *_ = own
    assert (first.place["t"], last.place["t"]) == (1.0, 3.0)
    assert (first.value, last.value) == pytest.approx((0.2, 0.7), abs=0.02)
    assert first.place["n"] == 200
    here = with_them["limit"].sel(tau=0.02, Q0=0.3)
    assert (first.predicted, last.predicted) == (float(here[2]), float(here[-1]))


def test_what_does_not_depend_on_a_swept_parameter_is_beside_the_limit_of_each_value(tree):
    plainer = store()
    plainer["batch_fastica"] = xr.DataTree(
        tree["batch_fastica"].to_dataset().isel(tau=0, drop=True)
    )
    asked = {**toy.CONVERGENCE, "baselines": "batch_fastica"}
    every, own = (
        [one for one in findings(convergence(each, asked)) if "simulation" in one.place]
        for each in (tree, plainer)
    )
    assert len(own) == len(every) == 2 * 2 * 2
    assert {one.predicted for one in own} == {one.predicted for one in every}
    assert len({one.value for one in own}) == 4
    assert len(drawn(trajectories(convergence(plainer, asked))[-1])) == 1


def drawn(panel) -> dict[str, Points]:
    return {item.label.plain: item for item in panel.items if isinstance(item, Points)}


def test_a_caption_says_that_the_line_is_no_optimum(tree):
    with speaking_of("OnlineICA"):
        panels = trajectories(convergence(tree, ASKED))
        single = paths_panels(paths(tree, {"simulation": "chain", "baselines": "batch_fastica"}))
        without = trajectories(convergence(tree, toy.CONVERGENCE))
        both = compare_panels(compare(tree, {"curves": ["chain", "batch_fastica"]}))
    for panel in (*panels, *single):
        item = drawn(panel)["offline FastICA, n = 200"]
        assert item.x.tolist() == [1.0, 1.5, 2.0, 3.0]
        assert np.all(item.low <= item.y)
        assert "drawn and not judged" in panel.caption
    for panel in (*panels, *single, *both):
        assert "no proven optimum. No line is called optimal" in plain([panel.caption])[0]
    assert not any("optim" in panel.caption for panel in without)


def test_captions_of_sparse_pca_say_which_line_is_the_optimum():
    with speaking_of("SparsePCA"):
        (text,) = remarks(["message_passing", "bayes", "vector"])
        assert not remarks(["sample_pca", "vector"])
    assert "The posterior is the optimum" in text


def test_without_a_finished_run_there_is_nothing_to_draw(tree):
    pending = store()
    pending["batch_fastica"]["status"][:] = 0
    data = convergence(pending, {**toy.CONVERGENCE, "baselines": ["batch_fastica"]})
    assert not any(one.place.get("simulation") == "batch_fastica" for one in findings(data))
    assert not drawn(trajectories(data)[0])


def test_a_page_has_them(tree):
    asked = {**toy.CONVERGENCE, "baselines": "batch_fastica"}
    named = toy.tree({k: v.to_dataset() for k, v in tree.children.items()}, {"convergence": asked})
    text = " ".join(plain(map(str, summary(aggregate(named)).sentences)))
    assert "offline FastICA" in text


def test_a_baseline_has_the_variable_over_time():
    content = {
        "study": "s",
        "title": "s",
        "system": "OnlineICA",
        "parameters": {"tau": 0.02},
        "times": [2, 10],
        "methods": {
            "chain": {"n": [50], "seeds": 2},
            "ode": {},
            "fixed_points": {},
            "batch_fastica": {"n": [50], "seeds": 2},
        },
    }
    line = {"simulation": "chain", "limit": "ode", "variable": "Q"}
    assert study_from({**content, "analysis": {"convergence": {**line, "baselines": "ode"}}})
    for name in ("fixed_points", "pde"):
        asked = {"convergence": {**line, "baselines": ["batch_fastica", name]}}
        with pytest.raises(HdicaError, match=rf"analysis\.convergence\.baselines.*{name}"):
            study_from({**content, "analysis": asked})
