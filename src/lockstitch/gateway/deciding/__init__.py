"""What is decided, purely: data in, decisions out."""
