"""The founding cases as programs: a naive loop and the Runner meet the same script and the same
fault. Nothing is canned: the provider is the emulator, over real sockets.

`cases` lists them, `playing` plays them. This imports neither: `cut_stream` is run as a program."""
