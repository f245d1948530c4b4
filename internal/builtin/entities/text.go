package entities

import (
	"context"
	"fmt"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
)

// maxTexts is the number of texts that the structure of an entity shows.
const maxTexts = 50

type putTextIn struct {
	ID        string `json:"id"                    jsonschema:"the id of the entity that the text belongs to" minLength:"1"`
	Title     string `json:"title,omitempty"       jsonschema:"what people call it"            maxLength:"500"`
	Body      string `json:"body"                  jsonschema:"the text"                       minLength:"1"`
	MediaType string `json:"media_type,omitempty"  jsonschema:"e.g. text/markdown"             default:"text/plain" maxLength:"100"`
	Document  string `json:"document_id,omitempty" jsonschema:"a text of the entity to replace; a new one when it is left out"`
}

// TextPut is the output of entities.putText.
type TextPut struct {
	Document string `json:"document_id"`
	ID       string `json:"entity_id"`
	Bytes    int    `json:"bytes"`
	Replaced bool   `json:"replaced"`
}

// Summary implements tools.Summarizer.
func (p TextPut) Summary() string {
	did := "added"
	if p.Replaced {
		did = "replaced"
	}
	return fmt.Sprintf("%s text %s of entity %s, %d bytes", did, p.Document, p.ID, p.Bytes)
}

// putText adds a text to an entity, or replaces one of its texts. A second attempt at the same call writes the same text again.
func (o Options) putText(ctx context.Context, inv jig.Invocation, in putTextIn) (TextPut, error) {
	e, _, err := o.Entity(ctx, inv, "/id", in.ID, entity.ActionWrite)
	if err != nil {
		return TextPut{}, err
	}
	text := entity.Text{Tenant: inv.Tenant, ID: in.Document, EntityID: e.ID, Title: in.Title, MediaType: in.MediaType, Body: in.Body}
	if in.Document == "" {
		text.ID = jig.TextIDOf(inv.IdempotencyKey)
	} else if old, err := o.Store.Text(ctx, inv.Tenant, in.Document); err != nil || old.EntityID != e.ID {
		return TextPut{}, noText(err, in.Document)
	}
	stored, err := o.Store.PutText(ctx, text)
	return TextPut{Document: stored.ID, ID: e.ID, Bytes: len(stored.Body), Replaced: in.Document != ""}, err
}

type getTextIn struct {
	Document string `json:"document_id"      jsonschema:"the text's id" minLength:"1"`
	Offset   int    `json:"offset,omitempty" jsonschema:"where to continue, in characters" minimum:"0"`
}

// TextPart is the output of entities.getText.
type TextPart struct {
	Document  string `json:"document_id"`
	ID        string `json:"entity_id"`
	Title     string `json:"title,omitempty"`
	MediaType string `json:"media_type"`
	Body      string `json:"body"`
	// Next is the offset of the next part; 0 at the end.
	Next int `json:"next,omitempty"`
}

// Summary implements tools.Summarizer.
func (p TextPart) Summary() string { return fmt.Sprintf("text %s of entity %s", p.Document, p.ID) }

// getText reads part of a text, if the principal may read the text's entity.
func (o Options) getText(ctx context.Context, inv jig.Invocation, in getTextIn) (TextPart, error) {
	text, err := o.Store.Text(ctx, inv.Tenant, in.Document)
	if err != nil {
		return TextPart{}, noText(err, in.Document)
	}
	if _, _, err := o.Entity(ctx, inv, "/document_id", text.EntityID, entity.ActionRead); err != nil {
		return TextPart{}, noText(err, in.Document)
	}
	out := TextPart{Document: text.ID, ID: text.EntityID, Title: text.Title, MediaType: text.MediaType}
	out.Body, out.Next = part(text.Body, in.Offset)
	return out, nil
}

// noText returns NOT_FOUND for a text that the caller cannot see, for whatever reason. Errors other than NOT_FOUND are returned unchanged.
func noText(err error, id string) error {
	if err != nil && jig.CodeOf(err) != jig.CodeNotFound {
		return err
	}
	return jig.Errorf(jig.CodeNotFound, "there is no text %q", id).WithField("/document_id").WithHint("entities.get names the texts of an entity")
}

// part returns the part of a text that begins at offset, in characters, and the offset of the next part; 0 at the end.
func part(text string, offset int) (body string, next int) {
	runes := []rune(text)
	from := min(offset, len(runes))
	to := min(from+maxRunes, len(runes))
	if to < len(runes) {
		next = to
	}
	return string(runes[from:to]), next
}

// withTexts adds the entity's texts to its structure.
func (o Options) withTexts(ctx context.Context, tenant string, r *Reading) error {
	infos, err := o.Store.TextInfos(ctx, tenant, r.ID, maxTexts)
	r.Texts = infos
	return err
}
