#!/usr/bin/env bash
# fetch.sh: fetches the Go modules that building and testing need.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v go >/dev/null; then
  echo "Go 1.26 or later is needed: https://go.dev/dl" >&2
  exit 2
fi
scripts/say.sh "fetch: Go modules"
GOWORK=off go mod download
(cd dev && go mod download)
