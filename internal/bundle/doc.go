// Package bundle describes bundles and the documents that they install: manifests, installations and stored versions, and which tools a
// tenant sees with its bundles. It does no I/O.
package bundle
