// Package entity holds typed records: entity types with their fields and tasks, entities with the provenance of their values, texts, the
// filters that find them, and the rules for who may see and change them. It does no I/O.
package entity
