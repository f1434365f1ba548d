"""What a virtual node has in its PATH in place of the real tool.

Each file is copied into the testbed's folder without its suffix, because the bot's user may be
unable to read the installed package; the Python ones use the standard library of the system's
python3 alone.
"""
