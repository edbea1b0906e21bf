"""The page: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from typing import Any

import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined
from plotly.offline import get_plotlyjs
from ruamel.yaml import YAML

from hdica.analysis.runs.say import sharing
from hdica.analysis.show.panel import Panel
from hdica.report import export, tables
from hdica.report.findings import findings
from hdica.report.interactive import figure

HEADINGS = {
    "steady": "Steady states",
    "transition": "Transitions",
    "phase": "Where learning stops",
    "trapping": "Trapping potential",
    "paths": "Single runs",
    "escape": "Escape times",
    "slopes": "Change along a parameter",
    "compare": "Methods side by side",
    "decay": "Learning curves",
    "trajectories": "Trajectories and their limit",
    "densities": "Densities of the estimate",
    "distances": "Distance of laws against n",
    "support": "Support recovery",
    "potential": "Effective potential",
    "scaling": "Error against n",
    "flow": "Flow of the limit",
}
"""Sections in reading order."""


def render(aggregate: xr.DataTree, sections: dict[str, list[Panel]]) -> str:
    """The whole page as text.

    Everything a user wrote is escaped. Scripts run only if their digest is in the page's content
    security policy, which also forbids every request: even text that escaped the escaping could
    neither run nor load anything.

    Parameters
    ----------
    aggregate
        What :func:`hdica.analysis.aggregate` returns.
    sections
        Panels by section.
    """
    environment = Environment(
        loader=PackageLoader("hdica.report"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    source = environment.loader
    assert source is not None
    script, _, _ = source.get_source(environment, "page.js")
    style, _, _ = source.get_source(environment, "page.css")
    plotly = get_plotlyjs()
    kept, left = export.within_budget(export.tables(aggregate))
    figures = {p.key: figure(p) for found in sections.values() for p in found}
    return environment.get_template("page.html.j2").render(
        attrs=aggregate.attrs,
        sections=[(k, HEADINGS[k], sections[k]) for k in HEADINGS if k in sections],
        findings=findings(aggregate),
        comparison=_comparison(aggregate),
        laws=_laws(aggregate),
        runs=tables.runs(aggregate["runs"].to_dataset()),
        sharing=sharing(aggregate["runs"].to_dataset()),
        equations=_equations(aggregate["runs"].to_dataset()),
        study=_yaml(aggregate.attrs["study_yaml"]),
        versions=json.loads(aggregate.attrs.get("package_versions") or "{}"),
        left=left,
        figures=_embedded(figures),
        data=_embedded(kept),
        plotly=plotly,
        script=script,
        style=style,
        digests=[_digest(plotly), _digest(script)],
    )


def _comparison(aggregate: xr.DataTree) -> dict[str, Any] | None:
    if "convergence" not in aggregate:
        return None
    data = aggregate["convergence"].to_dataset()
    return {"table": tables.verdicts(data), "attrs": data.attrs}


def _laws(aggregate: xr.DataTree) -> list[tuple[str, str, tables.Table]]:
    """Anchor, caption and table of the verdicts on distributions."""
    kinds = {
        "distances": ("Law of the entries", tables.distances),
        "support": ("Support recovery", tables.support),
    }
    return [
        (f"{name}-table", caption, build(aggregate[name].to_dataset()))
        for name, (caption, build) in kinds.items()
        if name in aggregate and "verdict" in aggregate[name]
    ]


def _equations(data: xr.Dataset) -> list[tuple[str, str, str]]:
    return [
        (
            str(m),
            data["equations"].sel({"method": m}).item(),
            data["kernel"].sel({"method": m}).item(),
        )
        for m in data["method"].values
    ]


def _yaml(text: str) -> str:
    """The study as the user would write it, without settings left empty."""
    study = {k: v for k, v in json.loads(text).items() if v not in (None, {}, "")}
    if isinstance(study.get("analysis"), dict):
        study["analysis"] = {k: v for k, v in study["analysis"].items() if v is not None}
    writer, out = YAML(typ="safe", pure=True), io.StringIO()
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.default_flow_style = None
    writer.allow_unicode = True
    writer.dump(study, out)
    return out.getvalue()


def _embedded(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _digest(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
