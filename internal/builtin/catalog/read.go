package catalog

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/spec"
)

// Reader reads registered documents.
type Reader interface {
	// SeenDocuments lists up to limit current documents of a kind, or of all kinds, sorted by kind and name, after one of them.
	SeenDocuments(ctx context.Context, tenant, kind string, after bundle.Key, limit int) ([]protocol.DocumentState, error)
	// DocumentVersions lists up to limit stored versions of a document, the latest first, or only the given one. NOT_FOUND suggests names.
	DocumentVersions(ctx context.Context, tenant, kind, name, version string, limit int) ([]protocol.DocumentState, error)
	// DocumentTrusted reports whether a version was registered and no outsider can have written its text.
	DocumentTrusted(ctx context.Context, tenant, kind, name, version string) (bool, error)
}

// maxListed is the number of documents or versions of a page.
const maxListed = 100

type listIn struct {
	Kind   string `json:"kind,omitempty"   jsonschema:"only documents of this kind, e.g. agent, composition, policy or tenant" maxLength:"32"`
	Name   string `json:"name,omitempty"   jsonschema:"with kind: the stored versions of this document instead, the latest first" maxLength:"512"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the page before, with the same kind" maxLength:"600"`
}

// List is the output of catalog.list.
type List struct {
	Documents []protocol.DocumentState `json:"documents"`
	// Next is the cursor of the next page; empty at the end.
	Next string `json:"next_cursor,omitempty"`
}

// Summary implements tools.Summarizer.
func (l List) Summary() string {
	if l.Next != "" {
		return fmt.Sprintf("%d documents, and there are more", len(l.Documents))
	}
	return fmt.Sprintf("%d documents", len(l.Documents))
}

func (o Options) list(ctx context.Context, inv jig.Invocation, in listIn) (List, error) {
	kind, err := storedKind(in.Kind)
	if err != nil {
		return List{}, err
	}
	if in.Name != "" {
		if kind == "" {
			return List{}, jig.Errorf(jig.CodeMissingParam, "a document is named without its kind").WithField("/kind").WithHint("give its kind")
		}
		found, err := o.Store.DocumentVersions(ctx, inv.Tenant, kind, in.Name, "", maxListed)
		return List{Documents: found}, err
	}
	var after bundle.Key
	if in.Cursor != "" {
		var ok bool
		if after.Kind, after.Name, ok = strings.Cut(in.Cursor, "/"); !ok {
			return List{}, jig.Errorf(jig.CodeInvalidInput, "%q is not a cursor", jig.Cut(in.Cursor, 40)).WithField("/cursor").WithHint("give next_cursor of the page before")
		}
	}
	found, err := o.Store.SeenDocuments(ctx, inv.Tenant, kind, after, maxListed+1)
	l := List{Documents: found[:min(len(found), maxListed)]}
	if len(found) > maxListed {
		last := found[maxListed-1]
		l.Next = last.Kind + "/" + last.Name
	}
	return l, err
}

// storedKind returns the kind under which documents of a kind are stored.
func storedKind(kind string) (string, error) {
	if kind == "" {
		return "", nil
	}
	var known []string
	for _, k := range spec.Kinds() {
		switch {
		case k.IsManifest():
		case string(k) == kind:
			return k.Stored(), nil
		default:
			known = append(known, string(k))
		}
	}
	return "", jig.Errorf(jig.CodeInvalidInput, "%q is not a kind of document", kind).WithField("/kind").WithHint("use one of " + strings.Join(known, ", "))
}

type getIn struct {
	Kind    string `json:"kind"              jsonschema:"the document's kind, e.g. agent, composition, policy or tenant" minLength:"1" maxLength:"32"`
	Name    string `json:"name"              jsonschema:"the document's name"                                          minLength:"1" maxLength:"512"`
	Version string `json:"version,omitempty" jsonschema:"a stored version; default: the current one"                   maxLength:"128"`
}

// Read is the output of catalog.get.
type Read struct {
	protocol.DocumentState
	Text string `json:"text" jsonschema:"the document as it was registered; a skill is JSON with all of its files"`
}

// Summary implements tools.Summarizer.
func (r Read) Summary() string {
	return fmt.Sprintf("%s %s, version %s, %d bytes", r.Kind, r.Name, jig.ShortVersion(r.Version), len(r.Text))
}

// get reads a document. A text that outsiders may have written marks the session.
func (o Options) get(ctx context.Context, inv jig.Invocation, in getIn) (Read, error) {
	found, trusted, err := o.stored(ctx, inv.Tenant, in)
	if err != nil {
		return Read{}, err
	}
	if !trusted {
		entity.MarkRead(ctx)
	}
	text, err := o.Store.DocumentAt(ctx, inv.Tenant, found.Kind, found.Name, found.Version)
	return Read{DocumentState: found, Text: string(text)}, err
}

// stored finds a version of a document. trusted reports whether it was registered and no outsider can have written its text.
func (o Options) stored(ctx context.Context, tenant string, in getIn) (found protocol.DocumentState, trusted bool, err error) {
	kind, err := storedKind(in.Kind)
	if err != nil {
		return found, false, err
	}
	versions, err := o.Store.DocumentVersions(ctx, tenant, kind, in.Name, in.Version, maxListed)
	if err != nil {
		return found, false, err
	}
	at := slices.IndexFunc(versions, func(d protocol.DocumentState) bool { return d.Current || in.Version != "" })
	switch {
	case at < 0 && in.Version != "":
		return found, false, jig.Errorf(jig.CodeNotFound, "there is no version %s of %s %s", jig.ShortVersion(in.Version), in.Kind, in.Name).
			WithField("/version").WithHint("list its versions: catalog.list with kind and name")
	case at < 0:
		return found, false, jig.Errorf(jig.CodeNotFound, "no version of %s %s is current", in.Kind, in.Name).WithField("/name").
			WithHint("list its versions: catalog.list with kind and name; and restore one")
	}
	found = versions[at]
	trusted, err = o.Store.DocumentTrusted(ctx, tenant, found.Kind, found.Name, found.Version)
	return found, trusted, err
}

type restoreIn struct {
	Kind    string `json:"kind"    jsonschema:"the document's kind, e.g. agent, composition, policy or tenant" minLength:"1" maxLength:"32"`
	Name    string `json:"name"    jsonschema:"the document's name"                                          minLength:"1" maxLength:"512"`
	Version string `json:"version" jsonschema:"the version that becomes current again"                       minLength:"1" maxLength:"128"`
	// Replaces keeps a change that was made in the meantime from getting lost.
	Replaces string `json:"replaces,omitempty" jsonschema:"the version that must be current; the call fails if another one is" maxLength:"128"`
}

// files returns the input of catalog.put that registers the version again. A version that was only stored for a session has no author who can be
// held to account, so it must be registered with its text, which the reviewers then see.
func (o Options) files(ctx context.Context, tenant string, in restoreIn) (Files, error) {
	found, trusted, err := o.stored(ctx, tenant, getIn{Kind: in.Kind, Name: in.Name, Version: in.Version})
	if err != nil {
		return Files{}, err
	}
	if !trusted {
		return Files{}, jig.Errorf(jig.CodeNotPermitted, "version %s of %s %s was never registered, or outsiders may have written its text", jig.ShortVersion(in.Version), in.Kind, in.Name).
			WithField("/version").WithHint("read it with catalog.get, and register the text with catalog.put")
	}
	text, err := o.Store.DocumentAt(ctx, tenant, found.Kind, found.Name, found.Version)
	if err != nil {
		return Files{}, err
	}
	file := File{Path: spec.StoredFile(found.Kind, found.Name, text), Body: string(text)}
	if in.Replaces != "" {
		file.Replaces = &Named{Kind: in.Kind, Name: in.Name, Version: in.Replaces}
	}
	return Files{Documents: []File{file}}, nil
}

func (o Options) previewRestore(ctx context.Context, inv jig.Invocation, in restoreIn) (jig.Preview, error) {
	files, err := o.files(ctx, inv.Tenant, in)
	if err != nil {
		return jig.Preview{}, err
	}
	return o.preview(ctx, inv, files)
}

func (o Options) restore(ctx context.Context, inv jig.Invocation, in restoreIn) (Result, error) {
	files, err := o.files(ctx, inv.Tenant, in)
	if err != nil {
		return Result{}, err
	}
	return o.put(ctx, inv, files)
}
