"""The manifest of a published store: a small file beside it, written last.

It says of which study and which numerical code the store is, how many points have each status, and
its version: the digest of the root's metadata, which name everything in the store. The workflow
follows the manifest, because Snakemake deletes the outputs of a failed job.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hdica.errors import one_sentence
from hdica.status import STATUS_NAMES
from hdica.store.files import DamageError
from hdica.store.paths import manifest_path
from hdica.store.sealed import read_sealed

WITHDRAWN = "hdica repair withdraws it, and hdica run publishes again"


class Manifest(BaseModel):
    """What a manifest must say."""

    model_config = ConfigDict(extra="allow")

    study: str
    study_hash: str
    full_hash: str
    kernel_version: str
    counts: dict[str, dict[str, Annotated[int, Field(ge=0)]]] = Field(
        description="points by method and status"
    )
    version: str = Field(pattern="^[0-9a-f]{16}$", description="names the store's whole content")


def read_manifest(out: str | Path) -> dict[str, Any] | None:
    """The manifest of a published store, None if there is none."""
    path = manifest_path(out)
    try:
        found = read_sealed(path)
        if found is not None:
            Manifest.model_validate(found)
    except DamageError as exc:
        raise DamageError(f"{exc} (the digests of all points; {WITHDRAWN})") from exc
    except ValidationError as exc:
        why = one_sentence(exc, "manifest")
        raise DamageError(f"{path} is damaged: {why} ({WITHDRAWN})") from exc
    return found


def count_in(manifest: dict[str, Any], status: str) -> int:
    """Points that a manifest counts as pending, or as failed."""
    return sum(counts.get(status, 0) for counts in manifest["counts"].values())


def status_counts(status: NDArray[np.uint8]) -> dict[str, int]:
    """How many points have each status, by its name."""
    counts = np.bincount(status.reshape(-1), minlength=len(STATUS_NAMES)).tolist()
    return dict(zip(STATUS_NAMES, counts, strict=True))
