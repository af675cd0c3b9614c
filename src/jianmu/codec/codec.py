"""The codec: one object that knows which classes it may rebuild."""

from __future__ import annotations

from typing import Any

from jianmu.codec.classes import ClassTable
from jianmu.codec.decode import Decoder
from jianmu.codec.encode import Encoder
from jianmu.codec.refusal import Path, Refusal
from jianmu.errors import DecodeError, EncodeError

__all__ = ["Codec"]


class Codec:
    """Turns values into plain JSON data and back, equal and of the same type, or says where it cannot.

    Plain data is None, bool, int within 64 bits, finite float, str that UTF-8 can hold, list, and dict with
    str keys. Every other kind of a closed set becomes a tagged form chosen by the value, not by annotation.

    Args:
        types: Annotations. The enum, model, dataclass and named-tuple classes they lead to, and the loaded
            subclasses of those, may be written and rebuilt; without any, builtin data only.
    """

    def __init__(self, *types: Any) -> None:
        classes = ClassTable(types)
        self._encoder = Encoder(classes)
        self._decoder = Decoder(classes)
        self._loose = Decoder(None)

    def encode(self, value: Any, path: Path = ()) -> Any:
        """Return `value` as plain data that shares nothing with it.

        Args:
            value: Any value.
            path: Where the value stands, for the error.

        Raises:
            EncodeError: It would not come back the same; `path` leads to the part.
        """
        try:
            return self._encoder.write(value)
        except Refusal as refusal:
            raise EncodeError(*refusal.trace(path)) from None

    def decode(self, plain: Any, path: Path = ()) -> Any:
        """Return the value that `plain` stands for; models are rebuilt through their validators.

        Args:
            plain: What `encode` returned, perhaps by way of JSON text.
            path: Where the value stands, for the error.

        Raises:
            DecodeError: It stands for no value, or for one of a class that is not known here.
        """
        return self._read(self._decoder, plain, path)

    def decode_loosely(self, plain: Any, path: Path = ()) -> Any:
        """Return what `decode` would, but leave models, dataclasses and enum members as `Stored` data.

        For migrations: their classes may be gone. `encode` accepts the result.
        """
        return self._read(self._loose, plain, path)

    @staticmethod
    def _read(decoder: Decoder, plain: Any, path: Path) -> Any:
        try:
            return decoder.read(plain)
        except Refusal as refusal:
            reason, where = refusal.trace(path)
            raise DecodeError(reason, where) from refusal.__cause__
