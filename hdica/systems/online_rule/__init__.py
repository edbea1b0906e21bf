"""Any online rule with one estimate and one feature."""

VERSION = 5
