"""AES-256-GCM for what a back end stores.

A sealed record is a version byte, 4 bytes of the key's SHA-256 (to find the key, not to prove it), a random
nonce of 12 bytes, and the ciphertext with its tag (NIST SP 800-38D). With random nonces one key should
seal no more than 2**32 records: then put a new key in front.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from jianmu.errors import CipherError, ConfigError, MissingExtraError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

__all__ = ["AesGcmCipher"]

_VERSION = 1
_KEY_BYTES = 32
_HINT_BYTES = 4
_NONCE_BYTES = 12
_HEAD_BYTES = 1 + _HINT_BYTES + _NONCE_BYTES


class AesGcmCipher:
    """Seals with the first key and opens with whichever key a record was sealed with.

    Args:
        keys: One key of 32 random bytes (`new_key` makes one), or several, the newest first, also as
            ``{name: key}`` with names for your own use. To change keys, put the new one in front and keep the
            old ones until `prune` has dropped what they sealed.
        random_bytes: Gives the nonces.

    Raises:
        ConfigError: No key, or one that is not 32 bytes.
        MissingExtraError: The `cryptography` package is not installed.
    """

    def __init__(
        self,
        keys: bytes | Sequence[bytes] | Mapping[str, bytes],
        *,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        if isinstance(keys, Mapping):
            keys = list(keys.values())
        chosen = [keys] if isinstance(keys, bytes | bytearray) else list(keys)
        if not chosen or any(len(key) != _KEY_BYTES for key in chosen):
            raise ConfigError("keys are 32 random bytes each, at least one: AesGcmCipher.new_key() makes one")
        self._random_bytes = random_bytes
        self._keys: list[tuple[bytes, AESGCM]] = [(_hint(key), _aead(bytes(key))) for key in chosen]

    @staticmethod
    def new_key() -> bytes:
        """Return a new random key; keep it where the data is not."""
        return os.urandom(_KEY_BYTES)

    def seal(self, data: bytes, *, aad: bytes) -> bytes:
        """Return `data` encrypted, bound to `aad`."""
        hint, aead = self._keys[0]
        nonce = self._random_bytes(_NONCE_BYTES)
        return b"".join((bytes((_VERSION,)), hint, nonce, aead.encrypt(nonce, data, aad)))

    def open(self, data: bytes, *, aad: bytes) -> bytes:
        """Return what was sealed.

        Raises:
            CipherError: No key fits, or `data` or `aad` is not what was sealed.
        """
        from cryptography.exceptions import InvalidTag

        if len(data) <= _HEAD_BYTES or data[0] != _VERSION:
            raise CipherError("this is no record that AesGcmCipher sealed, or it was cut")
        hint, nonce = data[1 : 1 + _HINT_BYTES], data[1 + _HINT_BYTES : _HEAD_BYTES]
        fitting = [aead for known, aead in self._keys if known == hint]
        if not fitting:
            raise CipherError(
                "none of the keys is the one this record was sealed with; add the older key to keys"
            )
        for aead in fitting:
            try:
                return aead.decrypt(nonce, data[_HEAD_BYTES:], aad)
            except InvalidTag:
                continue
        raise CipherError("the sealed record was altered, or belongs to another thread or step")

    def __repr__(self) -> str:
        return f"AesGcmCipher({len(self._keys)} keys)"


def _hint(key: bytes) -> bytes:
    return hashlib.sha256(b"jianmu key hint" + key).digest()[:_HINT_BYTES]


def _aead(key: bytes) -> AESGCM:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError as error:
        raise MissingExtraError("AesGcmCipher", "crypto") from error
    return AESGCM(key)
