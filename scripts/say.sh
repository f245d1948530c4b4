#!/usr/bin/env bash
# say.sh TEXT: tells what happens now, on standard error.
set -euo pipefail
printf '\n==> %s\n' "$*" >&2
