"""Embedders, word index, fusion: finding the right text."""
