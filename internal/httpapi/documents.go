package httpapi

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/internal/toolname"
)

type documentsRequest struct {
	Kind string `query:"kind" enum:"agent,skill,entity_type,spec,policy,tenant,budget,rate_limit" doc:"Only documents of this kind; spec is any composition, prompt, task or thin tool"`
}

type documentsAnswer struct {
	Body struct {
		Documents []protocol.DocumentState `json:"documents"`
	} `nameHint:"DocumentList"`
}

func (a *API) listDocuments(ctx context.Context, in *documentsRequest) (*documentsAnswer, error) {
	tenant, _ := callerOf(ctx)
	list, err := a.options.Engine.Documents.Documents(ctx, tenant, in.Kind)
	var answer documentsAnswer
	answer.Body.Documents = append([]protocol.DocumentState{}, list...)
	return &answer, err
}

// OneDocument names a document in the path.
type OneDocument struct {
	Kind string `path:"kind" enum:"agent,skill,entity_type,spec,policy,tenant,budget,rate_limit" doc:"spec is any composition, prompt, task or thin tool"`
	Name string `path:"name" names:"{kind}" maxLength:"512"`
}

type documentRequest struct {
	OneDocument
	Version string `query:"version" names:"version" maxLength:"128" doc:"A stored version. Default: the current one"`
}

type documentAnswer struct {
	ETag string `header:"ETag" doc:"The version in quotes, for If-Match"` //nolint:tagliatelle // the header's own name
	Body struct {
		protocol.DocumentState
		Text string `json:"text" doc:"The document as it was registered; a skill is JSON with all of its files"`
	} `nameHint:"Document"`
}

func (a *API) getDocument(ctx context.Context, in *documentRequest) (*documentAnswer, error) {
	state, err := a.documentState(ctx, in.OneDocument, in.Version)
	if err != nil {
		return nil, err
	}
	text, err := a.textOf(ctx, state)
	var answer documentAnswer
	answer.ETag, answer.Body.DocumentState, answer.Body.Text = etag(state), state, text
	return &answer, err
}

func etag(d protocol.DocumentState) string { return `"` + d.Version + `"` }

// documentState returns a version of a document; an empty version is the current one.
func (a *API) documentState(ctx context.Context, of OneDocument, version string) (protocol.DocumentState, error) {
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

func (a *API) textOf(ctx context.Context, d protocol.DocumentState) (string, error) {
	tenant, _ := callerOf(ctx)
	body, err := a.options.Engine.DocumentAt(ctx, tenant, d.Kind, d.Name, d.Version)
	return string(body), err
}

type versionsAnswer struct {
	Body struct {
		Versions []protocol.DocumentState `json:"versions" doc:"At most 200 versions, newest first: the current one and the latest others"`
	} `nameHint:"VersionList"`
}

func (a *API) listVersions(ctx context.Context, in *OneDocument) (*versionsAnswer, error) {
	tenant, _ := callerOf(ctx)
	list, err := a.options.Engine.DocumentVersions(ctx, tenant, in.Kind, in.Name, "")
	var answer versionsAnswer
	answer.Body.Versions = append([]protocol.DocumentState{}, list...)
	return &answer, err
}

type differenceRequest struct {
	OneDocument
	From string `query:"from" names:"version" required:"true" minLength:"1" maxLength:"128" doc:"The earlier version"`
	To   string `query:"to" names:"version" maxLength:"128" doc:"The later version. Default: the current one"`
}

type differenceAnswer struct {
	Body struct {
		From       protocol.DocumentState `json:"from"`
		To         protocol.DocumentState `json:"to"`
		Difference string                 `json:"difference" doc:"A unified diff; empty if the texts are equal"`
	} `nameHint:"Difference"`
}

func (a *API) compareDocuments(ctx context.Context, in *differenceRequest) (*differenceAnswer, error) {
	from, err := a.documentState(ctx, in.OneDocument, in.From)
	if err != nil {
		return nil, err
	}
	to, err := a.documentState(ctx, in.OneDocument, in.To)
	if err != nil {
		return nil, err
	}
	before, err := a.textOf(ctx, from)
	if err != nil {
		return nil, err
	}
	after, err := a.textOf(ctx, to)
	var answer differenceAnswer
	answer.Body.From, answer.Body.To = from, to
	_, answer.Body.Difference, _ = strings.Cut(preview.Diff(in.Name, before, after), "\n")
	return &answer, err
}

// documentFile is a document in a call of catalog.put.
type documentFile struct {
	Path     string     `json:"path" minLength:"1" maxLength:"512" doc:"The file's name, for messages; agents end in .md"`
	Body     string     `json:"body" minLength:"1" doc:"The whole text of the document"`
	Replaces *namedFile `json:"replaces,omitempty" doc:"The document and version that this one replaces; without a version, the document must be new"`
}

// namedFile is a registered document in a call of catalog.put or catalog.remove.
type namedFile struct {
	Kind    string `json:"kind" enum:"agent,skill,entity_type,spec,policy,tenant,budget,rate_limit"`
	Name    string `json:"name" names:"{kind}" minLength:"1" maxLength:"512"`
	Version string `json:"version,omitempty" names:"version" maxLength:"128"`
}

type registerRequest struct {
	api.CallHeaders
	Body struct {
		Documents []documentFile `json:"documents" minItems:"1" maxItems:"100"`
	} `nameHint:"RegisterDocuments"`
}

func (a *API) registerDocuments(ctx context.Context, in *registerRequest) (*callAnswer, error) {
	return a.callOf(ctx, in.CallHeaders, toolname.CatalogPut, in.Body)
}

// Matched holds the header of requests that change a document.
type Matched struct {
	Match string `header:"If-Match" names:"version" maxLength:"500" doc:"The ETag of the document that the client has seen, or * for any"`
}

type changeRequest struct {
	OneDocument
	api.CallHeaders
	Matched
	Body struct {
		Text string `json:"text" minLength:"1" doc:"The whole text of the document"`
	} `nameHint:"ChangeDocument"`
}

func (a *API) changeDocument(ctx context.Context, in *changeRequest) (*callAnswer, error) {
	return a.replaceDocument(ctx, in.OneDocument, in.CallHeaders, in.Matched, in.Body.Text)
}

type restoreRequest struct {
	OneDocument
	api.CallHeaders
	Matched
	Body struct {
		Version string `json:"version" names:"version" minLength:"1" maxLength:"128" doc:"The version that becomes current again"`
	} `nameHint:"RestoreDocument"`
}

func (a *API) restoreDocument(ctx context.Context, in *restoreRequest) (*callAnswer, error) {
	old, err := a.documentState(ctx, in.OneDocument, in.Body.Version)
	if err != nil {
		return nil, err
	}
	text, err := a.textOf(ctx, old)
	if err != nil {
		return nil, err
	}
	return a.replaceDocument(ctx, in.OneDocument, in.CallHeaders, in.Matched, text)
}

// replaceDocument makes a text the current version of a document.
func (a *API) replaceDocument(ctx context.Context, of OneDocument, asked api.CallHeaders, match Matched, text string) (*callAnswer, error) {
	current, err := a.matched(ctx, of, asked, match)
	if err != nil {
		return nil, err
	}
	ending := cmp.Or(map[string]string{"agent": ".md", "skill": ".json"}[of.Kind], ".yaml")
	var put registerRequest
	put.Body.Documents = []documentFile{{Path: of.Name + ending, Body: text, Replaces: &namedFile{Kind: of.Kind, Name: of.Name, Version: current}}}
	return a.callOf(ctx, asked, toolname.CatalogPut, put.Body)
}

type removeRequest struct {
	OneDocument
	api.CallHeaders
	Matched
}

func (a *API) removeDocument(ctx context.Context, in *removeRequest) (*callAnswer, error) {
	current, err := a.matched(ctx, in.OneDocument, in.CallHeaders, in.Matched)
	if err != nil {
		return nil, err
	}
	if current == "" {
		return nil, jig.Errorf(jig.CodeNotFound, "there is no such document").WithField("name")
	}
	return a.callOf(ctx, in.CallHeaders, toolname.CatalogRemove, struct {
		Documents []namedFile `json:"documents"`
	}{[]namedFile{{Kind: in.Kind, Name: in.Name, Version: current}}})
}

// matched returns the version of a document that a request replaces, empty if there is none: the current one, after comparing it with the one
// that the client has seen. The call that follows compares again when it runs. If an earlier request with the same key has started that call,
// that call may already have changed the document, and matched returns the version that the client has seen.
func (a *API) matched(ctx context.Context, of OneDocument, asked api.CallHeaders, match Matched) (string, error) {
	current, err := a.documentState(ctx, of, "")
	if err != nil && jig.CodeOf(err) != jig.CodeNotFound {
		return "", err
	}
	tags := strings.Split(match.Match, ",")
	for i := range tags {
		tags[i] = strings.TrimSpace(tags[i])
	}
	if match.Match == "" && current.Version == "" || current.Version != "" && (slices.Contains(tags, etag(current)) || match.Match == "*") {
		return current.Version, nil
	}
	if seen := strings.Trim(tags[0], `"`); len(tags) == 1 && (seen == "" || etag(protocol.DocumentState{Version: seen}) == tags[0]) {
		repeated, err := a.repeated(ctx, asked)
		if repeated || err != nil {
			return seen, err
		}
	}
	if match.Match == "" {
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
