"""The rule (13) at finite n."""
