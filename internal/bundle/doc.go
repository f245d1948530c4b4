// Package bundle describes bundles, sets of documents that a tenant installs, updates and removes as a whole, and the versions of documents.
//
// A [Manifest] gives the name and version of a bundle and the bundles it requires. A [Snapshot] is the state of a tenant before a change: its bundles, and the
// current versions of its own documents and of those shared by all tenants. The snapshot's methods check a change, such as an [Install], and return a [Plan] with the
// versions that it puts and retires; the store reads the snapshot under lock and saves the plan. [Names] and [Visible] hide the tools of bundles from tenants
// that have not installed them. [Current] keeps what is made of the current documents of a kind, such as policies, until they change.
//
// The package does no I/O. It must not know what documents of a kind mean; that is in the package spec. Begin with bundle.go, then snapshot.go and plan.go.
package bundle
