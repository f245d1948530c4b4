// Package thin runs thin tools. The document of a thin tool says which entities a call starts from, which conditions must hold, which one
// entity is created, and which extraction of that entity is started. [Engine.Run] does this and returns at once, while the entity's fields
// are filled in a session of their own. Running it again for the same call is safe: there is one entity and one extraction, however often
// an attempt is interrupted.
//
// The package must not know how entities are stored or how sessions are started, nor anything about Temporal. What it needs from them it
// gets through its ports, [Records] and [Starter].
package thin
