// Package bundle describes bundles and the documents that they install: manifests, installations and stored versions. It does no I/O.
package bundle
