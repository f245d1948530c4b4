package activities

import (
	"context"

	"github.com/jig-run/jig"
)

// ShowRequest asks for the open approval or question of a call, with a piece of the call's arguments.
type ShowRequest struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id"`
	Call      string `json:"call"`
	// Offset is where the piece of the arguments begins, in bytes.
	Offset int `json:"offset,omitempty"`
}

// ShowPage holds the open approval or question of a call and a piece of the call's arguments (canonical JSON), at most 128 KiB. Pieces
// belong together if their Pending has the same digest.
type ShowPage struct {
	Pending jig.Pending `json:"pending"`
	Input   []byte      `json:"input"`
	// Size is the size of the complete arguments, in bytes.
	Size int `json:"size"`
}

// Show returns the open approval or question of a call and a piece of the call's complete arguments; the approval itself has only a
// preview of 2 KiB. The error is NOT_FOUND if the call does not wait for a person.
func (a *Activities) Show(ctx context.Context, in ShowRequest) (ShowPage, error) {
	pending, err := a.store.Pending(ctx, in.Tenant, in.SessionID, in.Call)
	if err != nil {
		return ShowPage{}, temporalError(err)
	}
	call, err := a.store.Call(ctx, in.Tenant, in.SessionID, in.Call)
	if err != nil {
		return ShowPage{}, temporalError(err)
	}
	if in.Offset < 0 || in.Offset > len(call.Input) {
		return ShowPage{}, temporalError(jig.Errorf(jig.CodeInvalidInput, "the arguments have %d bytes", len(call.Input)).WithField("offset"))
	}
	if call.Digest != pending.Digest {
		return ShowPage{}, temporalError(jig.Errorf(jig.CodeConflict, "call %s has changed since it was asked about", in.Call).
			WithHint("look again: it is asked about anew"))
	}
	to := min(len(call.Input), in.Offset+chunkBytes)
	return ShowPage{Pending: pending, Input: call.Input[in.Offset:to], Size: len(call.Input)}, nil
}
