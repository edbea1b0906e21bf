"""The question that a study asks, in words, and which of its analyses answers it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_serializer,
    model_validator,
)

from hdica.errors import HdicaError
from hdica.sweep.study.words import plain_text
from hdica.systems import axes as ax


class Question(BaseModel):
    """The question of a study; a text alone is its ``text``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: Annotated[str, AfterValidator(plain_text)] = Field(
        default="", max_length=2_000, description="in words, for the head of the report"
    )
    analysis: str = Field(default="", description="the analysis whose answer is the headline")

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, given: Any) -> Any:
        return given if isinstance(given, cls) else ax.check_keys(given, list(cls.model_fields))

    @model_validator(mode="after")
    def _something(self) -> Question:
        if not self.text.strip() and not self.analysis:
            raise HdicaError("it needs text or analysis (something to ask)")
        return self

    @model_serializer
    def _plain(self) -> Any:
        """A text alone is a text, as in most study files."""
        if not self.analysis:
            return self.text
        return ({"text": self.text} if self.text else {}) | {"analysis": self.analysis}


def _read(given: Any) -> Any:
    return {"text": given} if isinstance(given, str) else given


Asking = Annotated[Question, BeforeValidator(_read)]
"""A question as studies have it: a text, or ``{text, analysis}``."""
