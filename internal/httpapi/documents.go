package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/bundle"
	"github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

// serveDocuments serves the operations on registered documents and on installed bundles.
func (a *API) serveDocuments() {
	serve(a, api.ListDocuments, a.listDocuments)
	serveAs(a, api.RegisterDocuments, func(ctx context.Context, in *api.RegisterDocumentsRequest) (*callAnswer, error) {
		return a.callOf(ctx, in.CallHeaders, toolname.CatalogPut, in.Body)
	})
	serveAs(a, api.GetDocument, a.getDocument)
	serveAs(a, api.ChangeDocument, func(ctx context.Context, in *api.ChangeDocumentRequest) (*callAnswer, error) {
		return a.replaceDocument(ctx, &in.DocumentChange, in.Body.Text)
	})
	serveAs(a, api.RemoveDocument, a.removeDocument)
	serve(a, api.ListVersions, a.listVersions)
	serve(a, api.CompareVersions, a.compareVersions)
	serveAs(a, api.RestoreDocument, a.restoreDocument)
	serve(a, api.ListBundles, a.listBundles)
	serve(a, api.GetBundle, a.getBundle)
}

func (a *API) listDocuments(ctx context.Context, in *api.ListDocumentsRequest) (api.DocumentList, error) {
	tenant, _ := callerOf(ctx)
	list, err := a.options.Engine.Documents.Documents(ctx, tenant, in.Kind)
	return api.DocumentList{Documents: list}, err
}

type documentAnswer struct {
	ETag string `header:"ETag" doc:"The version in quotes, for If-Match"` //nolint:tagliatelle // the header's own name
	Body api.Document
}

func (a *API) getDocument(ctx context.Context, in *api.GetDocumentRequest) (*documentAnswer, error) {
	d, err := a.version(ctx, in.DocumentPath, in.Version)
	return &documentAnswer{etag(d.DocumentState), d}, err
}

func etag(d protocol.DocumentState) string { return `"` + d.Version + `"` }

// documentState returns a version of a document; an empty version is the current one.
func (a *API) documentState(ctx context.Context, of api.DocumentPath, version string) (protocol.DocumentState, error) {
	tenant, _ := callerOf(ctx)
	all, err := a.options.Engine.DocumentVersions(ctx, tenant, of.Kind, of.Name, version)
	if err != nil {
		return protocol.DocumentState{}, err
	}
	at := slices.IndexFunc(all, func(d protocol.DocumentState) bool { return d.Version == version || version == "" && d.Current })
	switch {
	case at >= 0:
		return all[at], nil
	case version == "":
		return protocol.DocumentState{}, jig.Errorf(jig.CodeNotFound, "no version of the document is current").WithField("name").
			WithHint("list its versions, and restore one")
	default:
		return protocol.DocumentState{}, jig.Errorf(jig.CodeNotFound, "there is no such version of the document").WithField("version").WithHint("list its versions")
	}
}

// version returns a version of a document with its text; an empty version is the current one.
func (a *API) version(ctx context.Context, of api.DocumentPath, version string) (d api.Document, err error) {
	if d.DocumentState, err = a.documentState(ctx, of, version); err != nil {
		return d, err
	}
	tenant, _ := callerOf(ctx)
	text, err := a.options.Engine.DocumentAt(ctx, tenant, d.Kind, d.Name, d.Version)
	d.Text = string(text)
	return d, err
}

func (a *API) listVersions(ctx context.Context, in *api.DocumentPath) (api.VersionList, error) {
	tenant, _ := callerOf(ctx)
	list, err := a.options.Engine.DocumentVersions(ctx, tenant, in.Kind, in.Name, "")
	return api.VersionList{Versions: list}, err
}

func (a *API) compareVersions(ctx context.Context, in *api.CompareVersionsRequest) (api.Difference, error) {
	from, err := a.version(ctx, in.DocumentPath, in.From)
	if err != nil {
		return api.Difference{}, err
	}
	to, err := a.version(ctx, in.DocumentPath, in.To)
	_, lines, _ := strings.Cut(preview.Diff(in.Name, from.Text, to.Text), "\n")
	return api.Difference{From: from.DocumentState, To: to.DocumentState, Difference: lines}, err
}

func (a *API) restoreDocument(ctx context.Context, in *api.RestoreDocumentRequest) (*callAnswer, error) {
	old, err := a.version(ctx, in.DocumentPath, in.Body.Version)
	if err != nil {
		return nil, err
	}
	return a.replaceDocument(ctx, &in.DocumentChange, old.Text)
}

// replaceDocument makes a text the current version of a document.
func (a *API) replaceDocument(ctx context.Context, in *api.DocumentChange, text string) (*callAnswer, error) {
	current, err := a.matched(ctx, in)
	if err != nil {
		return nil, err
	}
	ending := cmp.Or(map[string]string{"agent": ".md", "skill": ".json"}[in.Kind], ".yaml")
	var put api.RegisterDocumentsRequest
	put.Body.Documents = []api.DocumentFile{
		{Path: in.Name + ending, Body: text, Replaces: &api.NamedFile{Kind: in.Kind, Name: in.Name, Version: current}},
	}
	return a.callOf(ctx, in.CallHeaders, toolname.CatalogPut, put.Body)
}

func (a *API) removeDocument(ctx context.Context, in *api.DocumentChange) (*callAnswer, error) {
	current, err := a.matched(ctx, in)
	if err != nil {
		return nil, err
	}
	if current == "" {
		return nil, jig.Errorf(jig.CodeNotFound, "there is no such document").WithField("name")
	}
	return a.callOf(ctx, in.CallHeaders, toolname.CatalogRemove, map[string]any{
		"documents": []api.NamedFile{{Kind: in.Kind, Name: in.Name, Version: current}},
	})
}

// matched returns the version of a document that a request replaces, empty if there is none: the current one, after comparing it with the one
// that the client has seen. The call that follows compares again when it runs. If an earlier request with the same key has started that call,
// that call may already have changed the document, and matched returns the version that the client has seen.
func (a *API) matched(ctx context.Context, in *api.DocumentChange) (string, error) {
	current, err := a.documentState(ctx, in.DocumentPath, "")
	if err != nil && jig.CodeOf(err) != jig.CodeNotFound {
		return "", err
	}
	tags := strings.Split(in.Match, ",")
	for i := range tags {
		tags[i] = strings.TrimSpace(tags[i])
	}
	if in.Match == "" && current.Version == "" || current.Version != "" && (slices.Contains(tags, etag(current)) || in.Match == "*") {
		return current.Version, nil
	}
	if seen := strings.Trim(tags[0], `"`); len(tags) == 1 && (seen == "" || etag(protocol.DocumentState{Version: seen}) == tags[0]) {
		repeated, err := a.repeated(ctx, in.CallHeaders)
		if repeated || err != nil {
			return seen, err
		}
	}
	if in.Match == "" {
		return "", failed(http.StatusPreconditionRequired, jig.Errorf(jig.CodeMissingParam, "the document exists: say which version you have seen").
			WithField("If-Match").WithHint("send the ETag of the document, or * for any version"))
	}
	return "", failed(http.StatusPreconditionFailed, jig.Errorf(jig.CodeConflict, "another version of the document is current").
		WithField("If-Match").WithReason("precondition").WithHint("read the document again, and repeat the change"))
}

// repeated reports whether a call was started with the key of a request.
func (a *API) repeated(ctx context.Context, asked api.CallHeaders) (bool, error) {
	if asked.Key == "" {
		return false, nil
	}
	tenant, _ := callerOf(ctx)
	_, err := a.options.Engine.Record(ctx, tenant, jig.KeyedSessionID(tenant, asked.Key), jig.CallID(1, 1))
	if jig.CodeOf(err) == jig.CodeNotFound {
		return false, nil
	}
	return err == nil, err
}

func (a *API) listBundles(ctx context.Context, _ *struct{}) (api.BundleList, error) {
	tenant, _ := callerOf(ctx)
	list, err := a.options.Bundles.Bundles(ctx, tenant)
	return api.BundleList{Bundles: list}, err
}

func (a *API) getBundle(ctx context.Context, in *api.BundlePath) (bundle.Bundle, error) {
	tenant, _ := callerOf(ctx)
	list, err := a.options.Bundles.Bundles(ctx, tenant)
	if err != nil {
		return bundle.Bundle{}, err
	}
	at := slices.IndexFunc(list, func(b bundle.Bundle) bool { return b.Name == in.Bundle })
	if at < 0 {
		return bundle.Bundle{}, jig.Errorf(jig.CodeNotFound, "there is no such bundle").WithField("bundle").WithHint("list the bundles")
	}
	return list[at], nil
}
