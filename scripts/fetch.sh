#!/usr/bin/env bash
# fetch.sh: fetches what building and testing need: the modules, and the Temporal CLI unless one is on the PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v go >/dev/null; then
  echo "Go 1.26 or later is needed: https://go.dev/dl" >&2
  exit 2
fi
scripts/say.sh "fetch: Go modules"
GOWORK=off go mod download
(cd dev && go mod download)
if ! command -v temporal >/dev/null; then
  scripts/tool.sh temporal github.com/temporalio/cli/cmd/temporal "${TEMPORAL_CLI:-v1.5.1}"
fi
