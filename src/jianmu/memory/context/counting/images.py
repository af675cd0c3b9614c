"""What an image costs, by its size in pixels."""

from __future__ import annotations

import math
import struct

from jianmu.messages import ImagePart
from jianmu.messages.wire import data_url

__all__ = ["anthropic_image_tokens", "image_size", "openai_image_tokens"]


def openai_image_tokens(image: ImagePart) -> int:
    """Return 85 tokens and 170 for each tile of 512 pixels, OpenAI's published rule at high detail.

    The image is first fitted into 2048 x 2048, then its shorter side to 768. An unknown size counts as the
    largest, 1,445 tokens.
    """
    width, height = image_size(image) or (2048, 768)
    scale = min(1.0, 2048 / max(width, height), 768 / min(width, height))
    tiles = math.ceil(width * scale / 512) * math.ceil(height * scale / 512)
    return 85 + 170 * max(1, tiles)


def anthropic_image_tokens(image: ImagePart) -> int:
    """Return width x height / 750, Anthropic's published rule, after fitting into 1568 pixels.

    An unknown size counts as the largest, 1,600 tokens.
    """
    size = image_size(image)
    if size is None:
        return 1600
    scale = min(1.0, 1568 / max(size))
    return max(1, min(1600, math.ceil(size[0] * scale * size[1] * scale / 750)))


def image_size(image: ImagePart) -> tuple[int, int] | None:
    """Return width and height in pixels: as given, or read from a PNG, GIF or JPEG ``data:`` URL."""
    if image.width and image.height and image.width > 0 and image.height > 0:
        return image.width, image.height
    data = data_url(image.url)
    size = _size_in(data[1]) if data else None
    return size if size and min(size) > 0 else None


def _size_in(data: bytes) -> tuple[int, int] | None:
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            width, height = struct.unpack_from(">II", data, 16)
            return width, height
        if data.startswith((b"GIF87a", b"GIF89a")):
            width, height = struct.unpack_from("<HH", data, 6)
            return width, height
        return _jpeg_size(data) if data.startswith(b"\xff\xd8") else None
    except struct.error:
        return None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 < len(data) and data[at] == 0xFF:
        marker, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        # SOF0..SOF15 hold the size; C4, C8 and CC are tables that share their range.
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", data, at + 5)
            return width, height
        at += 2 + length
    return None
