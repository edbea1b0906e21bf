"""Where learning stops, over two swept parameters."""
