"""Message objects of SDKs: read as wire items, and made again after mending."""
