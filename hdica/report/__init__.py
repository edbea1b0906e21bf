"""Datasets in, figures, pages and their gallery out."""

from hdica.report.write import report_of, write

__all__ = ["report_of", "write"]
