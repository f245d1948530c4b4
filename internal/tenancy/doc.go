// Package tenancy holds the settings of a tenant: its people, keys, owners, webhooks, and the proof that decisions need.
package tenancy
