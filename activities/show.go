package activities

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/preview"
	"github.com/jig-run/jig/internal/protocol"
)

// Show returns the open approval or question of a call and a piece of the call's complete arguments; the approval itself has only a
// preview of 2 KiB. The error is NOT_FOUND if the call does not wait for a person.
func (a *Activities) Show(ctx context.Context, in protocol.ShowRequest) (protocol.ShowPage, error) {
	pending, err := a.Store.Pending(ctx, in.Tenant, in.SessionID, in.Call)
	if err != nil {
		return protocol.ShowPage{}, temporalError(err)
	}
	call, err := a.Store.Call(ctx, in.Tenant, in.SessionID, in.Call)
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
	page := protocol.ShowPage{Pending: pending, Input: call.Input[in.Offset:to], Size: len(call.Input)}
	if in.Offset == 0 {
		pending.Tenant, pending.SessionID = in.Tenant, in.SessionID
		if page.Similar, err = a.similar(ctx, pending, call.Input); err != nil {
			return protocol.ShowPage{}, temporalError(err)
		}
		if page.Comparison, err = a.Store.Comparison(ctx, pending, a.Now().Add(-protocol.ComparedFor)); err != nil {
			return protocol.ShowPage{}, temporalError(err)
		}
		page.ToSign = toSign(pending)
	}
	return page, nil
}

const (
	// maxSimilar is the number of earlier decisions that an approval shows.
	maxSimilar = 3
	// maxDifference is the maximum size of each difference, in bytes.
	maxDifference = 16 << 10
)

// similar returns the latest decisions about other calls of the tool, with the difference between their inputs and this one's.
func (a *Activities) similar(ctx context.Context, pending jig.Pending, input json.RawMessage) ([]protocol.SimilarDecision, error) {
	if pending.Kind != jig.PendingApproval {
		return nil, nil
	}
	found, err := a.Store.SimilarDecisions(ctx, pending, maxSimilar)
	if err != nil {
		return nil, err
	}
	list := make([]protocol.SimilarDecision, len(found))
	for i, s := range found {
		_, difference, _ := strings.Cut(preview.Diff("the input", indented(s.Input), indented(input)), "\n")
		list[i] = protocol.SimilarDecision{
			SessionID: s.SessionID, Call: s.Call, Answer: s.Answer, By: s.By, At: s.At, Difference: jig.Cut(difference, maxDifference),
		}
	}
	return list, nil
}

// indented returns indented JSON, or the text itself if it is not JSON.
func indented(text json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		return string(text)
	}
	return b.String()
}

// toSign returns the claims of the tokens for those answers to a call that have no content.
func toSign(pending jig.Pending) []protocol.SignedClaims {
	actions := []string{string(jig.AnswerApprove), string(jig.AnswerDeny)}
	switch pending.Kind {
	case jig.PendingQuestion:
		actions = []string{token.ActionAnswer}
	case jig.PendingReconcile:
		actions = []string{token.ActionReconcile}
	case jig.PendingApproval:
	}
	list := make([]protocol.SignedClaims, len(actions))
	for i, action := range actions {
		list[i] = protocol.SignedClaims{
			Audience: []string{token.Audience}, Tenant: pending.Tenant, Action: action, Session: pending.SessionID, Call: pending.Call, Digest: pending.Digest,
		}
	}
	return list
}
