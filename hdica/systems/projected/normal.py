"""Method ``ornstein_uhlenbeck``: the density where it is normal given the feature."""

from __future__ import annotations

from collections.abc import Callable

from hdica.ingredients.save import Save
from hdica.limits.mean_field.density.solve import DensityPath
from hdica.limits.mean_field.family import MeanField
from hdica.limits.mean_field.normal import solve
from hdica.systems.fields import F, Projected, averages, resting_refusal, signal_varies
from hdica.systems.method import (
    BANDS,
    MEAN_FIELD,
    About,
    Cost,
    Densities,
    Limit,
    Outputs,
    Role,
    Scope,
    home_of,
)
from hdica.systems.outputs import Array, PointResult
from hdica.systems.projected.density import (
    ENGINES,
    PATH,
    FieldOf,
    means_of,
    on_grid,
    pde_values,
)
from hdica.systems.projected.simulation import KEEPS


def _path_of(
    field: MeanField, system: Projected, times: Array, save: Save, tolerance: float
) -> DensityPath:
    """The solved limit; its cost leaves no use for a larger tolerance than its own."""
    return solve(field, times, snapshots=save.snapshots, functionals=means_of(system, save))


def ornstein_uhlenbeck(
    field_of: FieldOf[F],
    refuses: Callable[[F], str],
    equations: str,
    uses: tuple[str, ...] = (),
) -> Limit[F]:
    """Method ``ornstein_uhlenbeck``: what ``pde`` gives, by the moments of a normal law.

    ``refuses`` says why phi is not linear; where the feature moves, it is a
    mixture and not normal. By its name alone: ``auto`` takes ``pde`` for densities.
    """

    def values(
        field: MeanField, system: F, times: Array, save: Save, path: DensityPath | None = None
    ) -> PointResult:
        return pde_values(field, system, times, save, path, _path_of)

    def picture(system: F, times: Array, save: Save) -> tuple[Save, PointResult]:
        field = field_of(system)
        path = _path_of(field, system, times, save, 0.0)
        save = on_grid(save, path)
        return save, values(field, system, times, save, path)

    return Limit[F](
        name="ornstein_uhlenbeck",
        role=Role.LIMIT,
        about=About(
            text="the density as n → ∞ where it is normal given ξ, by its mean and variance: what "
            "`pde` is compared with (φ = 0 or βx)",
            accuracy="converged",
            equations=equations
            + ": x | xi = A x_0 + B xi + sqrt(V) N with A' = -d A, B' = -d B + b, V' = -2 d V + "
            "2 g, d = g + b Q; Dormand-Prince 8(5,3), tolerance 1e-12",
            engines=(
                *ENGINES,
                f"{MEAN_FIELD}.density",
                f"{MEAN_FIELD}.normal",
                BANDS,
                home_of(field_of),
                *uses,
            ),
        ),
        outputs=Outputs(PATH, keeps=KEEPS | {"potential", "controls"}),
        cost=Cost(
            seconds=lambda system, n, last: 0.01 * last if signal_varies(system) else 0.02,
            prepares=averages("drift"),
        ),
        scope=Scope(
            refuses=lambda system: refuses(system) or resting_refusal(system, "a normal density")
        ),
        run=lambda system, times, n, seed, save: values(field_of(system), system, times, save),
        densities=Densities(picture=picture),
    )
