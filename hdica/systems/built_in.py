"""The systems that come with hdica: a line each, in the order in which they are listed."""

# ruff: noqa: I001
from typing import TYPE_CHECKING

from hdica.systems.online_ica.record import OnlineICA as OnlineICA
from hdica.systems.sparse_pca.record import SparsePCA as SparsePCA
from hdica.systems.several_ica.record import SeveralICA as SeveralICA
from hdica.systems.hebbian_ica.record import HebbianICA as HebbianICA
from hdica.systems.tensorial_ica.record import TensorialICA as TensorialICA
from hdica.systems.subspace_ica.record import SubspaceICA as SubspaceICA
from hdica.systems.patch_ica.record import PatchICA as PatchICA
from hdica.systems.filter_series.record import FilterSeries as FilterSeries

if TYPE_CHECKING:  # the functions that a record names, for whoever checks types
    from hdica.systems.online_ica.escape import escape_exponent as escape_exponent
    from hdica.systems.hebbian_ica.as_online import convert as convert
    from hdica.systems.hebbian_ica.as_online import tracking as tracking
    from hdica.systems.hebbian_ica.api import (
        asymptotics as asymptotics,
        conflict_region as conflict_region,
        escape_signs as escape_signs,
    )
