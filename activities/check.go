package activities

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// CheckStart returns the error with which a session or a single call would fail to start: an unknown agent or tool, input that does not
// fit, a missing permission, a model without a key. It stores nothing.
func (a *Activities) CheckStart(ctx context.Context, in protocol.CheckRequest) error {
	return temporalError(a.checkStart(ctx, in))
}

func (a *Activities) checkStart(ctx context.Context, in protocol.CheckRequest) error {
	ref := protocol.SessionRef{Tenant: in.Tenant, SessionID: in.SessionID}
	switch {
	case in.Start != nil && in.Call == nil:
		if err := jig.CheckTenant(in.Tenant); err != nil {
			return err
		}
		if err := jig.CheckOwner(in.Tenant, in.SessionID); err != nil {
			return err
		}
		_, err := a.draft(ctx, OpenInput{SessionRef: ref, Start: in.Start})
		return err
	case in.Call != nil && in.Start == nil:
		_, _, err := a.draftCall(ctx, OpenCallInput{SessionRef: ref, Call: *in.Call})
		return err
	}
	return jig.Errorf(jig.CodeInvalidInput, "give either a session or a call to check").WithField("start")
}
