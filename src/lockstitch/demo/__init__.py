"""The four original bug reports (A to D) as programs: each runs without and with Lockstitch.

Both sides get the same script and the same fault from the emulator, over real sockets. `cases`
lists the cases and `playing` runs them. This file imports neither, because `cut_stream` is also run
as a program."""
