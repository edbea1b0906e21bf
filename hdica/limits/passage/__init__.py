"""First passages of the exact chain of one overlap at finite n, without a diffusion."""

VERSION = 6
