"""Encrypted content: what the provider alone can read, and knows again when it comes back.

Content that another provider minted (another seed, here) is refused, as a real one refuses it:
that is what breaks a conversation that is moved between providers."""

import base64
import hashlib
import hmac
from collections import OrderedDict

from lockstitch.emulator.limits import MOST_REMEMBERED_ITEM_IDS

_MAC_BYTES = 16
# What encrypted content of the real provider begins with, too.
_HEAD = "gAAAA"


class Mint:
    """Seals texts under a key that follows from the seed."""

    def __init__(self, seed: int | str) -> None:
        self._key = hashlib.blake2b(f"mint/{seed}".encode()).digest()
        # Content a script gave word for word.
        self._known: OrderedDict[str, None] = OrderedDict()

    def sealed(self, text: str) -> str:
        plain = text.encode("utf-8", "replace")
        return _HEAD + base64.urlsafe_b64encode(self._mac(plain) + plain).decode()

    def genuine(self, sealed: str) -> bool:
        if sealed in self._known:
            return True
        if not sealed.startswith(_HEAD):
            return False
        try:
            raw = base64.urlsafe_b64decode(sealed[len(_HEAD) :].encode("ascii"))
        except ValueError:
            return False
        return hmac.compare_digest(raw[:_MAC_BYTES], self._mac(raw[_MAC_BYTES:]))

    def accept(self, sealed: str) -> None:
        """Take this content for our own from now on."""
        self._known[sealed] = None
        if len(self._known) > MOST_REMEMBERED_ITEM_IDS:
            self._known.popitem(last=False)

    def _mac(self, plain: bytes) -> bytes:
        return hashlib.blake2b(plain, key=self._key, digest_size=_MAC_BYTES).digest()
