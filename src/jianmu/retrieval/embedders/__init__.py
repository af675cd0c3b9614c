"""Embedders behind one protocol; each loads its package when it is used."""
