"""As which powers of swept parameters a quantity falls or grows."""
