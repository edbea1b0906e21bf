"""The estimate itself on request: in Python, in studies, and in no key where it is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError
from hdica.ingredients.save import ALL, Save
from hdica.run.plan import plan
from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.store.results import open_results
from hdica.study.schema import plain_save
from hdica.study.segment import segments_of
from hdica.study.study import Study, study_from

TIMES = [0.0, 1.0, 2.0]
SPARSE = {"prior": {"sparse": 0.3}, "start": {"overlap": 0.6}}
ICA = hdica.OnlineICA(tau=0.1, regularizer="0.2*sign(x)", **SPARSE)
PCA = hdica.SparsePCA(tau=0.2, omega=2.0, regularizer="0.2*sign(x)", **SPARSE)
N = 50


@pytest.mark.parametrize("system", [ICA, PCA, ICA.model_copy(update={"batch": 3})], ids=range(3))
def test_order_parameters_are_those_of_the_estimate(system: Any) -> None:
    found = hdica.simulate(
        system, n=N, times=TIMES, seeds=3, estimate=True, functionals={"four": "x**4"}
    )
    x, xi = found["estimate"], found["xi_entry"]
    assert x.dims == ("seed", "snapshot", "entry")
    assert xi.dims == ("seed", "entry")
    assert found["snapshot"].values.tolist() == TIMES
    assert np.mean(x.values**2, axis=-1) == pytest.approx(np.ones((3, 3)))
    overlap = np.einsum("ste,se->st", x.values, xi.values) / N
    assert overlap == pytest.approx(found["Q"].values, abs=1e-12)
    assert 0.2 * np.mean(np.abs(x.values), axis=-1) == pytest.approx(found["R"].values, abs=1e-12)
    assert np.mean(x.values**4, axis=-1) == pytest.approx(found["four"].values, rel=1e-12)
    plain = hdica.simulate(system, n=N, times=TIMES, seeds=3, method="vector")
    assert "estimate" not in plain
    assert plain["Q"].values.tobytes() == found["Q"].values.tobytes()


def test_densities_are_histograms_of_it() -> None:
    asked = {"snapshots": [2.0], "x": np.linspace(-3, 3, 7), "estimate": True}
    found = hdica.simulate(ICA, n=N, times=TIMES, **asked)
    assert found["estimate"].shape == (1, 1, N)
    x, xi = found["estimate"].values[0, 0], found["xi_entry"].values[0]
    for k, value in enumerate(found["feature"].values):
        inside = np.isclose(xi, value, atol=1.0) & (np.abs(xi - value) < 0.5)
        share = [np.mean(x[inside] <= edge) for edge in found["edge"].values]
        assert found["cdf"].values[0, 0, k] == pytest.approx(share)


def test_the_first_entries_and_several_dimensions() -> None:
    whole = hdica.simulate(ICA, n=N, times=TIMES, snapshots=[1.0], estimate=True)["estimate"]
    first = hdica.simulate(ICA, n=N, times=TIMES, snapshots=[1.0], estimate=7)["estimate"]
    assert first.values.tobytes() == whole.values[..., :7].tobytes()
    sizes = hdica.simulate(
        ICA, n=[20, N], times=TIMES, snapshots=[1.0], estimate=True, over={"tau": [0.05, 0.1]}
    )["estimate"]
    assert sizes.dims == ("tau", "n", "seed", "snapshot", "entry")
    assert sizes.sel(n=N, tau=0.1).values.tobytes() == whole.values.tobytes()
    assert np.isnan(sizes.sel(n=20).values[..., 20:]).all()
    assert np.isfinite(sizes.sel(n=20).values[..., :20]).all()


def test_auto_takes_the_vector_where_the_chain_is_exact_too() -> None:
    system = hdica.OnlineICA(tau=0.1)
    assert hdica.simulate(system, n=N, times=TIMES).attrs["method"] == "chain"
    assert hdica.simulate(system, n=N, times=TIMES, estimate=3).attrs["method"] == "vector"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            {"method": "chain"},
            "method 'chain' keeps no estimate (use method 'vector' or 'entries')",
        ),
        (
            {"method": "particles"},
            "method 'particles' keeps no estimate (use method 'vector' or 'entries')",
        ),
        ({"estimate": 51}, "estimate = 51 is not allowed (at most n = 50 entries)"),
        ({"estimate": 0}, "estimate = 0 is not allowed (true, or how many entries: a whole "),
        ({"estimate": 2.5}, "estimate = 2.5 is not allowed (true, or how many entries: a whole "),
        ({"estimate": "all"}, "estimate = 'all' is not allowed"),
        ({"snapshots": [5.0]}, "snapshots: 5 is not one of the times"),
        ({"functionals": {"estimate": "x"}}, "functionals.estimate is not allowed"),
        (
            {"n": 10**6, "times": np.linspace(0, 1e-3, 20)},
            "save keeps 168 MB a point of vector (at most 67 MB are allowed",
        ),
    ],
)
def test_what_is_not_allowed_is_refused_in_one_sentence(more: Any, sentence: str) -> None:
    system = hdica.OnlineICA(tau=0.1)
    with pytest.raises(HdicaError) as found:
        hdica.simulate(system, **{"n": N, "times": TIMES, "estimate": True} | more)
    assert str(found.value).startswith(sentence)


def study(save: Any, n: Any = N, **changes: Any) -> Study:
    content = {
        "study": "entries", "system": "OnlineICA", "parameters": {"start": {"overlap": 0.6}},
        "grid": {"tau": [0.05, 0.1]}, "times": TIMES,
        "methods": {"vector": {"n": n, "seeds": 2}, "chain": {"n": n, "seeds": 2}},
        **({} if save is None else {"save": save}),
    }  # fmt: skip
    return study_from(content | changes)


def test_a_study_stores_it_where_a_method_has_it(tmp_path: Path) -> None:
    out = tmp_path / "entries.zarr"
    asked = study({"snapshots": [0.0, 2.0], "estimate": True}, [20, N])
    assert plan(asked).keeps == "estimates (vector)"
    assert run(asked, out, progress=False).complete
    publish(asked, out)
    with open_results(out) as tree:
        found, chain = tree["vector"].to_dataset().load(), tree["chain"].to_dataset().load()
    assert "estimate" not in chain
    assert found["estimate"].dims == ("tau", "n", "seed", "snapshot", "entry")
    system = hdica.OnlineICA(tau=0.1, start={"overlap": 0.6})
    alone = hdica.simulate(
        system, n=N, times=TIMES, seeds=2, snapshots=[0.0, 2.0], estimate=True, method="vector"
    )
    for name in ("estimate", "xi_entry"):
        stored = found[name].sel(tau=0.1, n=N).values
        assert stored.tobytes() == alone[name].values.tobytes()
    assert np.isnan(found["estimate"].sel(n=20).values[..., 20:]).all()


def test_a_study_refuses_what_no_method_has() -> None:
    chain = {"chain": {"n": N, "seeds": 2}}
    with pytest.raises(HdicaError, match=r"save.estimate: no method of this study can keep estim"):
        study({"snapshots": [1.0], "estimate": True}, methods=chain)
    with pytest.raises(HdicaError, match="estimate needs snapshots"):
        study({"estimate": 5})
    with pytest.raises(HdicaError, match=r"save.estimate = 51 is not allowed \(at most n = 50"):
        study({"snapshots": [1.0], "estimate": 51})
    with pytest.raises(HdicaError, match=r"save keeps 80 MB a point of vector"):
        study({"snapshots": [1.0], "estimate": True}, n=5_000_000)


def test_keys_know_of_it_only_where_it_is() -> None:
    plain, asked = (segments_of(study(s)) for s in (None, {"snapshots": [1.0], "estimate": 5}))
    same = {
        one.method.name: (one.name, one.keys().tobytes()) == (other.name, other.keys().tobytes())
        for one, other in zip(plain, asked, strict=True)
    }
    assert same == {"vector": False, "chain": True}
    assert plain_save(Save((1.0,), estimate=ALL)) == {"snapshots": [1.0], "estimate": ALL}
    assert set(plain_save(Save((1.0,), (0.0, 1.0)))) == {"snapshots", "x"}
    every = study({"snapshots": [1.0], "estimate": True})
    assert study_from(every.model_dump(mode="json")).full_hash() == every.full_hash()
    assert every.model_dump(mode="json")["save"]["estimate"] is True
    none = study({"extra": [], "estimate": False})
    assert none.content_hash() == study(None).content_hash()
    assert "estimate" not in none.model_dump(mode="json")["save"]
