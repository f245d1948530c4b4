#!/bin/sh
# crash.sh: a server that crashes at its start.
echo "panic: out of cheese" >&2
exit 2
