"""The gateway: between any client of a provider and the provider, with a journal of its own."""
