package activities

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Show returns the open approval or question of a call and a piece of the call's complete arguments; the approval itself has only a
// preview of 2 KiB. The error is NOT_FOUND if the call does not wait for a person.
func (a *Activities) Show(ctx context.Context, in protocol.ShowRequest) (protocol.ShowPage, error) {
	pending, err := a.store.Pending(ctx, in.Tenant, in.SessionID, in.Call)
	if err != nil {
		return protocol.ShowPage{}, temporalError(err)
	}
	call, err := a.store.Call(ctx, in.Tenant, in.SessionID, in.Call)
	if err != nil {
		return protocol.ShowPage{}, temporalError(err)
	}
	if in.Offset < 0 || in.Offset > len(call.Input) {
		return protocol.ShowPage{}, temporalError(jig.Errorf(jig.CodeInvalidInput, "the offset is outside of the arguments, which have %d bytes", len(call.Input)).WithField("offset"))
	}
	if call.Digest != pending.Digest {
		return protocol.ShowPage{}, temporalError(jig.Errorf(jig.CodeConflict, "call %s has changed since its approval was requested", in.Call).
			WithHint("look at it again: it needs a new approval"))
	}
	to := min(len(call.Input), in.Offset+chunkBytes)
	return protocol.ShowPage{Pending: pending, Input: call.Input[in.Offset:to], Size: len(call.Input)}, nil
}
