"""Text from outside on a terminal: nothing in it moves the cursor, hides or turns round. Pure.

Used by every command of the command line that prints what a file, a cluster or a person wrote.
"""


def plain(text: str) -> str:
    """One line, with control characters, direction overrides and broken bytes spelled out."""
    return "".join(
        character if character.isprintable() else f"\\u{ord(character):04x}" for character in text
    )
