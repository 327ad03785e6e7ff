"""A tool that has an effect, and one that waits."""

from __future__ import annotations

import asyncio


class Book:
    """A tool that counts its effects."""

    def __init__(self):
        self.booked = []
        self.may_end = asyncio.Event()
        self.begun = asyncio.Event()

    async def book(self, flight: str) -> str:
        """Book a flight."""
        self.booked.append(flight)
        return f"{flight} is booked"

    async def wait(self) -> str:
        """Wait until it may end."""
        self.begun.set()
        await self.may_end.wait()
        return "it ended"
