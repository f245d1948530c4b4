// Package entity holds typed records: entity types with their fields and tasks, entities with the provenance of their values, texts, and
// the filters that find them. It does no I/O.
package entity
