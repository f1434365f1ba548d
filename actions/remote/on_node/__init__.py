"""The program `/usr/local/sbin/nodewarden-helper`: the only thing that the bot runs as root on a node.

`actions.remote.packing` packs these modules into one file, which an admin installs. They run on the
node's own Python (3.8 or newer, standard library only) and import nothing of ours but each other. The
verbs are a fixed list; each checks its arguments against strict patterns before anything happens. No
argument ever reaches a shell, names a program, or is read as an option.
"""
