"""Uncoupled entries: each diffuses in the effective potential that the limit prescribes."""

VERSION = 1
