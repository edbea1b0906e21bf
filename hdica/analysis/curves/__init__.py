"""Several variables of one method over one dimension, side by side."""
