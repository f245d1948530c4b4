#!/bin/sh
# Makes the keys with which servers vouch for their users, once, and gives each process what it needs: servers their key, as the secret jig-server-key,
# and workers the public root key, as the config map jig-root-key. It prints the private root key, which is stored nowhere: keep it offline.
#   deploy/kubernetes/keys.sh
# It needs jig and kubectl, or what JIG and KUBECTL name. If there are keys, it changes nothing.
set -eu
jig=${JIG:-jig}
kubectl="${KUBECTL:-kubectl} -n ${NAMESPACE:-jig}"
if [ -n "$($kubectl get secret jig-server-key --ignore-not-found -o name)" ]; then
  echo "there are keys; nothing was made" >&2
  exit 0
fi
umask 077
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
$jig server-key setup --out "$folder/server.key" --root-out "$folder/root.pub" --lifetime 400d
$kubectl create configmap jig-root-key --from-literal=JIG_ROOT_KEY="$(cat "$folder/root.pub")" --dry-run=client -o yaml | $kubectl apply -f - >&2
# The servers' key comes last: without it, the next run begins again.
$kubectl create secret generic jig-server-key --from-file=server.key="$folder/server.key" >&2
