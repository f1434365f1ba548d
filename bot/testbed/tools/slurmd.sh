#!/bin/sh
# slurmd of a virtual node for those who ask it: -C from the node's own file instead of the host's
# hardware, all else from the real one, which comes next in the PATH. The service starts that one.
if [ "$*" = "-C" ]; then
    exec cat /run/nodewarden-node/hardware
fi
PATH=${PATH#"${0%/*}:"} exec slurmd "$@"
