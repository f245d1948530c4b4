// Package thin turns the documents of thin tools into tools. Such a document says which entities a call starts from, which conditions must
// hold, which one entity is created, and which extraction of that entity is started. A call does this and returns at once, while a separate
// session fills the entity's fields. Running a call again is safe: there is one entity and one extraction, however often an attempt is
// interrupted.
//
// A thin tool runs like every other tool, through [tools.Registry]. The package must not know how entities are stored, how sessions are
// started, or Temporal. It accesses them through the interfaces [Store] and [Sessions].
package thin
