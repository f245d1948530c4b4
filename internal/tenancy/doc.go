// Package tenancy holds the settings of a tenant, and answers who somebody is in the tenant and what they may do.
//
// [Settings] is one tenant's document with what operators add: people and groups, signing keys, owners of tools, webhooks, roles, disabled people and keys,
// and the proof that starts and decisions need. [Settings.Effective] gives a principal its groups and permissions, [Settings.SignedIn] does the same for
// somebody whom an identity provider knows, and [Settings.Voters] says who can decide. A principal with a maker, such as an API key for a program, counts
// only as long as everybody in its [identity.Lineage] does; see [Settings.Ended].
//
// The package does no I/O. It must not know where settings come from; that is in the package current. Begin with settings.go, then person.go and roles.go.
package tenancy
