// Package spec defines the language of jig's documents. It reads agents, execution specs (compositions, prompts, tasks, thin tools),
// skills, entity types, policies, tenants and bundles. It reports everything that is wrong with a document at once, each problem with its
// line, path and fix, and it publishes the JSON Schemas that editors check against. The package decides what a document says and never what
// is done about it: it knows no store, no Temporal, no model and no tool implementation.
package spec
