"""The systems that come with hdica, in the order in which they are listed."""

from typing import TYPE_CHECKING

BUILT_IN = {
    "OnlineICA": "hdica.systems.online_ica.record",
    "SparsePCA": "hdica.systems.sparse_pca.record",
    "SeveralICA": "hdica.systems.several_ica.record",
    "HebbianICA": "hdica.systems.hebbian_ica.record",
    "TensorialICA": "hdica.systems.tensorial_ica.record",
    "SubspaceICA": "hdica.systems.subspace_ica.record",
    "PatchICA": "hdica.systems.patch_ica.record",
    "FilterSeries": "hdica.systems.filter_series.record",
    "OnlineRule": "hdica.systems.online_rule.record",
    "SeveralRule": "hdica.systems.several_rule.record",
}
"""Module of the record ``SYSTEM`` of each."""
DESCENT = BUILT_IN["OnlineICA"]
"""That of the system that every rule x <- x - tau f(u) y/sqrt(n) of constant norm is."""

if TYPE_CHECKING:  # what ``hdica`` offers of them, for type checkers
    from hdica.systems.filter_series.record import FilterSeries as FilterSeries
    from hdica.systems.hebbian_ica.api import asymptotics as asymptotics
    from hdica.systems.hebbian_ica.api import conflict_region as conflict_region
    from hdica.systems.hebbian_ica.api import convert as convert
    from hdica.systems.hebbian_ica.api import escape_signs as escape_signs
    from hdica.systems.hebbian_ica.record import HebbianICA as HebbianICA
    from hdica.systems.online_ica.escape import escape_exponent as escape_exponent
    from hdica.systems.online_ica.record import OnlineICA as OnlineICA
    from hdica.systems.online_rule.record import OnlineRule as OnlineRule
    from hdica.systems.patch_ica.record import PatchICA as PatchICA
    from hdica.systems.several_ica.record import SeveralICA as SeveralICA
    from hdica.systems.several_rule.record import SeveralRule as SeveralRule
    from hdica.systems.sparse_pca.record import SparsePCA as SparsePCA
    from hdica.systems.subspace_ica.record import SubspaceICA as SubspaceICA
    from hdica.systems.tensorial_ica.record import TensorialICA as TensorialICA
