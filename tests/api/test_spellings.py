"""Python takes times, seeds, dimensions and short names as a study writes them."""

import numpy as np
import pytest

import hdica
from hdica.errors import HdicaError

ICA = hdica.OnlineICA(tau=0.05, start={"overlap": 0.3})
TIMES = {"stop": 2, "num": 5}
LISTED = [0, 0.5, 1, 1.5, 2]


def test_a_short_name_is_what_it_is_short_for():
    assert hdica.OnlineICA(tau=0.05, Q0=0.3) == ICA
    assert hdica.OnlineICA(tau=0.05, Q0=np.float64(0.3)).model_dump_json() == ICA.model_dump_json()
    assert hdica.OnlineICA.model_validate({"tau": 0.05, "Q0": 0.3}) == ICA
    sparse = hdica.SparsePCA(tau=0.1, rho=0.2, Q0=0.4)
    assert sparse == hdica.SparsePCA(tau=0.1, prior={"sparse": 0.2}, start={"overlap": 0.4})
    assert sparse.model_fields_set == {"tau", "prior", "start"}
    hebbian = hdica.HebbianICA(mu=0.1, R0=0.2)
    assert hebbian == hdica.HebbianICA(mu=0.1, start={"overlap": 0.2})


def test_a_copy_takes_short_names_for_what_is_there_already():
    assert ICA.model_copy(update={"Q0": 0.5}).start == {"overlap": 0.5}
    exact = hdica.OnlineICA(tau=0.1, start={"overlap": 0.3, "exact": True})
    assert exact.model_copy(update={"Q0": 0.5}).start == {"overlap": 0.5, "exact": True}
    normal = hdica.OnlineICA(tau=0.1, start={"normal": {"mean": 0.5, "var": 0.5}})
    assert normal.model_copy(update={"Q0": 0.5}).start == {"overlap": 0.5}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"Q0": 0.3, "start": {"overlap": 0.3}}, "Q0 = 0.3 and start = .* not allowed together"),
        ({"rho": 0.3, "prior": "dense"}, "rho = 0.3 and prior = 'dense' are not allowed together"),
        ({"Q0": 2}, "overlap = 2 is not allowed"),
        ({"Qo": 0.3}, "Qo is not a known key .allowed: .*, Q0, rho"),
    ],
)
def test_a_short_name_is_checked(given, said):
    with pytest.raises(HdicaError, match=f"^OnlineICA: .*{said}"):
        hdica.OnlineICA(tau=0.05, **given)


def test_times_are_a_list_or_a_range():
    assert hdica.limit(ICA, times=TIMES).identical(hdica.limit(ICA, times=LISTED))
    one, other = (hdica.simulate(ICA, n=50, times=t, seeds=3) for t in (TIMES, LISTED))
    assert one.identical(other)
    log = {"start": 0.5, "stop": 2, "num": 3, "spacing": "log"}
    assert hdica.limit(ICA, times=log)["time"].values.tolist() == [0.5, 1, 2]


def test_points_and_thresholds_are_lists_or_ranges():
    asked = {"times": [0, 1], "method": "pde", "snapshots": [1]}
    spaced = hdica.limit(ICA, x={"start": -2, "stop": 2, "num": 5}, **asked)
    assert spaced.identical(hdica.limit(ICA, x=[-2, -1, 0, 1, 2], **asked))


@pytest.mark.parametrize(
    ("times", "said"),
    [
        ({"stop": 1, "nmu": 3}, "times.nmu is not a known key .did you mean 'num'"),
        ({"stop": 1}, "times: num is missing"),
        ({"stop": 1, "num": 10**9}, "times has 1000000000 values"),
        ({"start": -1, "stop": 1, "num": 3}, "times = -1 is not allowed"),
        ({"stop": 0, "num": 3}, "times: 0 comes after 0"),
        ({"a": 1}, "times.a is not a known key"),
    ],
)
def test_a_range_of_times_is_checked(times, said):
    for call in (hdica.limit, lambda ica, times: hdica.simulate(ica, n=50, times=times)):
        with pytest.raises(HdicaError, match=f"^{said}"):
            call(ICA, times=times)
