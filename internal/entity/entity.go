// Package entity holds typed records: entity types with their fields and tasks, entities with the provenance of their values, texts, the
// filters that find them, and the rules for who may see and change them. It does no I/O.
//
//   - An entity's content fits its [Type], whose [Field]s are filled by people, by tools, or by the [Task] that a field names. [Provenance]
//     says how a task got a value.
//   - A principal may see an entity if it may read entities of that type ([May], [Readable]). All others do not exist for it, and that is
//     the same answer as for an id that nobody has. Package guarded reads and writes within these permissions.
//   - A [Filter] compares fields of one type. [FilterFields] says what can be compared, and with which control people enter it.
//   - [Taint] follows untrusted data through entities: what a session has read decides whether what it writes is trusted.
package entity

import (
	"encoding/json"
	"time"
)

// Entity is a typed record.
type Entity struct {
	Tenant string `json:"tenant"`
	ID     string `json:"entity_id"`
	Type   string `json:"type"`
	// TypeVersion is the version of the entity type against which the content was last checked.
	TypeVersion string          `json:"type_version"`
	Title       string          `json:"title,omitempty"`
	Content     json.RawMessage `json:"content"`
	// Provenance says, by field name, how a task produced the value.
	Provenance map[string]Provenance `json:"provenance,omitempty"`
	Revision   int64                 `json:"revision"`
	// SessionID and Call identify the latest extraction of the entity; empty when there was none.
	SessionID string    `json:"session_id,omitempty"`
	Call      string    `json:"call,omitempty"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// Provenance says how a field got its value.
type Provenance struct {
	Task    string   `json:"task"`
	Sources []string `json:"sources,omitempty"`
	Model   string   `json:"model,omitempty"`
	Tokens  int64    `json:"tokens,omitempty"`
	// InputHash is the SHA-256 of the inputs from which the value was produced. If it has not changed, the task need not run again.
	InputHash string    `json:"input_hash" doc:"The SHA-256 of what the value was produced from"`
	Attempt   int       `json:"attempt,omitempty"`
	Call      string    `json:"call,omitempty"`
	At        time.Time `json:"at"`
}

// TextClaim is a claim made in a text, with the sources it is based on.
type TextClaim struct {
	Text            string   `json:"text"`
	SourceEntityIDs []string `json:"source_entity_ids"`
	// Quote must appear in one of the sources, word for word; empty means no check.
	Quote string `json:"quote,omitempty"`
}

// MaxBytes bounds the content of an entity, as JSON; longer content belongs in a text.
const MaxBytes = 256 << 10

// NewEntity is an entity to create. The store assigns its id, revision and times.
type NewEntity struct {
	Entity
	// Key makes the creation idempotent: if the key was used before, the entity created then is returned. Empty means not idempotent.
	Key string
	// Bundle is the bundle that the entity type came with; empty when there is none.
	Bundle string
	// Relations are the ids of the entities that the new one points at, by relation name.
	Relations map[string][]string
	// Workspaces are the workspaces that the entity joins.
	Workspaces []string
}

// Patch is a change of some fields of an entity.
type Patch struct {
	// Fields are new values by name; null removes a field. Other fields stay as they are.
	Fields map[string]json.RawMessage
	// Provenance says how the new values were produced. A field that is changed without provenance loses the provenance it had.
	Provenance map[string]Provenance
	// A nil Title leaves the title as it is, and so does an empty TypeVersion for the type's version.
	Title       *string
	TypeVersion string
	// Relations replace the relations of the same names; others stay as they are.
	Relations map[string][]string
	// Key makes the change idempotent: it is not applied again if the latest change had the same key. Empty means not idempotent.
	Key string
}

// Relation is a named link from one entity to another.
type Relation struct {
	From string `json:"from"`
	Name string `json:"name"`
	To   string `json:"to"`
}

// RelatedEntity is a relation as one of its entities sees it.
type RelatedEntity struct {
	Name string `json:"name"`
	// Outgoing is true if the entity points at the other one, and false if the other one points at it.
	Outgoing bool `json:"outgoing" doc:"Whether the entity points at the other one; otherwise the other one points at it"`
	// EntityID, Type and Title are those of the other entity.
	EntityID string `json:"entity_id" doc:"The other entity"`
	Type     string `json:"type"`
	Title    string `json:"title,omitempty"`
}

// Count is the number of entities of a type.
type Count struct {
	Type  string `json:"type"`
	Count int64  `json:"count"`
	// UpdatedAt is the time of the latest change to any of them.
	UpdatedAt time.Time `json:"updated_at"`
}

// Change is a change that an extraction makes to the entity that it fills. It applies to any revision of the entity. If the entity has been
// deleted meanwhile, nothing is written.
type Change struct {
	ID string
	// Fields are new values by name, each with its provenance; null removes a field.
	Fields     map[string]json.RawMessage
	Provenance map[string]Provenance
	// Relations replace the relations of the same names. Links to entities that do not exist are left out.
	Relations map[string][]string
	// Tasks says how tasks ended, by id, in a format private to package extraction. The next extraction of the entity reads it.
	Tasks map[string]json.RawMessage
}

// MaxTextBytes bounds the body of a text.
const MaxTextBytes = 4 << 20

// Text is a searchable document. It may belong to an entity.
type Text struct {
	Tenant    string    `json:"tenant"`
	ID        string    `json:"document_id"`
	EntityID  string    `json:"entity_id,omitempty"`
	Title     string    `json:"title,omitempty"`
	MediaType string    `json:"media_type"`
	Body      string    `json:"body"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

// TextInfo describes a text without its body.
type TextInfo struct {
	ID        string `json:"document_id"`
	Title     string `json:"title,omitempty"`
	MediaType string `json:"media_type"`
	Bytes     int    `json:"bytes"`
}

// Sources are the entities and texts on which values may be based.
type Sources struct {
	Entities []SourceEntity
	Texts    []SourceText
}

// SourceEntity is an entity that serves as a source.
type SourceEntity struct {
	ID, Type string
	// Hash changes whenever the title or the content changes.
	Hash string
}

// SourceText is a text that serves as a source.
type SourceText struct {
	ID, EntityID string
	// Hash changes whenever the title or the body changes.
	Hash string
	// Body is nil for texts that were not asked for and for those that would have exceeded the size limit.
	Body *string
}

// TextHit is a chunk of a text that a search found.
type TextHit struct {
	DocumentID string `json:"document_id"`
	EntityID   string `json:"entity_id,omitempty"`
	Title      string `json:"title,omitempty"`
	// Chunk is the number of the chunk, from 0; Body is its text.
	Chunk int     `json:"chunk"`
	Body  string  `json:"body"`
	Rank  float64 `json:"rank"`
	// Snippet is the part of the body that matches the query, with the matching words marked with ** on both sides.
	Snippet string `json:"snippet"`
}
