// Package spec defines the language of jig's documents. It reads agents, execution specs (compositions, prompts, tasks, thin tools),
// skills, entity types, policies, tenants and bundles. It reports everything that is wrong with a document at once, each problem with its
// line, path and fix, and it publishes the JSON Schemas that editors check against. The package only interprets documents and does not act on
// them: it does not depend on the store, Temporal, models or tool implementations.
package spec
