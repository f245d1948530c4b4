// Package thin runs thin tools: a document says which entities a call works from, what must hold, which one entity is created and
// which extraction of it is started; Run does that and returns at once, while the entity fills in a session of its own. It is
// safe to run again under the same call: there is one entity and one extraction however often an attempt is cut off.
//
// It must not know how entities are stored, how sessions are started, nor Temporal: what it needs of them are its ports.
package thin
