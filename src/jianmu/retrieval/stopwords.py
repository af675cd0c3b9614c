"""Words that a question is built from and that say nothing about what is asked for."""

from __future__ import annotations

__all__ = ["ENGLISH"]

ENGLISH = frozenset({
    "a", "about", "above", "after", "again", "against", "all", "am", "an", "and", "ani", "any", "are",
    "as", "at", "be", "becaus", "because", "been", "befor", "before", "being", "below", "between",
    "both", "but", "by", "can", "could", "couldn", "did", "didn", "do", "doe", "does", "doesn", "doing",
    "don", "down", "dure", "during", "each", "ever", "few", "for", "from", "further", "get", "got",
    "had", "hadn", "has", "hasn", "have", "haven", "having", "he", "her", "here", "hers", "herself",
    "him", "himself", "his", "how", "i", "if", "in", "into", "is", "isn", "it", "its", "itself", "just",
    "ll", "let", "me", "might", "more", "most", "must", "my", "myself", "no", "nor", "not", "now", "of",
    "off", "on", "onc", "once", "onli", "only", "or", "other", "our", "ours", "ourselves", "out", "over",
    "own", "pleas", "please", "re", "same", "shan", "she", "should", "shouldn", "so", "some", "such",
    "than", "that", "the", "their", "theirs", "them", "themselves", "then", "there", "these", "they",
    "this", "those", "through", "to", "too", "under", "until", "up", "us", "ve", "veri", "very", "was",
    "wasn", "we", "were", "weren", "what", "when", "where", "whether", "which", "while", "who", "whom",
    "whose", "whi", "why", "will", "with", "won", "would", "wouldn", "you", "your", "yours", "yourself",
    "yourselves", "d", "m", "s", "t",
})  # fmt: skip
"""Matched against stems, so both spellings stand here where the stem differs."""
