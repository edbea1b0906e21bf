"""The page: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from typing import Any

import xarray as xr
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs
from ruamel.yaml import YAML

from hdica.analysis.registry import analyses
from hdica.analysis.runs.say import sharing, table
from hdica.analysis.show.panel import Panel
from hdica.report import export
from hdica.report.interactive import figure


def panels(aggregate: xr.DataTree) -> dict[str, list[Panel]]:
    """All panels of a report by section, in reading order."""
    found = {
        section: section.draw(aggregate[analysis.name].to_dataset())
        for analysis in analyses().values()
        if analysis.name in aggregate
        for section in analysis.sections
    }
    return {s.name: found[s] for s in sorted(found, key=lambda s: s.rank) if found[s]}


def findings(aggregate: xr.DataTree) -> list[Markup]:
    """Sentences of HTML for the top of a report, most important first."""
    out = [
        sentence
        for analysis in sorted(analyses().values(), key=lambda analysis: analysis.rank)
        if analysis.say is not None and analysis.name in aggregate
        for sentence in analysis.say(aggregate[analysis.name].to_dataset())
    ]
    # Every part that a user wrote went through place() or escape().
    return [Markup(text) for text in out]


def render(aggregate: xr.DataTree, sections: dict[str, list[Panel]]) -> str:
    """The whole page as text, of what :func:`hdica.analysis.aggregate` returns and its panels.

    Everything a user wrote is escaped. Scripts run only if their digest is in the page's content
    security policy, which also forbids every request: even text that escaped the escaping could
    neither run nor load anything.
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
    headings = {s.name: s.heading for one in analyses().values() for s in one.sections}
    figures = {p.key: figure(p) for found in sections.values() for p in found}
    return environment.get_template("page.html.j2").render(
        attrs=aggregate.attrs,
        sections=[(name, headings[name], found) for name, found in sections.items()],
        findings=findings(aggregate),
        verdicts=_verdicts(aggregate, whole=True),
        laws=_verdicts(aggregate, whole=False),
        runs=table(aggregate["runs"].to_dataset()),
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


def _verdicts(aggregate: xr.DataTree, whole: bool) -> list[dict[str, Any]]:
    """Tables of verdicts on means over seeds, or on laws: anchor, caption, rows and attributes."""
    out = []
    for name, analysis in analyses().items():
        verdicts = analysis.verdicts
        if verdicts is None or verdicts.whole != whole or name not in aggregate:
            continue
        data = aggregate[name].to_dataset()
        if "verdict" in data:
            one = {"id": f"{name}-table", "caption": verdicts.caption, "note": verdicts.note}
            out.append({**one, "rows": verdicts.build(data), "attrs": data.attrs})
    return out


def _equations(data: xr.Dataset) -> list[tuple[str, str, str]]:
    columns = (data[name].values.tolist() for name in ("method", "equations", "kernel"))
    return list(zip(*columns, strict=True))


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
