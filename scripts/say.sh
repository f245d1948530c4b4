#!/usr/bin/env bash
# say.sh TEXT: prints what happens now to standard error.
set -euo pipefail
printf '\n==> %s\n' "$*" >&2
