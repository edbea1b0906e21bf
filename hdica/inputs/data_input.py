"""A field of a system that is data: named by its path, known by its content.

Wherever such a field is checked it takes its normal form, which holds the SHA-256 of the content.
That form goes into the keys of points: other pixels are other points, and a worker with other data
refuses it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field

from hdica.errors import DataGone, HdicaError, suggestion
from hdica.ingredients.plain import ARRAY, VECTOR
from hdica.inputs.pictures import BUNDLED_NAMES, bundled_digest
from hdica.inputs.place import check_listed, digest, place, relative

BUNDLED = "bundled"  # photographs that come with installed packages
DATA = (
    "a path below `data/`, `{path, sha256}`, `bundled`, or `{bundled: [names]}` of "
    f"{', '.join(BUNDLED_NAMES)}"
)
"""What such a field may hold, for the manual."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


def data_input(value: object) -> dict[str, Any]:
    """Normal form of what names data: ``{"path", "sha256"}`` or ``{"bundled", "sha256"}``.

    A path is relative to the folder of data (:func:`hdica.inputs.place.data_root`): a file or a
    folder. ``"bundled"`` are the photographs of :data:`hdica.inputs.pictures.BUNDLED_NAMES`,
    ``{"bundled": [names]}`` some of them. A normal form has a digest that the content has to have.

    Refused if there is no such data; if it is not what its digest or a manifest says.
    """
    form = _spelt(value)
    if BUNDLED in form:
        names = _names(form[BUNDLED])
        sha256 = bundled_digest(names)
        made = {BUNDLED: "all" if names == BUNDLED_NAMES else list(names), "sha256": sha256}
        what = f"bundled = {made[BUNDLED]!r}"
    else:
        path = relative(form["path"])
        where = place(path)
        check_listed(where)
        sha256 = digest(where)
        made, what = {"path": path, "sha256": sha256}, f"path = {path!r}"
    expected = form.get("sha256", sha256)
    if expected != sha256:
        raise DataGone(
            f"{what} is not allowed here (its sha256 is {sha256}, not {expected}: it is other "
            "data)",
            ["sha256"],
        )
    return made


def _spelt(value: object) -> dict[str, Any]:
    """The same as a mapping of its one name and, if given, its digest."""
    if isinstance(value, PurePath):
        value = value.as_posix()
    if isinstance(value, str):
        value = {BUNDLED: "all"} if value == BUNDLED else {"path": value}
    if isinstance(value, Mapping) and len(value.keys() & {"path", BUNDLED}) == 1:
        sha256 = value.get("sha256", "0" * 64)
        plain = value.keys() <= {"path", BUNDLED, "sha256"}
        hexadecimal = isinstance(sha256, str) and _SHA256.fullmatch(sha256)
        if plain and hexadecimal and isinstance(value.get("path", ""), str):
            return dict(value)
    raise HdicaError(
        f"{value!r} is not allowed (a path of data, {{path, sha256}}, bundled, or "
        "{bundled: [names]}; a sha256 has 64 hexadecimal digits)"
    )


def _names(names: object) -> tuple[str, ...]:
    """Names of photographs, in the order in which they are given."""
    if names == "all":
        return BUNDLED_NAMES
    each = [names] if isinstance(names, str) else names
    listed = each if isinstance(each, list | tuple) and each else [names]
    wrong = [name for name in listed if name not in BUNDLED_NAMES]
    if wrong or len(set(listed)) < len(listed):
        every = f"all, or different ones of {', '.join(BUNDLED_NAMES)}"
        near = suggestion(wrong[0] if wrong else "", ("all", *BUNDLED_NAMES), every)
        raise HdicaError(f"bundled = {names!r} is not allowed ({near})", [BUNDLED])
    return tuple(listed)


def path_of(data: Mapping[str, Any]) -> Path:
    """Where data in normal form lies, looked at once more, since it may have been changed."""
    return place(data_input(data)["path"])


def bundled_names(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Names of the photographs that are meant; empty for data with a path."""
    return _names(data[BUNDLED]) if BUNDLED in data else ()


def digests_in(content: Mapping[str, Any]) -> dict[str, str]:
    """Digest of each field that holds the normal form of data, by its name."""
    maps = {name: form for name, form in content.items() if isinstance(form, Mapping)}
    inner = {name: form.get(VECTOR, form.get(ARRAY, form)) for name, form in maps.items()}
    return {
        name: form["sha256"]
        for name, form in inner.items()
        if isinstance(form, Mapping) and "sha256" in form
    }


@dataclass(frozen=True)
class Reads:
    """Mark of the type of a field that may name data."""


def fields_of_data(model: type[BaseModel]) -> frozenset[str]:
    """Names of the fields of a system that may name data."""
    fields = model.model_fields.items()
    return frozenset(
        name for name, one in fields if any(isinstance(mark, Reads) for mark in one.metadata)
    )


# A default that was not validated would lack its digest, and keys leave out what is a default.
DataInput = Annotated[
    str | dict[str, Any], BeforeValidator(data_input), Field(validate_default=True), Reads()
]
"""Type of a field that names data, which holds its normal form; see :func:`data_input`."""
