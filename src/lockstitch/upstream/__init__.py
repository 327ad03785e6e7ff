"""Clients of providers: a request out, what is heard of its answer in. Sockets live here."""
