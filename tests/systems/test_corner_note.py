"""One corner that is both a fold and a junction is said to be one point."""

import pytest

import hdica
from hdica import SparsePCA


@pytest.mark.deep
def test_a_fold_at_a_junction_is_said_to_be_one_point():
    def system(tau):
        return SparsePCA(
            tau=tau,
            omega=0.2,
            regularizer="b*sign(x)",
            constants={"b": 0.27},
            prior={"sparse": 0.05},
            start={"overlap": 0.5},
        )

    found = hdica.critical(system(0.54), "omega", low=0.05, high=1.0)
    fold, corner = (found["value"].values[found["kind"].values == k] for k in ("fold", "junction"))
    assert fold[0] in corner
    assert f"the fold and the junction at {fold[0]:.6g} are one point" in found.attrs["note"]
    apart = hdica.critical(system(0.5), "omega", low=0.05, high=1.0)
    assert "fold" in apart["kind"].values
    assert "one point" not in apart.attrs.get("note", "")
