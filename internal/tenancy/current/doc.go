// Package current provides the current settings of tenants and the catalog of their tools and documents. The settings combine the document
// of kind tenant with secrets from the environment, the worker's defaults and the operator's key.
package current
