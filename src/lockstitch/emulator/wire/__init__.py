"""The wire: requests received, events delivered, on every transport and with every fault."""
