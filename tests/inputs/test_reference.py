"""Numbers of the papers: what their files say, against what tests know of them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hdica.errors import HdicaError
from hdica.inputs.place import differences
from hdica.inputs.plain_yaml import Reference, load_reference

ROOT = Path(__file__).parents[2]
FILES = sorted(path.stem for path in (ROOT / "data/reference").glob("*.yaml"))
ERRATA = (ROOT / "docs/reference/errata.md").read_text(encoding="utf-8")


@pytest.fixture
def shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HDICA_DATA", str(ROOT / "data"))


def _golden(name: str) -> Any:
    return json.loads((ROOT / f"tests/golden/{name}.json").read_text(encoding="utf-8"))


PAPERS = ["li2021", "rattray2002", "rc2025", "wang2016", "wang2017"]
RULES = ["biehl1994", "demir2025", "genc2026", "gultekin2025", "retrieval", "saad1995"]


def test_there_is_a_file_for_each_of_the_five_papers_and_for_rules_of_others() -> None:
    assert sorted(PAPERS + RULES) == FILES
    assert differences(ROOT / "data/reference") == []


@pytest.mark.usefixtures("shipped")
@pytest.mark.parametrize("name", FILES)
def test_every_number_says_what_it_is_and_how_well_it_is_known(name: str) -> None:
    found = load_reference(f"reference/{name}.yaml")
    assert found.paper
    for key, one in found.numbers.items():
        assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", key), key
        assert re.match("(the|a|an) ", one.what), key
        assert one.where, key
        assert (one.error > 0) == (one.origin == "simulated"), key
        assert one.how or one.origin != "simulated", key
        assert one.corrected is None or one.erratum, key
        assert one.corrected != one.value, key
        whole = float(one.value).is_integer()
        exact = one.origin in ("setting", "printed") or one.error or whole
        assert one.rounding > 0 or exact, key


@pytest.mark.usefixtures("shipped")
@pytest.mark.parametrize("name", [name for name in FILES if name != "rc2025"])
def test_errata_are_rows_of_the_table_of_errata(name: str) -> None:
    rows = {line.split("|")[1].strip() for line in ERRATA.splitlines() if line.startswith("| ")}
    for key, one in load_reference(f"reference/{name}.yaml").numbers.items():
        if one.erratum:
            assert any(one.erratum.split(":")[0] in row for row in rows), (key, one.erratum)


@pytest.mark.usefixtures("shipped")
def test_numbers_are_those_that_tests_know() -> None:
    ica = load_reference("reference/wang2017.yaml").numbers
    case = _golden("online_ica")["ica_cubic_phi0_fixed_points"]["cases"]["rademacher"]
    assert ica["tau_c_rademacher"].value == case["tau_c"]
    for tau in ("0.02", "0.04", "0.06", "0.08", "0.1"):
        stable = ica[f"overlap_stable_{tau.replace('.', 'p')}"].value
        assert stable**2 == pytest.approx(float(case["fp"][tau]["q_s"]), rel=1e-14)
    pca = load_reference("reference/wang2016.yaml").numbers
    assert pca["omega_c_oist"].value == _golden("steady_states")["oist_steady"]["fold"]["omega_c"]
    assert pca["overlap_oja_at_10"].value == _golden("finite_pca")["oja"]["Q"][4]


@pytest.mark.usefixtures("shipped")
def test_formulas_of_rules_give_what_the_files_say() -> None:
    ino, two = (
        load_reference(f"reference/{name}.yaml").numbers for name in ("demir2025", "saad1995")
    )
    for omega, end in ((0.5, "0p5"), (1.0, "1"), (1.5, "1p5")):
        assert ino[f"ino_pca_tau_c_{end}"].value == 2 * omega * (1 + omega)
    for omega, end in ((0.5, "0p5"), (1.0, "1")):
        share = (2 * omega * (1 + omega) - 0.5) / (omega * (2 * (1 + omega) + 0.5))
        assert ino[f"ino_pca_cosine_{end}"].value == pytest.approx(math.sqrt(share), rel=1e-14)
    assert two["committee_R"].value == pytest.approx(6**-0.5, rel=1e-14)
    assert two["committee_P"].value == pytest.approx(1 / 3, rel=1e-14)
    roots = load_reference("reference/retrieval.yaml").numbers
    assert roots["retrieval_norm"].value == pytest.approx((math.sqrt(10) - 1) / 6, rel=1e-14)
    sums = load_reference("reference/gultekin2025.yaml").numbers
    for weight, end in ((0.0, "0"), (0.75, "0p75"), (2.0, "2")):
        fourth = (-1.2 - 2 * weight**4) / (1 + weight**2) ** 2
        sixth = (48 / 7 + 16 * weight**6) / (1 + weight**2) ** 3
        q = np.linspace(0, 1, 10**6 + 1)
        step = -2 * fourth * q * (1 - q) / (15 + 15 * fourth * q**2 + sixth * q**3)
        assert sums[f"sums_tau_c_{end}"].value == pytest.approx(step.max(), rel=1e-10)
    assert sums["sums_Q_c_0p75"].value == pytest.approx(0.783877564, abs=1e-9)
    alone = load_reference("reference/genc2026.yaml").numbers
    for name, fourth, sixth, tau in ((11, -2.0, 16.0, 0.1), (22, -1.2, 48 / 7, 0.04)):
        q = alone[f"components_R_{name}"].value ** 2
        step = -2 * fourth * q * (1 - q) / (15 + 15 * fourth * q**2 + sixth * q**3)
        assert q > 0.8
        assert step == pytest.approx(tau, rel=1e-12)
    angle = math.pi * 0.28 * 1000 ** (-1 / 3)
    cosine = load_reference("reference/biehl1994.yaml").numbers["perceptron_cosine"]
    assert cosine.value == pytest.approx(math.cos(angle), abs=1e-6)
    assert cosine.rounding == pytest.approx(math.pi * 0.005 / 10 * math.sin(angle), rel=0.02)


@pytest.mark.usefixtures("shipped")
def test_formulas_give_what_the_files_say() -> None:
    ica = load_reference("reference/wang2017.yaml").numbers
    for name in ("overlap_stable_0p06", "overlap_unstable_0p06"):
        q, tau, m4, m6 = ica[name].value ** 2, 0.06, 1.0, 1.0
        drift = -2 * tau * q**2 * (1 - q) * (m4 - 3)
        noise = 15 * q**2 * (1 - q) * (m4 - 3) + q**3 * (m6 - 15) + 15
        assert drift - tau**2 * q * noise == pytest.approx(0, abs=1e-14)
    loss = load_reference("reference/rc2025.yaml").numbers
    for alpha, name in ((0.3, "loss_alpha_0p3"), (1.0, "loss_alpha_1")):
        q = alpha**2 / 2
        right = -math.exp(-q / (2 * (2 - q))) / math.sqrt(2 - q)
        assert loss[name].corrected == pytest.approx(right, rel=1e-14)
        assert abs(loss[name].value - right) > 0.005
    for alpha, name in ((0.6, "loss_simulated_0p6"), (1.0, "loss_simulated_1")):
        one = loss[name]
        corrected = loss[f"loss_alpha_{alpha:g}".replace(".", "p")].corrected
        assert corrected is not None
        assert abs(one.value - corrected) < 4 * one.error
    trapped = load_reference("reference/rattray2002.yaml").numbers
    assert trapped["summit_fig3c"].value == pytest.approx(0.5, rel=1e-12)
    for name, nu in (("0p1", 0.1), ("1", 1.0), ("3", 3.0), ("6", 6.0)):
        one = trapped[f"exponent_nu_{name}"]
        # (27): the barrier over D, where twice that is right.
        assert one.value == pytest.approx(3 * 15 * nu / (8 * 7.2), rel=1e-12)
        assert one.corrected == pytest.approx(2 * one.value, rel=1e-12)
    assert trapped["nu_optimal"].value == pytest.approx(1.2587, abs=5e-5)
    saddles = load_reference("reference/li2021.yaml").numbers
    assert [saddles[f"saddles_d{d}"].value for d in (3, 5, 10)] == [12, 200, 58004]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1]", "is no file of numbers"),
        ("paper: x", "numbers is missing"),
        ("paper: x\nnumbers: {}", "numbers"),
        ("paper: x\nnumbers: {a: {value: 1}}", "what is missing"),
        (
            "paper: x\nnumbers: {a: {value: one, what: a, where: b, origin: printed}}",
            r"numbers\.a\.value = 'one' is not allowed",
        ),
        (
            "paper: x\nnumbers: {a: {value: 1, what: a, where: b, origin: guessed}}",
            "origin = 'guessed'",
        ),
        ("paper: x\nnumbers: {a: 1, a: 2}", "given twice"),
        ("paper: [", "is not valid YAML"),
    ],
)
def test_other_files_are_refused_in_one_sentence(root: Path, text: str, words: str) -> None:
    (root / "a.yaml").write_text(text)
    with pytest.raises(HdicaError, match=words) as caught:
        load_reference("a.yaml")
    assert "\n" not in str(caught.value)


def test_whole_numbers_are_numbers() -> None:
    one = {"value": 3, "what": "a", "where": "b", "origin": "printed"}
    assert Reference.model_validate({"paper": "x", "numbers": {"a": one}}).numbers["a"].value == 3
