"""Plain data from YAML files that anybody may have written, and the numbers of papers in some.

Nothing in such a file is more than data: tags make no objects, aliases are bounded in what they
stand for, and what no study can need (dates, bytes, sets, control characters) is refused. What is
too much is refused while it is read, not when it is there.
"""

from __future__ import annotations

import io
import json
import os
import stat
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hdica.errors import HdicaError, extras, from_validation
from hdica.inputs.place import place

MOST_BYTES = 2 * 2**20  # largest file that is read
MOST_DEPTH = 32  # deepest nesting of lists and mappings
MOST_NODES = 50_000
"""Most values of a YAML file, which takes seconds; those that aliases repeat count every time."""
MOST_BITS = 256  # longest whole number
MOST_DIGITS = 1000
"""Longest whole number that is made a number of; far shorter ones are refused with their size."""
PLAIN = "texts, numbers, true, false, lists and mappings"
TOO_DEEP = f"it is nested deeper than {MOST_DEPTH} levels"
TOO_MANY = (
    f"it has more than {MOST_NODES} values (at most so many are read: start, stop and num stand "
    "for many, and JSON may have more)"
)
TAGS = frozenset(
    f"tag:yaml.org,2002:{kind}"
    for kind in ("null", "bool", "int", "float", "str", "seq", "map", "merge")
)


@extras()
def read_yaml(path: Path) -> Any:
    """Plain data of a YAML 1.2 file: texts, numbers, booleans, None, lists and mappings.

    A key given twice is an error.
    """
    text = _text(path)
    content = _content(path, text)
    for where, problem in _not_plain(content, ""):
        raise HdicaError(f"{path}: {where or 'it'} {problem}")
    return content


@extras()
def written_yaml(content: Any, width: int = 100) -> str:
    """Text of a YAML file from which :func:`read_yaml` reads the same plain data, in its order."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = None  # lists and mappings of numbers and words on a line
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.allow_unicode = True
    yaml.width = width
    text = io.StringIO()
    yaml.dump(content, text)
    return text.getvalue()


def _content(path: Path, text: str) -> Any:
    # JSON of lists and mappings is YAML that can be read a hundred times faster.
    if text.lstrip(" \t\r\n")[:1] in ("{", "["):
        try:
            # YAML reads NaN and Infinity as words.
            return json.loads(
                text, object_pairs_hook=_mapping, parse_int=_whole, parse_constant=str
            )
        except json.JSONDecodeError:
            pass  # YAML, too, may begin with a bracket
        except RecursionError:
            raise HdicaError(f"{path} is not valid YAML: {TOO_DEEP}") from None
        except HdicaError as exc:
            raise HdicaError(f"{path}: {exc}") from exc
    return _yaml(path, text)


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise HdicaError(f"key {json.dumps(twice)} is given twice")
    return mapping


def _whole(text: str) -> int:
    _check_digits(text)
    return int(text)


def _check_digits(text: str) -> None:
    """Refuse a number that Python would take long to read, or not read at all."""
    if len(text) > MOST_DIGITS:
        raise HdicaError(f"a number of {len(text)} digits is not allowed")


def _yaml(path: Path, text: str) -> Any:
    from ruamel.yaml.constructor import DuplicateKeyError
    from ruamel.yaml.error import MarkedYAMLError

    try:
        return _loaded(text)
    except HdicaError as exc:
        raise HdicaError(f"{path} is not valid YAML: {exc}") from exc
    except DuplicateKeyError as exc:
        line = exc.problem_mark.line + 1 if exc.problem_mark else "?"
        problem = str(exc.problem).split(" with value")[0].removeprefix("found duplicate key ")
        raise HdicaError(f"{path}: key {problem} is given twice (line {line})") from exc
    except MarkedYAMLError as exc:
        mark = exc.problem_mark
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = TOO_DEEP if "maximum depth" in str(exc.problem) else exc.problem
        if "'\\t'" in str(problem):
            problem = "a tab is not allowed there (YAML takes spaces)"
        raise HdicaError(f"{path} is not valid YAML{where}: {problem}") from exc
    except RecursionError as exc:
        raise HdicaError(f"{path} is not valid YAML: {TOO_DEEP}") from exc
    except Exception as exc:  # whatever a parser meets in a file that was made to break it
        first = str(exc).strip().splitlines()[0] if str(exc).strip() else type(exc).__name__
        raise HdicaError(f"{path} is not valid YAML: {first}") from exc


def _text(path: Path) -> str:
    """Content of a text file; a pipe or a device is not waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            about = os.fstat(descriptor)
            if not stat.S_ISREG(about.st_mode):
                raise HdicaError(f"cannot read {path} (it is no regular file)")
            if about.st_size > MOST_BYTES:
                size, most = about.st_size / 2**20, MOST_BYTES / 2**20
                raise HdicaError(f"cannot read {path} ({size:.1f} MiB; at most {most:.0f} MiB)")
            return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise HdicaError(
            f"{path} is not valid YAML: byte {exc.start} is no UTF-8 ({exc.reason})"
        ) from exc
    except HdicaError:
        raise
    except (OSError, ValueError) as exc:
        raise HdicaError(f"cannot read {path} ({getattr(exc, 'strerror', '') or exc})") from exc


def _loaded(text: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.docinfo import DocInfo

    yaml = YAML(typ="safe", pure=True)
    yaml.Composer = _bounded_composer()  # type: ignore[assignment]
    yaml.max_depth = MOST_DEPTH + 1
    yaml.doc_infos.append(DocInfo())  # where a line such as %YAML 1.2 is noted
    constructor, _ = yaml.get_constructor_parser(text)
    constructor.composer.warn_double_anchors = False
    node = constructor.composer.get_single_node()
    if node is None:
        return None
    # Before anything is made of it: merge keys alone can make a mapping of a thousand million.
    _weigh(node, {}, set())
    return constructor.construct_document(node)


@cache
def _bounded_composer() -> type:
    """A composer of nodes that counts them, since each takes as long to make as a page of text."""
    from ruamel.yaml.composer import Composer

    class Bounded(Composer):
        made = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self.made += 1
            if self.made > MOST_NODES:
                raise HdicaError(TOO_MANY)
            return super().compose_node(parent, index)

        def compose_scalar_node(self, anchor: Any) -> Any:
            node = super().compose_scalar_node(anchor)
            if str(node.tag).endswith(":int"):
                _check_digits(node.value)
            # As in JSON, two escapes may stand for one character.
            node.value = node.value.encode("utf-16", "surrogatepass").decode(
                "utf-16", "surrogatepass"
            )
            return node

    return Bounded


def _weigh(node: Any, weights: dict[int, tuple[int, int]], above: set[int]) -> tuple[int, int]:
    """How many values a node stands for, aliases followed, and how deep they are nested."""
    if id(node) in above:
        raise HdicaError(f"line {node.start_mark.line + 1} holds itself (by an alias)")
    if id(node) in weights:
        return weights[id(node)]
    if str(node.tag) not in TAGS:
        kind = str(node.tag).removeprefix("tag:yaml.org,2002:")
        line = node.start_mark.line + 1
        raise HdicaError(f"a {kind} is not allowed (line {line}; {PLAIN} are)")
    parts: list[Any] = node.value if isinstance(node.value, list) else []
    inner = [one for part in parts for one in (part if isinstance(part, tuple) else (part,))]
    above.add(id(node))
    weighed = [_weigh(one, weights, above) for one in inner]
    above.discard(id(node))
    count, depth = 1 + sum(n for n, _ in weighed), 1 + max((d for _, d in weighed), default=0)
    if depth > MOST_DEPTH:
        raise HdicaError(TOO_DEEP)
    if count > MOST_NODES:
        raise HdicaError(TOO_MANY)
    weights[id(node)] = count, depth
    return count, depth


def _not_plain(value: Any, where: str, depth: int = 1) -> Iterator[tuple[str, str]]:
    """Places of what no study can need, each with what is wrong there."""
    if depth > MOST_DEPTH:
        yield where, f"is not allowed: {TOO_DEEP}"
    elif isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                yield where, f"has the key {key!r} (keys are words)"
            else:
                yield from _odd_text(key, f"{where}, a key")
                yield from _not_plain(inner, f"{where}.{key}" if where else key, depth + 1)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _not_plain(inner, f"{where}[{index}]", depth + 1)
    elif isinstance(value, str):
        yield from _odd_text(value, where)
    elif isinstance(value, int):
        if value.bit_length() > MOST_BITS:
            yield where, f"is a number of {value.bit_length()} bits (at most {MOST_BITS})"
    elif not isinstance(value, float | None):
        kind = type(value).__name__
        yield where, f"is a {kind} ({PLAIN} are allowed)"


def _odd_text(text: str, where: str) -> Iterator[tuple[str, str]]:
    for character in text:
        code = ord(character)
        control = (code < 32 and character not in "\n\t") or 127 <= code < 160
        if control or 0xD800 <= code < 0xE000:
            yield where, f"holds the character U+{code:04X}, which is not allowed"
            return


Origin = Literal["setting", "printed", "formula", "derived", "simulated"]
"""Where a number comes from: a setting of an experiment or a result, both printed; what a printed
formula gives; a derivation or a simulation apart from this code."""


class Number(BaseModel):
    """A number, with what it is and how well it is known."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)

    value: float  # as printed where it is printed
    what: str  # what it is
    where: str  # section, equation or figure
    origin: Origin
    corrected: float | None = None  # what it should be, if an erratum corrects it
    error: float = Field(default=0.0, ge=0)  # standard error, 0 for what is exact
    rounding: float = Field(
        default=0.0, ge=0
    )  # half a unit of its last digit, or the tolerance of its computation
    erratum: str = ""  # the row of the errata about it
    how: str = ""  # how it was computed


class Reference(BaseModel):
    """Numbers of one paper, by name."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    paper: str
    about: str = ""
    numbers: dict[str, Number] = Field(min_length=1)


def load_reference(path: str) -> Reference:
    """Numbers of a paper, of a path below the folder of data: ``"reference/wang2017.yaml"``.

    Refused if there is no such file, or it is not what a file of numbers has to be.
    """
    file: Path = place(path)
    content = read_yaml(file)
    if not isinstance(content, dict):
        raise HdicaError(f"{file} is no file of numbers (a mapping: paper, about, numbers)")
    try:
        return Reference.model_validate(content)
    except ValidationError as exc:
        raise from_validation(exc, str(file), Reference.model_fields) from exc
