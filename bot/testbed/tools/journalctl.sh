#!/bin/sh
# journalctl of a virtual node: the kernel log of this boot and of the one before (-b -1).
boot=0
lines=
while [ $# -gt 0 ]; do
    case "$1" in
        -k | --dmesg | --no-pager | -q | --quiet) ;;
        -b | --boot)
            case "${2:-}" in
                0 | -[0-9]*) boot=$2; shift ;;
            esac ;;
        -b* ) boot=${1#-b} ;;
        --boot=*) boot=${1#--boot=} ;;
        -n | --lines) lines=${2:-10}; shift ;;
        -n* ) lines=${1#-n} ;;
        --lines=*) lines=${1#--lines=} ;;
        -o | --output) shift ;;
        --output=* | -o*) ;;
        *) echo "journalctl: unrecognized option '$1'" >&2; exit 1 ;;
    esac
    shift
done
case "$boot" in
    0 | -0 | "") file=/run/nodewarden-node/kernel.log ;;
    -1) file=/run/nodewarden-node/kernel-previous.log ;;
    *) file= ;;
esac
if [ -z "$file" ] || { [ "$boot" = -1 ] && [ ! -s "$file" ]; }; then
    echo "Specifying boot ID or boot offset has no effect, no persistent journal was found." >&2
    exit 1
fi
if [ ! -s "$file" ]; then
    echo "-- No entries --"
elif [ -n "$lines" ]; then
    exec tail -n "$lines" "$file"
else
    exec cat "$file"
fi
