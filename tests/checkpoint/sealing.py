"""A cipher for tests that needs no package: a keyed stream and a keyed digest. Not for secrets."""

import hashlib
import hmac

from jianmu.errors import CipherError


class ToyCipher:
    def __init__(self, key: bytes) -> None:
        self._key = key

    def seal(self, data: bytes, *, aad: bytes) -> bytes:
        sealed = self._stream(data)
        return hmac.digest(self._key, aad + b"|" + sealed, "sha256") + sealed

    def open(self, data: bytes, *, aad: bytes) -> bytes:
        digest, sealed = data[:32], data[32:]
        if not hmac.compare_digest(digest, hmac.digest(self._key, aad + b"|" + sealed, "sha256")):
            raise CipherError("the key is wrong, or the record was altered")
        return self._stream(sealed)

    def _stream(self, data: bytes) -> bytes:
        key = hashlib.shake_256(self._key).digest(len(data))
        return (int.from_bytes(data, "big") ^ int.from_bytes(key, "big")).to_bytes(len(data), "big")
