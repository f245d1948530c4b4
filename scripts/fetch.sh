#!/usr/bin/env bash
# fetch.sh: fetches the Go modules that building and testing need. The modules of the Temporal server are fetched when it is built.
# GOWORK is off, because go would otherwise fetch the modules of the whole workspace, three times as many.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v go >/dev/null; then
  echo "Go 1.26 or later is needed: https://go.dev/dl" >&2
  exit 2
fi
scripts/say.sh "fetch: Go modules"
words="echo fetch: \$(find '$(go env GOMODCACHE)/cache/download' -name '*.zip' 2>/dev/null | wc -l) modules are fetched"
export GOWORK=off
for module in . bench dev; do
  scripts/every.sh "$words" go -C "$module" mod download
done
