"""Datasets in, figures and pages out."""

from hdica.report.write import write

__all__ = ["write"]
