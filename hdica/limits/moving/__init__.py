"""Limits closed in the overlap of a rule whose signal varies, or whose feature moves."""

VERSION = 4
