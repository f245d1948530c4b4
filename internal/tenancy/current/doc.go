// Package current knows what tenants have at the moment: their settings, which are the document of kind tenant with the secrets in the
// environment, the worker's defaults and the operator's key, and the catalogue of what exists for them.
package current
