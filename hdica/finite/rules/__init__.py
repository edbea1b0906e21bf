"""Rules of K estimates and M features at finite n: chains of products, all coordinates."""

VERSION = 5
