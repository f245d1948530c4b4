// Package spec defines the language of jig's documents: agents, execution specs (compositions, prompts, tasks, thin tools), skills, entity
// types, policies, tenants, budgets, rate limits and bundles. It only interprets documents and does not act on them: it does not depend on
// the store, Temporal, models or tool implementations.
//
// [Load] reads one document and reports everything that is wrong with it at once, each problem with its line, path and fix. [Check] then
// compares documents with each other and with a [Catalog] of what else exists, and [Advise] warns of what is allowed but unwise.
// [ExplainDocument] describes a document to people.
//
// What differs between kinds of documents is in one table, kindRows in kind.go; nothing else asks for a document's kind. The types into which
// documents are read carry tags: json for the key, spec for its constraints, jsonschema for its description. A decoder enforces them, and the
// JSON Schemas that editors use, in the folder schema, are generated from them by a test.
//
// Steps of compositions are in composition.go (keys), steps.go and steprules.go (structure) and expressions.go (what an expression may read).
// Checks against the catalog begin in check.go. Values are compared with schemas, templates included, in fit.go.
package spec
