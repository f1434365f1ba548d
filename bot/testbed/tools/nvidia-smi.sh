#!/bin/sh
# nvidia-smi of a virtual node: -L only, from the node's own file; an empty file is a lost driver.
if [ "$*" != "-L" ]; then
    echo "nvidia-smi: this virtual node answers only to -L" >&2
    exit 2
fi
if [ ! -s /run/nodewarden-node/gpus ]; then
    echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
    exit 9
fi
exec cat /run/nodewarden-node/gpus
