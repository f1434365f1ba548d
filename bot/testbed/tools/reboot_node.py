#!/usr/bin/python3 -IS
"""RebootProgram of a virtual node: asks process 1 to end everything and to boot again.

slurmd runs it as root. The reboot ends this script too, so no answer is read from.
"""

import json
import socket

if __name__ == "__main__":
    with socket.socket(socket.AF_UNIX) as stream:
        stream.connect("/run/nodewarden-node/init.socket")
        stream.sendall(json.dumps({"verb": "reboot"}).encode() + b"\n")
        stream.recv(1)
