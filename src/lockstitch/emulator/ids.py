"""Ids that look like the provider's and follow from the seed alone.

Each response draws from a source of its own (`branch`), so streams that run at the same time do
not take ids from one another."""

import hashlib

# What an item's id begins with. Of those that are well known the provider refuses any other.
PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "computer_call": "cu",
    "computer_call_output": "cuo",
    "shell_call": "sh",
    "shell_call_output": "sho",
    "local_shell_call": "lsh",
    "local_shell_call_output": "lsho",
    "apply_patch_call": "apc",
    "apply_patch_call_output": "apco",
    "tool_search_call": "tsc",
    "tool_search_output": "tso",
    "program": "prog",
    "program_output": "progo",
    "mcp_approval_request": "mcpr",
    "mcp_approval_response": "mcpa",
    "mcp_call": "mcp",
    "mcp_list_tools": "mcpl",
    "web_search_call": "ws",
    "file_search_call": "fs",
    "code_interpreter_call": "ci",
    "image_generation_call": "ig",
    "compaction": "cmp",
    "additional_tools": "at",
}

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"


class Ids:
    """A source of ids: the same seed gives the same ids in the same order."""

    __slots__ = ("_drawn", "_lasting", "_seed")

    def __init__(self, seed: int | str = 0) -> None:
        self._seed = f"{seed}"
        self._drawn = 0
        self._lasting: dict[str, Ids] = {}

    def draw(self, prefix: str) -> str:
        """`resp_…`, `msg_…`: a prefix and 48 hexadecimal digits."""
        return f"{prefix}_{self._digest(24).hex()}"

    def item(self, type: str) -> str:
        return self.draw(PREFIXES.get(type, "item"))

    def call(self) -> str:
        """`call_` and 24 letters or digits: at most 32 characters, as Realtime asks."""
        return self.letters("call", 24)

    def letters(self, prefix: str, length: int) -> str:
        digest = self._digest(length)
        return f"{prefix}_" + "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest)

    def branch(self) -> "Ids":
        """A source of its own, for one response or one connection."""
        return Ids(self._digest(16).hex())

    def lasting(self, name: str) -> "Ids":
        """The source of this name: always the same one, and reset with this one."""
        return self._lasting.setdefault(name, Ids(f"{self._seed}/{name}"))

    def reset(self) -> None:
        """As it was when it was made: the same ids again. Branches go on as they are."""
        self._drawn = 0
        for source in self._lasting.values():
            source.reset()

    def _digest(self, size: int) -> bytes:
        self._drawn += 1
        text = f"{self._seed}/{self._drawn}".encode()
        return hashlib.blake2b(text, digest_size=size).digest()

    def __repr__(self) -> str:
        return f"<Ids seed={self._seed} drawn={self._drawn}>"
