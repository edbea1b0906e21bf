"""Where the stores of a study lie."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from hdica.errors import HdicaError


class DamageError(HdicaError):
    """Stored data that is missing or does not decode; the sentence names file and points."""


def results_path(out: str | Path) -> Path:
    """Path of the published store.

    Raises
    ------
    HdicaError
        If the name does not end in ``.zarr``.
    """
    path = Path(out)
    if path.suffix != ".zarr":
        raise HdicaError(f"results {str(out)!r} is not allowed (the name must end in .zarr)")
    return path


def work_path(out: str | Path) -> Path:
    """Directory of the working store, beside the published one."""
    return results_path(out).with_suffix(".work")


def require_store(out: str | Path) -> None:
    """Refuse results of which there is neither a published nor a working store.

    Raises
    ------
    HdicaError
        Naming the path.
    """
    root = results_path(out)
    if not root.is_dir() and not work_path(out).is_dir():
        raise HdicaError(f"{root} does not exist (hdica run writes it)")


def shard_records(out: str | Path) -> list[Path]:
    """Records that the workflow keeps of finished shards, beside the published store."""
    return sorted(results_path(out).with_suffix(".shards").glob("*.json"))


def manifest_path(out: str | Path) -> Path:
    """The manifest of the published store, written last."""
    return results_path(out).with_suffix(".manifest.json")


def write_text(path: Path, text: str) -> None:
    """Write a whole file or nothing: a temporary sibling, then a rename."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def read_json(path: Path) -> Any:
    """Content of a JSON file.

    Raises
    ------
    DamageError
        If it is not JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as exc:
        raise DamageError(f"{path} is damaged (not valid JSON)") from exc
