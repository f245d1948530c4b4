// Package thin runs thin tools. The document of a thin tool says which entities a call starts from, which conditions must hold, which one
// entity is created, and which extraction of that entity is started. [Engine.Run] does this and returns at once, while a separate session
// fills the entity's fields. Running it again for the same call is safe: there is one entity and one extraction, however often an attempt is
// interrupted.
//
// The package must not depend on the store, on the way sessions are started, or on Temporal. It accesses them through the interfaces [Records]
// and [Starter].
package thin
