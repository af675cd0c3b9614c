"""Typed values to plain JSON data and back, exactly."""

from jianmu.codec.codec import Codec
from jianmu.codec.encode import Stored, StoredEnum

__all__ = ["Codec", "Stored", "StoredEnum"]
