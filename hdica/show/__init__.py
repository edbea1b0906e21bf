"""How findings and figures are shown: panels, words, sentences."""
