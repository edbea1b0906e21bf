"""How the end of a run changes along a parameter: its record."""

from hdica.analysis.record import Analysis, Section, lazy

SLOPES = Analysis(
    name="slopes",
    compute=lazy(__name__, "slopes:slopes"),
    sections=(Section("slopes", "Change along a parameter", lazy(__name__, "slopes:panels"), 7),),
    rank=7,
    findings=lazy(__name__, "slopes:findings"),
)
