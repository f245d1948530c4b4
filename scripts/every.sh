#!/usr/bin/env bash
# every.sh WORDS COMMAND...: runs COMMAND and says what the shell command WORDS prints and how long it has taken: after
# five seconds, then every ten.
set -euo pipefail
words=$1
shift
(
  trap 'kill "$(jobs -p)" 2>/dev/null' EXIT
  pause=5
  while sleep "$pause" & wait $!; do
    printf '… %s, %d s\n' "$(bash -c "$words")" "$SECONDS" >&2
    pause=10
  done
) &
trap 'kill '"$!"' 2>/dev/null || true' EXIT
"$@"
