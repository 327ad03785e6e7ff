"""The gateway's doors: one module for each part of the API that it serves."""
