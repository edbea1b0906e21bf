"""Arrays over the pixels of a picture, such as filters, drawn as pictures."""
