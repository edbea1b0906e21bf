"""What points keep beyond their order parameters: the block ``save`` of a study."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from hdica.errors import HdicaError
from hdica.ingredients.save import ALL, NOTHING, Save
from hdica.study.cells import canonical_json
from hdica.systems.arguments import (
    MAX_VALUES,
    check_increasing,
    check_points,
    extra_names,
    formulas,
    how_many_entries,
    spaced,
)
from hdica.systems.method import Method
from hdica.systems.space import check_keys

_Numbers = tuple[float, ...] | None


def _increasing(field: str, what: str) -> BeforeValidator:
    def read(given: Any) -> _Numbers:
        if given is None:
            return None
        found = spaced(given, field, MAX_VALUES)
        check_increasing(found, field, what, MAX_VALUES, positive=field != "x")
        if field == "x":
            check_points(found)
        return found

    return BeforeValidator(read)


class Saved(BaseModel):
    """What a study keeps beyond the order parameters of its points."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    snapshots: Annotated[_Numbers, _increasing("snapshots", "time")] = Field(
        default=None, description="times at which densities and support recovery are kept"
    )
    x: Annotated[_Numbers, _increasing("x", "point")] = Field(
        default=None, description="points of the densities, increasing"
    )
    thresholds: Annotated[_Numbers, _increasing("thresholds", "threshold")] = Field(
        default=None, description="thresholds on abs(x) for support recovery"
    )
    functionals: Annotated[dict[str, str], BeforeValidator(formulas)] = Field(
        default_factory=dict, description="name and formula in x and xi of means kept at all times"
    )
    extra: Annotated[tuple[str, ...], BeforeValidator(extra_names)] = Field(
        default=(), description="names of further variables that methods give on request"
    )

    estimate: Annotated[int, BeforeValidator(how_many_entries)] = Field(
        default=0,
        description=(
            "entries of the estimate itself, and of xi, that are kept at the snapshots: the first "
            "ones, or `true` for all of the largest n"
        ),
    )

    bands: bool = Field(
        default=False,
        description="whether limits keep sqrt(n) times the standard deviation of what they give",
    )
    bias: bool = Field(
        default=False, description="whether limits keep n times what the mean of runs is beyond"
    )

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, given: Any) -> Any:
        if given is None:
            return {}
        return given if isinstance(given, cls) else check_keys(given, list(cls.model_fields))

    @model_serializer(mode="wrap")
    def _written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Stores of before know no such keys: without them the digest of a study is what it was.
        found: dict[str, Any] = handler(self)
        if self.estimate == ALL:
            found["estimate"] = True
        later = ("extra", "estimate", "bands", "bias")
        return {k: v for k, v in found.items() if v or k not in later}

    @model_validator(mode="after")
    def _whole(self) -> Saved:
        if self.snapshots and not (self.x or self.thresholds or self.estimate):
            raise HdicaError(
                "snapshots need x, thresholds or estimate (points of the densities, thresholds on "
                "abs(x), or how many entries of the estimate)"
            )
        for name in ("x", "thresholds", "estimate"):
            if getattr(self, name) and not self.snapshots:
                raise HdicaError(f"{name} needs snapshots (times at which it is kept)")
        return self

    def spec(self) -> Save:
        """The same as methods take it."""
        found = Save(self.snapshots or (), self.x or (), self.thresholds or (), self.functionals)
        more = {name: getattr(self, name) for name in ("extra", "estimate", "bands", "bias")}
        return replace(found, **more)


def parts(save: Save) -> list[tuple[str, str, Save]]:
    """What is asked: the key of ``save``, what it brings, and that part alone."""
    asked = []
    if save.x:
        asked.append(("x", "densities", Save(save.snapshots, x=save.x)))
    if save.thresholds:
        asked.append(
            ("thresholds", "support recovery", Save(save.snapshots, thresholds=save.thresholds))
        )
    if save.estimate:
        part = Save(save.snapshots, estimate=save.estimate)
        asked.append(("estimate", "estimates", part))
    if save.functionals:
        asked.append(("functionals", "functionals", Save(functionals=save.functionals)))
    asked += [("extra", name, Save(extra=(name,))) for name in save.extra]
    if save.bands:
        asked.append(("bands", "bands", Save(bands=True)))
    if save.bias:
        asked.append(("bias", "biases", Save(bias=True)))
    return asked


def can_keep(method: Method, part: Save) -> bool:
    """Whether a method keeps anything of a part."""
    return len(method.outputs_of(part)) > len(method.outputs.always)


def kept_by(method: Method, save: Save) -> Save:
    """What a method can keep of what a study asks for: nothing else is in its keys."""
    found = [part for _, _, part in parts(save) if can_keep(method, part)]
    return Save(
        snapshots=next((p.snapshots for p in found if p.snapshots), ()),
        x=next((p.x for p in found if p.x), ()),
        thresholds=next((p.thresholds for p in found if p.thresholds), ()),
        functionals=next((p.functionals for p in found if p.functionals), {}),
        extra=tuple(name for p in found for name in p.extra),
        estimate=next((p.estimate for p in found if p.estimate), 0),
        bands=any(p.bands for p in found),
        bias=any(p.bias for p in found),
    )


def sized(save: Save, sizes: Iterable[int | None]) -> Save:
    """The same where as many entries of the estimate are kept as the largest n has.

    Points of all n keep as many, because they stand in one array: NaN where there are no more.
    """
    most = max((n for n in sizes if n is not None), default=0)
    if save.estimate > most:
        raise HdicaError(
            f"save.estimate = {save.estimate} is not allowed (at most n = {most} entries)"
        )
    return replace(save, estimate=most) if save.estimate == ALL else save


def plain(save: Save) -> dict[str, Any]:
    """What is kept as plain data, without what is empty: ``{}`` if nothing is."""
    content = {
        "snapshots": list(save.snapshots),
        "x": list(save.x),
        "thresholds": list(save.thresholds),
        "functionals": dict(save.functionals),
        "extra": list(save.extra),
        "estimate": save.estimate,
        "bands": save.bands,
        "bias": save.bias,
    }
    return {name: value for name, value in content.items() if value}


def from_plain(content: dict[str, Any]) -> Save:
    """What is kept, from :func:`plain` data."""
    if not content:
        return NOTHING
    snapshots, x, thresholds, extra = (
        tuple(content.get(name, ())) for name in ("snapshots", "x", "thresholds", "extra")
    )
    found = Save(snapshots, x, thresholds, dict(content.get("functionals", {})), extra=extra)
    return replace(
        found,
        estimate=content.get("estimate", 0),
        bands=content.get("bands", False),
        bias=content.get("bias", False),
    )


def digest(save: Save) -> str:
    """Digest of what is kept, so that a key need not hash all of it; empty for nothing."""
    content = plain(save)
    return hashlib.sha256(canonical_json(content).encode()).hexdigest() if content else ""


def described(save: Save, methods: Iterable[Method]) -> str:
    """Who keeps what, for a person: ``densities (one, another), functionals (another)``."""
    known = list(methods)
    texts = []
    for _, what, part in parts(save):
        names = ", ".join(method.name for method in known if can_keep(method, part))
        texts.append(f"{what} ({names})")
    return ", ".join(texts)
