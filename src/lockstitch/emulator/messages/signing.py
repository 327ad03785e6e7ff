"""Signatures of thinking: the provider knows its own thoughts again, word for word.

A signature of another provider (another seed, here), or on words that were changed, is refused."""

import base64
import hashlib
import hmac

_SIGNATURE_BYTES = 48
# What the signatures of the real provider begin with, too.
_HEAD = "Er"


class Signer:
    """Signs under a key that follows from the seed."""

    def __init__(self, seed: int | str) -> None:
        self._key = hashlib.blake2b(f"thinking/{seed}".encode()).digest()

    def sign(self, thinking: str) -> str:
        said = thinking.encode("utf-8", "replace")
        mac = hashlib.blake2b(said, key=self._key, digest_size=_SIGNATURE_BYTES).digest()
        return _HEAD + base64.b64encode(mac).decode()

    def signed(self, thinking: str, signature: str) -> bool:
        given = signature.encode("utf-8", "replace")
        return hmac.compare_digest(given, self.sign(thinking).encode())

    def __repr__(self) -> str:
        return "<Signer>"
