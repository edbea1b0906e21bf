"""Two-phase training: step sizes, success of phase one and the error at the end."""

import json
import math
from pathlib import Path

import pytest

from hdica.errors import HdicaError
from hdica.ingredients.sources import make_source
from hdica.systems.tensorial_ica.fluctuation import median_factor
from hdica.systems.tensorial_ica.rule import moments_of
from hdica.systems.tensorial_ica.traverse import two_phase


def succeeds(found):
    """Whether phase one has the time for 99 % of the starts, and little enough noise."""
    return found["warm"] >= 0.99 and found["drag"] <= 0.5


def trained(source, d, total, c1, c2):
    """Two phases with the step sizes of Corollary 8."""
    unit = math.log(total) / (moments_of(source).beta * total)
    return two_phase(source, d, total / 2, c1 * d * unit, c2 * unit)


GOLDEN = json.loads((Path(__file__).parents[2] / "golden/tensorial_ica.json").read_text())


def test_simulated_errors():
    for case in GOLDEN["lj_twophase"]["cases"]:
        source = make_source(case["src"])
        found = trained(source, case["d"], case["T"], case["c1"], case["c2"])
        assert succeeds(found)
        # Medians of n runs have a relative error of about sqrt(pi/(d - 1)/n).
        error = math.sqrt(math.pi / (case["d"] - 1) / case["n"])
        assert found["tan2"] == pytest.approx(case["med_tan2"], rel=4 * error)
        assert found["half"] == pytest.approx(case["med_tan2_half"], rel=4 * error + 0.03)


def test_what_is_said_to_succeed_does():
    told = {True: [], False: []}
    for case in GOLDEN["lj_phase1_success"]["cases"]:
        found = trained(make_source("rademacher"), case["d"], case["T"], case["c1"], 1.0)
        assert found["drag"] == pytest.approx(case["eta1_d2"] / 2)
        told[succeeds(found)].append(case["p"])
    assert len(told[True]) >= 8
    assert min(told[True]) > 0.94
    assert min(told[False]) == 0


def test_one_logarithm():
    m, d = moments_of(make_source("uniform")), 12
    for steps in (1e7, 1e9, 1e11):
        found = trained(make_source("uniform"), d, steps, 0.5, 1.5)
        rate = 1.5 * (d - 1) * m.mu6 / (2 * m.beta**2)
        assert found["mean"] * steps / math.log(steps) == pytest.approx(rate, rel=300 / steps**0.5)


def test_too_noisy_a_first_phase_has_no_level():
    found = trained(make_source("rademacher"), 20, 4000, 0.5, 0.1)
    assert math.isnan(found["half"])
    assert math.isnan(found["tan2"])
    assert not succeeds(found)


def test_a_phase_alone():
    source = make_source("uniform")
    both = two_phase(source, 10, 5e4, 2e-4, 5e-5)
    first = two_phase(source, 10, 5e4, 2e-4, None)
    assert (first["half"], first["warm"]) == (both["half"], both["warm"])
    assert math.isnan(first["mean"])
    left = both["half"] / median_factor(10) * math.exp(-2 * moments_of(source).beta * 5e-5 * 5e4)
    second = two_phase(source, 10, 5e4, None, 5e-5, left=left)
    assert second["mean"] == pytest.approx(both["mean"], rel=1e-14)
    assert both["tan2"] < second["tan2"] < second["mean"]
    forgotten = two_phase(source, 10, 5e4, None, 5e-5, left=0.0)
    assert forgotten["tan2"] / forgotten["mean"] == pytest.approx(both["tan2"] / both["mean"])
    far = [two_phase(source, 10, 50, None, 1e-9, left=x)["tan2"] for x in (0.0299, 0.0301)]
    assert far == pytest.approx([0.0299, 0.0301], rel=1e-4)
    assert math.isnan(second["half"])


def test_a_second_phase_without_a_level_is_refused():
    with pytest.raises(HdicaError, match="no stationary level"):
        trained(make_source("rademacher"), 20, 100, 0.1, 9.0)
