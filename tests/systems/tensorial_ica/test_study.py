"""Studies of tensorial ICA: what suits it by default, and what a sweep over d can keep."""

import pytest

import hdica
from hdica.analysis.aggregate import aggregate
from hdica.errors import HdicaError

FROM_ARRAY = {
    "study": "small",
    "system": "TensorialICA",
    "parameters": {"source": "rademacher", "eta": 1e-3, "start": "uniform"},
    "times": [0, 10, 100],
    "methods": {"vector": {"seeds": 6}, "traverse": {}},
}


@pytest.mark.deep
def test_without_an_analysis_the_ensemble_is_shown():
    study = hdica.Study(**FROM_ARRAY, grid={"dimension": [3, 5]})
    tree = study.run()
    assert tree["vector"]["tan2"].dims == ("dimension", "seed", "time")
    assert tree["vector"]["step"].values.tolist() == [0, 10, 100]
    found = aggregate(tree)["ensemble"]
    assert found.attrs["variable"] == "tan2"
    assert found["quantile"].sizes["dimension"] == 2
    page = study.report(tree)
    assert "the median of tan" in page.read_text()


def test_vectors_are_kept_where_the_dimension_is_one():
    one = hdica.Study(**FROM_ARRAY, grid={"dimension": [4]}, save={"extra": ["v"]})
    v = one.run()["vector"]["v"]
    assert v.dims == ("dimension", "seed", "time", "component")
    with pytest.raises(HdicaError, match="component"):
        hdica.Study(**FROM_ARRAY, grid={"dimension": [3, 5]}, save={"extra": ["v"]}).run()


def test_parts_of_the_schedule_are_swept_by_their_short_names():
    given = FROM_ARRAY | {"parameters": {"dimension": 4, "source": "uniform"}}
    given["methods"] = {"training": {"seeds": 4}, "two_phase": {}}
    grid = {"T": [2000, 4000], "c1": [0.2, 0.4], "c2": [1.5]}
    tree = hdica.Study(**given, grid=grid).run()
    assert tree["training"]["tan2"].dims == ("T", "c1", "c2", "seed")
    assert tree["two_phase"]["tan2"].dims == ("T", "c1", "c2")
