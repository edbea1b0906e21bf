"""Limits of any rule of finitely many projections: averages, equations of R and P, states."""

VERSION = 7
