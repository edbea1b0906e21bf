"""Systems and studies as a person reads them."""

from __future__ import annotations

import copy
import inspect
import pickle
import pydoc

import pytest

import hdica
from hdica.systems.system import systems

ALL = {name: record for name, record in systems().items() if record.examples}


@pytest.fixture
def ica() -> hdica.OnlineICA:
    return hdica.OnlineICA(tau=0.05, start={"overlap": 0.7})


def test_one_line_begins_with_what_differs_and_can_be_run(ica):
    text = repr(ica)
    assert text.startswith("OnlineICA(tau=0.05, start={'overlap': 0.7}, source='uniform'")
    assert eval(text, vars(hdica), {"OnlineICA": hdica.OnlineICA}) == ica  # noqa: S307 - our own


@pytest.mark.parametrize("name", ALL)
def test_every_example_of_every_system_is_what_its_line_says(name):
    kind = ALL[name].parameters
    for given in ALL[name].examples:
        one = kind(**given)
        assert eval(repr(one), {name: kind}) == one  # noqa: S307 - our own text
        for field in kind.model_fields:
            assert field in str(one)
            assert f"<code>{field}</code>" in one._repr_html_()


def test_print_says_title_paper_symbols_and_defaults(ica):
    first, tau, start, source, *_ = str(ica).splitlines()
    assert first == "OnlineICA: Online ICA with one feature (Wang and Lu 2017)"
    assert tau.split() == ["τ", "tau", "=", "0.05"]
    assert "default" not in start
    assert source.split() == ["source", "=", "'uniform'", "(default)"]


def test_a_notebook_escapes_what_a_user_wrote():
    one = hdica.OnlineICA(tau=0.05)
    page = one._repr_html_()
    assert "<table>" in page
    assert "&#x27;uniform&#x27;" in page
    assert "Scaling Limit of High-Dimensional" in page


@pytest.mark.parametrize("name", ALL)
def test_tab_shows_parameters_and_few_methods(name):
    kind = ALL[name].parameters
    one = kind(**ALL[name].examples[0])
    assert set(kind.model_fields) <= set(dir(one))
    rest = set(dir(one)) - set(kind.model_fields)
    assert {"dims", "model_copy"} <= rest
    assert not any(name.startswith("_") for name in dir(one))
    assert not rest & {"model_dump", "model_fields", "json", "schema", "construct"}
    assert all(callable(getattr(one, k)) or not k.startswith("model") for k in rest)


@pytest.mark.parametrize("name", ALL)
def test_help_is_short_and_has_no_machinery(name):
    kind = ALL[name].parameters
    text = pydoc.plain(pydoc.render_doc(kind))
    assert len(text.splitlines()) < 120
    assert "pydantic_core" not in text
    assert "BeforeValidator" not in text
    for field in kind.model_fields:
        assert field in text


def test_the_signature_has_the_defaults():
    found = inspect.signature(hdica.OnlineICA).parameters
    assert found["source"].default == "uniform"
    assert list(found) == list(hdica.OnlineICA.model_fields)
    found = inspect.signature(hdica.SparsePCA).parameters
    assert found["tau"].default is inspect.Parameter.empty


def test_models_stay_models(ica):
    assert pickle.loads(pickle.dumps(ica)) == ica  # noqa: S301 - our own
    assert copy.deepcopy(ica) == ica
    assert ica.model_copy(update={"tau": 0.1}).tau == 0.1
    assert hdica.OnlineICA.model_validate_json(ica.model_dump_json()) == ica
    assert hdica.SparsePCA.model_json_schema()["required"] == ["tau"]


def test_a_study_is_listed():
    study = hdica.Study(
        study="probe",
        title="Where <does> it learn?",
        system="OnlineICA",
        grid={"tau": {"start": 0.02, "stop": 0.08, "num": 13}, "Q0": [0.3, 0.7]},
        times={"stop": 4, "num": 5},
        methods={"chain": {"n": [100, 200], "seeds": 3}, "ode": {}},
    )
    text = str(study)
    assert text.splitlines()[0] == "probe: Where <does> it learn?"
    assert "0.02 … 0.08 (13 values)" in text
    assert "n = (100, 200), seeds = 3" in text
    assert "at most 182" in text
    page = study._repr_html_()
    assert "&lt;does&gt;" in page
    assert "<code>Q0</code>" in page
