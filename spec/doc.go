// Package spec is the language of jig's documents: it reads agents, execution specs (compositions, prompts, tasks,
// thin tools), skills, entity types, policies, tenants and bundles; it says everything that is wrong with one at once, each with line,
// path and fix, and publishes the JSON Schemas that editors check against. It decides what a document says and never what is
// done about it: it knows no store, no Temporal, no model and no tool implementation.
package spec
