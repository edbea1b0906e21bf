"""What a visitor of the explorer sees: controls, figures and the sentences between them."""
