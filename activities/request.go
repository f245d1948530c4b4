package activities

import (
	"context"

	"github.com/jig-run/jig"
)

// requestOf returns the digest of what a session is started with; empty for one that another session's call starts, whose id stands
// for that call.
func (a *Activities) requestOf(ctx context.Context, tenant string, start StartSession) (string, error) {
	if start.ParentID != "" {
		return "", nil
	}
	r := jig.SessionRequest{
		Agent: start.Agent, Document: start.Document, Task: start.Task, Input: start.Input, Pairs: start.Pairs, Model: start.Model,
		Principal: start.Principal.ID,
	}
	return a.requestDigest(ctx, tenant, r, start.DocumentArtifact, start.InputArtifact)
}

// callRequestOf does the same for a single call.
func (a *Activities) callRequestOf(ctx context.Context, in OpenCallInput) (string, error) {
	if in.Parent != "" {
		return "", nil
	}
	r := jig.SessionRequest{Tool: in.Tool, Document: in.Document, Input: in.Input, Pairs: in.Pairs, Principal: in.Principal.ID}
	return a.requestDigest(ctx, in.Tenant, r, in.DocumentArtifact, in.InputArtifact)
}

// requestDigest reads what was uploaded: the same request may have been uploaded twice.
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
