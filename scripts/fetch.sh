#!/usr/bin/env bash
# fetch.sh: fetches the Go modules that building and testing need. jig-dev fetches those of the Temporal server itself.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v go >/dev/null; then
  echo "Go 1.26 or later is needed: https://go.dev/dl" >&2
  exit 2
fi
scripts/say.sh "fetch: Go modules"
cache=$(go env GOMODCACHE)/cache/download
GOWORK=off scripts/every.sh "echo fetch: \$(find '$cache' -name '*.zip' 2>/dev/null | wc -l) modules are there" go mod download
cd dev
../scripts/every.sh "echo fetch: \$(find '$cache' -name '*.zip' 2>/dev/null | wc -l) modules are there" go mod download
