"""Any online rule with several estimates and features."""

VERSION = 4
