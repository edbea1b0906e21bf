"""Critical values as another parameter varies."""
