#!/usr/bin/env bash
# release.sh VERSION [OS/ARCH...]: builds jig, jig-dev and the Temporal server for each platform, by default for all that are released. It writes
# to dist/VERSION, for each platform, a folder with the programs, their licenses and their bills of materials (CycloneDX), and an archive with it;
# and SHA256SUMS. The same sources give the same archives: no file has a path, a time or a name of the machine that built it. Needs GNU tar and jq.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1
shift
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9a-z.]+)?$ ]] || { echo "release.sh: $version is not a version such as 0.1.0" >&2; exit 2; }
(($# > 0)) || set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
out=$PWD/dist/$version
# The folder of a release starts empty, so that nothing of an earlier build gets into it.
rm -rf "$out"
mkdir -p "$out"
export CGO_ENABLED=0 GOWORK=off GOFLAGS="-trimpath -buildvcs=false"

# build FOLDER PROGRAM MODULE PACKAGE [FLAGS]: builds a program of a module, and writes its bill of materials.
build() {
  scripts/say.sh "release: $(basename "$1")/$2"
  go -C "$3" build -ldflags "-s -w ${5:-}" -o "$1/$2" "$4"
  cyclonedx-gomod bin -json -std -noserial -version "v$version" "$1/$2" | jq 'del(.metadata.timestamp, .metadata.tools[].hashes)' >"$1/sbom/$2.cdx.json"
}

for platform; do
  export GOOS=${platform%/*} GOARCH=${platform#*/}
  name=jig_${version}_${GOOS}_$GOARCH
  folder=$out/$name
  mkdir -p "$folder/sbom"
  build "$folder" jig . ./cmd/jig "-X github.com/jig-run/jig/starter.release=v$version"
  build "$folder" jig-dev dev . "-X main.release=v$version"
  build "$folder" jig-temporal dev/temporal .
  cp LICENSE README.md CHANGELOG.md "$folder"
  cp -R deploy/systemd "$folder/systemd"
  chmod -R u=rwX,go=rX "$folder"
  tar --create --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime=@0 --directory "$out" "$name" | gzip --no-name >"$out/$name.tar.gz"
done
(cd "$out" && sha256sum -- *.tar.gz >SHA256SUMS)
scripts/say.sh "release: $out"
cat "$out/SHA256SUMS" >&2
