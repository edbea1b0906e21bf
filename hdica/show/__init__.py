"""How what was found is shown: panels, words, sentences."""
