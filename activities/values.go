package activities

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/jig-run/jig"
)

// Values reads artifacts, and results of calls by the id <session>/<call>, for the tool artifact.read: what a prompt left
// out can be read whichever way it was kept.
type Values struct {
	// Store keeps both.
	Store interface {
		Artifacts
		Call(ctx context.Context, tenant, id, callID string) (jig.Call, error)
	}
}

// ReadArtifact returns at most limit bytes from offset, and the whole size. A call's result is indented JSON of a ToolResult.
func (v Values) ReadArtifact(ctx context.Context, tenant, id string, offset int64, limit int) ([]byte, int64, error) {
	session, callID, isCall := strings.Cut(id, "/")
	if !isCall {
		return v.Store.ReadArtifact(ctx, tenant, id, offset, limit)
	}
	call, err := v.Store.Call(ctx, tenant, session, callID)
	if err != nil {
		return nil, 0, err
	}
	if call.ResultArtifact != "" {
		return v.Store.ReadArtifact(ctx, tenant, call.ResultArtifact, offset, limit)
	}
	if call.Result == nil {
		return nil, 0, jig.Errorf(jig.CodeNotFound, "call %s has no result yet", callID).WithField("id")
	}
	whole, err := json.MarshalIndent(call.Result, "", "  ")
	if err != nil {
		return nil, 0, jig.Errorf(jig.CodeInternal, "encoding the result of call %s: %w", callID, err)
	}
	size := int64(len(whole))
	from := min(max(offset, 0), size)
	return whole[from:min(from+int64(limit), size)], size, nil
}
