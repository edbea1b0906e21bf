"""What a study's numbers say: a folder for each question that can be asked of them."""
