#!/usr/bin/env bash
# tool.sh NAME PACKAGE VERSION: builds a Go tool into .cache/bin unless that version is already there.
set -euo pipefail
cd "$(dirname "$0")/.."
name=$1 package=$2 version=$3
bin=$PWD/.cache/bin
if [[ -x $bin/$name ]] && go version -m "$bin/$name" | grep -q "^[[:space:]]mod[[:space:]].*[[:space:]]$version\b"; then
  exit 0
fi
scripts/say.sh "build: $name $version into .cache/bin (one to five minutes, once)"
mkdir -p "$bin"
GOBIN=$bin GOWORK=off GOFLAGS=-mod=mod go install "$package@$version"
