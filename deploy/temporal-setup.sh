#!/bin/sh
# Registers the namespace and the search attributes of jig's sessions. Safe to run again.
set -eu
temporal operator namespace describe --namespace "$NAMESPACE" >/dev/null 2>&1 ||
  temporal operator namespace create --namespace "$NAMESPACE" --retention 7d
temporal operator search-attribute create --namespace "$NAMESPACE" \
  --name JigTenant --type Keyword --name JigAgent --type Keyword --name JigStatus --type Keyword \
  --name JigTool --type KeywordList --name JigPass --type Int --name JigPending --type Int ||
  temporal operator search-attribute list --namespace "$NAMESPACE" | grep -q JigPending
# Each service of the server reads namespaces every two seconds (system.namespaceCacheRefreshInterval) and rejects attributes until then.
sleep 3
