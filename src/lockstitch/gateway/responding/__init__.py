"""How a request is answered: prepared, tried, tried again, ended."""
