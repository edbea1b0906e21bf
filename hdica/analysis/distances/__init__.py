"""Distance between the empirical law of the entries and the limit's."""
