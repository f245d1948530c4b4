package entity

import (
	"time"
)

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
