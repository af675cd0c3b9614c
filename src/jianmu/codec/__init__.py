"""Typed values to plain JSON data and back, exactly."""

from jianmu.codec.codec import Codec

__all__ = ["Codec"]
