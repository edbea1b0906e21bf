"""The question of a study: words for its page, and which analysis answers it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import hdica
from hdica.errors import HdicaError
from hdica.store.publish import about_study
from hdica.study.study import Study, study_from

BASE: dict[str, Any] = {
    "study": "asks",
    "system": "OnlineICA",
    "parameters": {"source": "uniform"},
    "grid": {"tau": [0.02, 0.04]},
    "times": [0, 1],
    "methods": {"chain": {"n": [50, 100], "seeds": 2}, "ode": {}},
    "analysis": {"convergence": {"simulation": "chain", "limit": "ode"}},
}
TEXT = "Where does it learn?"


def test_a_question_changes_no_number_and_no_key() -> None:
    base = study_from(BASE)
    asked = study_from({**BASE, "question": TEXT})
    assert asked.content_hash() == base.content_hash()
    assert asked.full_hash() != base.full_hash()
    assert asked.content() == base.content()


def test_a_study_without_one_says_what_it_said_before() -> None:
    assert "question" not in study_from(BASE).model_dump(mode="json")
    assert "question" not in hdica.Study.from_mapping(BASE).to_mapping()
    assert study_from({**BASE, "question": None}).full_hash() == study_from(BASE).full_hash()


@pytest.mark.parametrize(
    "question", [TEXT, {"text": TEXT}, {"text": TEXT, "analysis": "convergence"}]
)
def test_a_question_survives_files_and_stores(question: Any) -> None:
    study = study_from({**BASE, "question": question})
    assert study.question is not None
    assert study.question.text == TEXT
    assert about_study(study)["question"] == TEXT
    again = study_from(json.loads(about_study(study)["study_yaml"]))
    assert again == study
    assert again.full_hash() == study.full_hash()
    assert Study.model_validate_json(study.model_dump_json()) == study
    assert study_from(hdica.Study.from_mapping(study.model_dump(mode="json")).to_mapping()) == study


def test_a_text_alone_is_written_as_one() -> None:
    assert study_from({**BASE, "question": {"text": TEXT}}).model_dump()["question"] == TEXT
    named = study_from({**BASE, "question": {"analysis": "convergence"}})
    assert named.model_dump()["question"] == {"analysis": "convergence"}


@pytest.mark.parametrize(
    ("question", "what"),
    [
        ({"analysis": "phase"}, "'phase' is not an analysis of this study .*convergence"),
        ({"analysis": "fase"}, "'fase' is not an analysis"),
        ({"words": "why"}, "question.*words"),
        ("\u202e", r"U\+202E"),
        ("", "something to ask"),
    ],
)
def test_a_question_that_means_nothing_is_refused(question: Any, what: str) -> None:
    with pytest.raises(HdicaError, match=what):
        study_from({**BASE, "question": question})


def test_a_study_of_no_analysis_may_name_any() -> None:
    bare = {k: v for k, v in BASE.items() if k != "analysis"}
    assert study_from({**bare, "question": {"analysis": "convergence"}}).question is not None
    with pytest.raises(HdicaError, match="'nothing' is not an analysis"):
        study_from({**bare, "question": {"analysis": "nothing"}})
