package activities

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Record returns a call with its result and a piece of its input. A large result is a preview; the result's last artifact is the whole
// one. The error is NOT_FOUND if the tenant has no such session, or the session no such call.
func (a *Activities) Record(ctx context.Context, in protocol.RecordRequest) (protocol.RecordPage, error) {
	_, calls, err := a.Store.CallsOf(ctx, in.Tenant, in.SessionID, []string{in.Call})
	if err != nil {
		return protocol.RecordPage{}, temporalError(err)
	}
	if len(calls) == 0 {
		return protocol.RecordPage{}, temporalError(jig.Errorf(jig.CodeNotFound, "session %s has no call %s", in.SessionID, in.Call).
			WithField("call").WithHint("`jig status SESSION` lists its calls"))
	}
	call := calls[0]
	if in.Offset < 0 || in.Offset > len(call.Input) {
		return protocol.RecordPage{}, temporalError(jig.Errorf(jig.CodeInvalidInput, "the offset is outside of the input, which has %d bytes",
			len(call.Input)).WithField("offset"))
	}
	to := min(len(call.Input), in.Offset+chunkBytes)
	return protocol.RecordPage{Record: recordOf(call), Input: call.Input[in.Offset:to], Size: len(call.Input)}, nil
}

// recordOf returns the record of a call without its input.
func recordOf(call jig.Call) protocol.CallRecord {
	return protocol.CallRecord{
		SessionID: call.SessionID, ClientID: jig.ClientID(call.SessionID), Call: call.ID, Tool: call.Tool, Version: call.Version,
		Frame: call.Frame, Child: call.Child, Verdict: call.Verdict, Reasons: call.Reasons, Status: call.Status, Digest: call.Digest,
		Attempt:  call.Fence,
		EditedBy: call.EditedBy, CreatedAt: call.CreatedAt, StartedAt: call.StartedAt, FinishedAt: call.FinishedAt,
		DurationMS: call.Duration().Milliseconds(), Result: callState(call).Result,
	}
}
