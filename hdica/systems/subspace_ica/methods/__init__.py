"""Methods of ICA in the principal subspace."""
