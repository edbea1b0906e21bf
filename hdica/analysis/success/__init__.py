"""Where runs succeed, over two swept parameters."""
