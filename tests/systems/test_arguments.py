"""Arguments that are no lists, no numbers or nothing: one sentence each, with something in it."""

import re

import numpy as np
import pytest
from pydantic import ValidationError

import hdica
from hdica import HebbianICA, OnlineICA, SparsePCA
from hdica.errors import HdicaError
from hdica.study.study import Study, study_from

ICA = OnlineICA(tau=0.05, start={"overlap": 0.7})
TRAP = HebbianICA(nu=1.0, sigma=[-1])
TIMES = [0.0, 1.0]


def simulate(**given):
    return hdica.simulate(ICA, **({"n": 50, "times": TIMES} | given))


@pytest.mark.parametrize("seeds", [3, np.int64(3), 3.0, range(3), np.arange(3), iter([0, 1, 2])])
def test_a_number_of_seeds_is_that_many_seeds(seeds):
    assert simulate(seeds=seeds).identical(simulate(seeds=[0, 1, 2]))


def test_labelled_arrays_are_lists_of_numbers():
    first = simulate(seeds=2)
    again = simulate(n=first["n"], times=first["time"], seeds=first["seed"])
    assert again.identical(first)


@pytest.mark.parametrize("seeds", [0, -1, 1.5, [1.5], [0, 0], [], ["a"], "ab", None, True, {}])
def test_other_seeds_are_refused(seeds):
    with pytest.raises(HdicaError, match=r"seeds = .* is not allowed \("):
        simulate(seeds=seeds)


@pytest.mark.parametrize("value", [40, 40.0, np.array(40.0), np.float32(40)])
def test_a_bare_number_is_no_list_and_the_sentence_shows_what_to_write(value):
    calls = {
        "times": [
            lambda: simulate(times=value),
            lambda: hdica.limit(ICA, times=value),
            lambda: hdica.limit(ICA, times=value, over={"tau": [0.1]}),
            lambda: hdica.effective_potential(ICA, times=value),
        ],
        "x": [lambda: hdica.limit(ICA, times=TIMES, method="pde", x=value)],
        "thresholds": [lambda: hdica.limit(ICA, times=TIMES, method="pde", thresholds=value)],
        "snapshots": [lambda: hdica.limit(ICA, times=TIMES, method="pde", snapshots=value)],
        "values": [
            lambda: hdica.critical_curve(
                ICA.model_copy(update={"constants": {"b": 1.0}, "regularizer": "b*x"}),
                *("tau", "b", value),
            )
        ],
    }
    for name, some in calls.items():
        for call in some:
            with pytest.raises(HdicaError) as caught:
                call()
            assert re.search(rf"^{name} = 40(\.0)? .*write {name}=\[40(\.0)?\]", str(caught.value))


@pytest.mark.parametrize("n", [[100, 1000], np.array([100, 1000]), (100, 1000), range(100, 102)])
def test_several_dimensions_are_refused_where_one_is_needed(n):
    with pytest.raises(HdicaError, match=r"^n = .* is not allowed \(a whole number"):
        hdica.escape_time(TRAP, n=n)
    assert simulate(n=n)["n"].values.tolist() == list(n)


@pytest.mark.parametrize("n", [[], [100, 100], [2, 100], [100, "a"], {"start": 3}, [True, 9]])
def test_a_list_that_is_no_dimensions_is_refused(n):
    with pytest.raises(HdicaError, match=r"^n = .* is not allowed \(a whole number"):
        simulate(n=n)


def test_no_dimension_is_missed_where_one_is_needed():
    with pytest.raises(HdicaError, match=r"^n is missing \(method '\w+' needs it: a whole number"):
        simulate(n=None)


@pytest.mark.parametrize("n", ["a", 2, 2.5, float("nan"), float("inf"), 1e9j, True])
def test_a_dimension_that_is_no_whole_number_is_refused(n):
    with pytest.raises(HdicaError, match=r"^n = .* is not allowed \(a whole number"):
        simulate(n=n)
    if n != 2:
        with pytest.raises(HdicaError, match=r"^n = .* is not allowed \(a whole number"):
            hdica.escape_time(TRAP, n=n)


@pytest.mark.parametrize("times", ["ab", ["a"], [None], [[0, 1]], True])
def test_times_that_are_no_numbers_are_refused(times):
    for call in (simulate, lambda times: hdica.limit(ICA, times=times)):
        with pytest.raises(HdicaError, match=r"^times.* is not allowed \(a list of numbers\)"):
            call(times=times)


def study(**given):
    content = {
        "study": "one",
        "title": "One",
        "system": "OnlineICA",
        "grid": {"tau": [0.1, 0.2]},
        "times": [0, 1],
        "methods": {"ode": {}},
    }
    return Study(**(content | given))


EMPTY = {
    "no method for it": lambda: hdica.escape_time(SparsePCA(tau=0.1)),
    "no asymptotics": lambda: hdica.asymptotics(SparsePCA(tau=0.1)),
    "no signs": lambda: hdica.escape_signs(ICA),
    "no parameter": lambda: hdica.critical(OnlineICA(tau="0.1"), parameter="foo"),
    "no parameter to follow": lambda: hdica.limit(
        OnlineICA(tau="0.1"), times=[0], over={"foo": [1.0]}
    ),
    "no Hebbian range": lambda: hdica.critical(HebbianICA(mu=0.1), parameter="tau"),
    "no noise to share": lambda: study(
        system="HebbianICA",
        grid={"mu": [0.1, 0.2]},
        parameters={"sigma": [-1]},
        methods={"ode": {}},
        noise="shared",
    ),
    "nothing swept": lambda: study(
        grid={}, parameters={"tau": 0.1}, analysis={"phase": {"x": "tau", "y": "Q0"}}
    ),
    "no such method": lambda: study(methods={"foo": {}}),
    "nothing to draw": lambda: hdica.conflict_region("x**3", "foo", 0.1, 1.0),
    "no transition": lambda: hdica.critical_curve(
        OnlineICA(tau=0.1, source="laplace", constants={"b": 1.0}, regularizer="b*x"),
        *("tau", "b", [1.0]),
    ),
    "densities of none": lambda: hdica.simulate(
        HebbianICA(mu=0.1), n=20, times=[0, 1], x=[0.0, 1.0], method="chain"
    ),
}
NOTHING = re.compile(r"[,:(\[]\s*[,)\]]|[,:]\s*$|: ;|\(\)")
"""An enumeration that stops before it has begun, or goes on after its end."""


@pytest.mark.parametrize("name", EMPTY)
def test_no_sentence_lists_nothing(name):
    with pytest.raises((HdicaError, ValidationError)) as caught:
        EMPTY[name]()
    message = str(caught.value).split("[type=")[0]
    assert not NOTHING.search(message), message
    assert len(message) > 20


def test_the_pattern_finds_empty_enumerations():
    for text in ("(allowed: auto, )", "these have: )", "(allowed: )", "known: ", "machine's ()"):
        assert NOTHING.search(text), text
    for text in ("(allowed: auto, ode)", "tau = [0.1] is not allowed (a: b)", "f(x), g(x): yes"):
        assert not NOTHING.search(text), text


@pytest.mark.parametrize("end", ["low", "high"])
def test_ends_of_a_range_are_numbers(end):
    with pytest.raises(HdicaError, match=f"{end} = 'a' is not allowed"):
        hdica.critical(SparsePCA(tau=0.1), "omega", **{end: "a"})


@pytest.mark.parametrize(
    ("n", "last"), [(10**19, 1.0), (2**53 + 2, 1.0), (10**15, 10.0), (3, 2.0**52), (10**9, 1e7)]
)
@pytest.mark.parametrize("method", ["chain", "vector"])
def test_more_steps_than_are_counted_are_refused_in_python_and_by_a_study(n, last, method):
    content = {
        "study": "far",
        "title": "Far",
        "system": "OnlineICA",
        "grid": {"tau": [0.05]},
        "times": [0, last],
        "methods": {method: {"n": n, "seeds": 1}},
    }
    with pytest.raises(HdicaError) as of_python:
        simulate(n=n, times=[0, last], method=method)
    with pytest.raises(HdicaError) as of_study:
        study_from(content)
    allowed = r"n = \d+ is not allowed (\(a whole number <= 2\*\*53\)|with times up to)"
    for raised in (of_python, of_study):
        assert re.search(allowed, str(raised.value)), raised.value


@pytest.mark.parametrize("n", [10**19, 2**53 + 2, 10**400])
def test_dimensions_that_no_number_holds_are_refused_wherever_one_is_taken(n):
    calls = [
        lambda: simulate(n=n),
        lambda: simulate(n=n, method="vector"),
        lambda: simulate(n=n, method="particles"),
        lambda: hdica.escape_time(TRAP, n=n),
        lambda: hdica.simulate(TRAP, n=n, times=TIMES),
    ]
    for call in calls:
        with pytest.raises(HdicaError, match=r"^n = \d+.* is not allowed \(a whole number"):
            call()


def test_the_last_step_that_is_counted_is_taken():
    found = simulate(n=2**53 // 1000, times=[0, 1e-9], method="chain")
    assert found["step"].values.tolist() == [0, int(2**53 // 1000 * 1e-9)]
    assert found["status"].values.tolist() == [1]


@pytest.mark.parametrize("tau", ["0.1*exp(-t/10)", "2**-4"])
def test_a_parameter_that_is_a_formula_is_not_said_to_be_unknown(tau):
    with pytest.raises(HdicaError) as raised:
        hdica.critical(OnlineICA(tau=tau), "tau")
    assert str(raised.value) == (
        f"parameter = 'tau' is not allowed with tau = '{tau}' (that is no plain number: give one)"
    )


@pytest.mark.parametrize(
    ("system", "symbol", "meant"),
    [
        (OnlineICA, "f", "nonlinearity"),
        (OnlineICA, "phi", "regularizer"),
        (SparsePCA, "φ", "regularizer"),
        (HebbianICA, "phi", "nonlinearity"),
    ],
)
def test_a_symbol_of_the_papers_leads_to_its_key(system, symbol, meant):
    with pytest.raises(HdicaError, match=rf"{symbol} is not a known key \(did you mean '{meant}'"):
        system(**{symbol: "x**3"})
