package activities

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/jig-run/jig"
)

// Values reads artifacts, and results of calls by the id <session>/<call>, for the tool artifact.read. It can read everything that a
// prompt left out, however it was stored.
//
// A call may read the values of its own session. It may also read those of another session of the same principal if the principal still
// has every permission that it had in that session. For all other values the answer is the same as for an unknown id.
type Values struct {
	// Store keeps artifacts and calls.
	Store interface {
		artifactStore
		Call(ctx context.Context, tenant, id, callID string) (jig.Call, error)
		Session(ctx context.Context, tenant, id string) (jig.Session, error)
		// ArtifactSession returns the session that an artifact belongs to.
		ArtifactSession(ctx context.Context, tenant, id string) (string, error)
		// ValueElsewhere reports whether another tenant has an artifact or a session with these ids.
		ValueElsewhere(ctx context.Context, tenant, artifact, session string) (bool, error)
		// RecordViolation records in the audit that a call tried to reach values that are not its own.
		RecordViolation(ctx context.Context, by jig.Invocation, ids []string) error
	}
}

// ReadArtifact returns at most limit bytes from offset, and the complete size. For a call, the value is the indented JSON of its
// ToolResult.
func (v Values) ReadArtifact(ctx context.Context, inv jig.Invocation, id string, offset int64, limit int) ([]byte, int64, error) {
	session, callID, isCall := strings.Cut(id, "/")
	if !isCall {
		var err error
		if session, err = v.Store.ArtifactSession(ctx, inv.Tenant, id); err != nil {
			return nil, 0, v.missing(ctx, inv, id, err)
		}
	}
	if err := v.readable(ctx, inv, session); err != nil {
		return nil, 0, v.missing(ctx, inv, id, err)
	}
	if !isCall {
		return v.Store.ReadArtifact(ctx, inv.Tenant, id, offset, limit)
	}
	call, err := v.Store.Call(ctx, inv.Tenant, session, callID)
	if err != nil {
		return nil, 0, v.missing(ctx, inv, id, err)
	}
	if call.ResultArtifact != "" {
		return v.Store.ReadArtifact(ctx, inv.Tenant, call.ResultArtifact, offset, limit)
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

// errForeign is returned by readable for a session whose values the caller must not see.
var errForeign = errors.New("the value belongs to somebody else")

// readable returns an error if the caller must not read the values of a session.
func (v Values) readable(ctx context.Context, inv jig.Invocation, session string) error {
	if session == inv.SessionID && session != "" {
		return nil
	}
	owner, err := v.Store.Session(ctx, inv.Tenant, session)
	if err != nil && session != "" {
		return err
	}
	lacks := func(permission string) bool { return !inv.Principal.Holds(permission) }
	if session == "" || inv.Principal.ID == "" || owner.Principal.ID != inv.Principal.ID || slices.ContainsFunc(owner.Principal.Permissions, lacks) {
		return errForeign
	}
	return nil
}

// missing returns the same error for an unknown id and for one that belongs to somebody else. The latter is recorded in the audit.
func (v Values) missing(ctx context.Context, inv jig.Invocation, id string, cause error) error {
	trespass := errors.Is(cause, errForeign)
	if !trespass && jig.CodeOf(cause) != jig.CodeNotFound {
		return cause
	}
	session, _, isCall := strings.Cut(id, "/")
	artifact := id
	if isCall {
		artifact = ""
	} else {
		session = ""
	}
	foreign, err := v.Store.ValueElsewhere(ctx, inv.Tenant, artifact, session)
	if err != nil {
		return err
	}
	if foreign || trespass {
		if err := v.Store.RecordViolation(ctx, inv, []string{id}); err != nil {
			return err
		}
	}
	return jig.Errorf(jig.CodeNotFound, "there is no artifact %q", id).WithField("id")
}
