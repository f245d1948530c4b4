package activities

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// requestOf returns the digest of a request to start a session. It is empty if a call of another session starts it, because then
// the session's id identifies that call.
func (a *Activities) requestOf(ctx context.Context, tenant string, start protocol.StartSession) (string, error) {
	if start.ParentID != "" {
		return "", nil
	}
	r := jig.SessionRequest{
		Agent: start.Agent, Document: start.Document, Task: start.Task, Input: start.Input, Pairs: start.Pairs, Model: start.Model,
		Principal: start.Principal.ID,
	}
	return a.requestDigest(ctx, tenant, r, start.DocumentArtifact, start.InputArtifact)
}

// callRequestOf returns the digest of a request to make a single call. A request with a parent names no principal.
func (a *Activities) callRequestOf(ctx context.Context, in OpenCallInput) (string, error) {
	r := jig.SessionRequest{Tool: in.Call.Tool, Document: in.Call.Document, Input: in.Call.Input, Pairs: in.Call.Pairs, Principal: in.Call.Principal.ID}
	if in.Call.Parent != "" {
		r.Principal = ""
	}
	return a.requestDigest(ctx, in.Tenant, r, in.Call.DocumentArtifact, in.Call.InputArtifact)
}

// requestDigest returns the digest of a request. It includes the contents of uploads, not their ids, because the same request may be
// uploaded twice.
func (a *Activities) requestDigest(ctx context.Context, tenant string, r jig.SessionRequest, document, input string) (string, error) {
	if document != "" {
		body, err := a.readWhole(ctx, tenant, document)
		if err != nil {
			return "", err
		}
		r.Document = string(body)
	}
	if input != "" {
		body, err := a.readWhole(ctx, tenant, input)
		if err != nil {
			return "", err
		}
		r.Input = body
	}
	return r.Digest(), nil
}
