package client

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	sdk "go.temporal.io/sdk/client"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// Decide decides about calls that wait for approval and returns the outcome of each decision. A decision takes effect once, even if the
// request has to be retried. Decisions that do not fit into one request are sent in several; if one of those fails, Decide returns its
// error and the outcomes of the earlier ones. An unknown session is NOT_FOUND, an ended one CONFLICT.
func (c *Client) Decide(ctx context.Context, tenant, id string, decisions []jig.Decision) (protocol.DecideResult, error) {
	if len(decisions) == 0 {
		return protocol.DecideResult{}, jig.Errorf(jig.CodeInvalidInput, "no decision is given").WithField("decisions")
	}
	var all protocol.DecideResult
	for part := range slices.Chunk(decisions, protocol.MaxDecisions) {
		payload := protocol.Decisions{Decisions: part}
		var err error
		if payload.Proof, err = c.vouchDecision(ctx, tenant, id, part[0].By, payload.Content()); err != nil {
			return all, err
		}
		again := make([]string, len(part))
		for i, d := range part {
			again[i] = protocol.Again(d.By, d)
		}
		result, err := c.update(ctx, tenant, id, protocol.UpdateDecide, payload, again)
		if err != nil {
			return all, err
		}
		all.SessionID, all.Decisions = result.SessionID, append(all.Decisions, result.Decisions...)
	}
	return all, nil
}

// Reconcile tells jig what happened in a call whose outcome is unknown; it works like [Client.Decide].
func (c *Client) Reconcile(ctx context.Context, tenant, id string, word jig.Reconciliation) (protocol.DecideResult, error) {
	payload := protocol.Reconciled{Reconciliation: word}
	var err error
	if payload.Proof, err = c.vouchDecision(ctx, tenant, id, word.By, payload.Content()); err != nil {
		return protocol.DecideResult{}, err
	}
	return c.update(ctx, tenant, id, protocol.UpdateReconcile, payload, []string{protocol.Again(word.By, word)})
}

// update sends one update and waits for its answer. The update's id stays the same over all attempts: Temporal recognizes it within a
// workflow run, and the store across runs. again has a key for each decision: if the session has ended, the answers to the same decisions of an
// earlier update are found under them.
func (c *Client) update(ctx context.Context, tenant, id, name string, payload any, again []string) (protocol.DecideResult, error) {
	var result protocol.DecideResult
	tenant, id = named(tenant, id)
	options := sdk.UpdateWorkflowOptions{
		UpdateID: updateID(name, payload), WorkflowID: id, UpdateName: name, Args: []any{payload},
		WaitForStage: sdk.WorkflowUpdateStageCompleted,
	}
	ended := c.own(ctx, tenant, id)
	if ended != nil && jig.CodeOf(ended) != jig.CodeConflict { // nobody may decide in another tenant's session
		return result, ended
	}
	err := ended
	if ended == nil {
		ended, err = c.updateRun(ctx, tenant, options, &result)
	}
	switch {
	case err == nil:
		return result, nil
	case ended != nil:
		return c.ruled(ctx, tenant, id, options.UpdateID, again, ended)
	case isNoWorker(err):
		none := c.noWorker()
		none = none.Reworded("%s; the decision may still take effect", none.Words()) // Temporal hands it to a worker that starts soon
		return protocol.DecideResult{}, none.WithHint("start one with `jig worker`, then check with `jig approvals` whether the call still waits; " +
			"a decision that is sent as a signal (`temporal workflow signal`) waits until a worker runs")
	default:
		return protocol.DecideResult{}, translate(err)
	}
}

// ruled returns what a session that has ended stored about the decisions of an update. An answer that Temporal has not saved can get lost, even if
// the decision took effect and ended the session. The error is ended if nothing is stored; if nobody can tell, its message says so.
func (c *Client) ruled(ctx context.Context, tenant, id, update string, again []string, ended error) (protocol.DecideResult, error) {
	var result protocol.DecideResult
	request := protocol.RuledRequest{Tenant: tenant, SessionID: id, Update: update, Count: len(again), Same: again}
	err := c.ask(ctx, string(protocol.ReadRuled), 0, request, &result)
	switch {
	case err == nil:
		return result, nil
	case jig.CodeOf(err) == jig.CodeNotFound:
		return protocol.DecideResult{}, ended
	default:
		unsure := jig.AsError(ended)
		return protocol.DecideResult{}, unsure.Reworded("%s; it is not known whether the decision took effect before", unsure.Words())
	}
}

// updateRun sends an update to the session's current run and waits for its answer. If the session ends first, or does not exist, ended says so.
func (c *Client) updateRun(ctx context.Context, tenant string, options sdk.UpdateWorkflowOptions, answer any) (ended, err error) {
	id := options.WorkflowID
	err = c.watchWorker(ctx, id, func(ctx context.Context) error {
		return c.repeat(ctx, func(ctx context.Context) error {
			handle, err := c.temporal.UpdateWorkflow(ctx, options)
			if err != nil {
				return err
			}
			return handle.Get(ctx, answer)
		}, func(err error) bool {
			if busy(err) {
				return true
			}
			if !cutOff(err) {
				return false
			}
			var sighted sighting
			if sighted, ended = c.look(ctx, tenant, id); ended == nil && !sighted.live {
				ended = hasEnded(id, sighted)
			}
			return ended == nil
		})
	})
	return ended, err
}

// updateID returns an id made of the payload's hash and a random part. Two requests with the same content are two updates; the retries of
// one request are one update.
func updateID(name string, payload any) string {
	content, err := json.Marshal(payload)
	if err != nil { // the SDK reports the error when it encodes the payload
		content = nil
	}
	sum := sha256.Sum256(content)
	return name + "-" + hex.EncodeToString(sum[:8]) + "-" + rand.Text()
}

// SignalAnswer is the name of the signal that answers a question with the stock Temporal CLI.
const SignalAnswer = protocol.SignalAnswer

// Reply answers a question of a session; it works like [Client.Decide]. If the value does not fit the question, the result says so and the
// question keeps waiting. An empty value is MISSING_PARAM.
func (c *Client) Reply(ctx context.Context, tenant, id string, reply jig.Reply) (protocol.DecideResult, error) {
	if len(reply.Value) == 0 {
		return protocol.DecideResult{}, jig.Errorf(jig.CodeMissingParam, "no answer is given").WithField("value").
			WithHint(`give a JSON value, e.g. "yes"`)
	}
	payload := protocol.Answered{Reply: reply}
	var err error
	if payload.Proof, err = c.vouchDecision(ctx, tenant, id, reply.By, payload.Content()); err != nil {
		return protocol.DecideResult{}, err
	}
	return c.update(ctx, tenant, id, protocol.UpdateAnswer, payload, []string{protocol.Again(reply.By, reply)})
}

// Locate returns the calls to answer when a person answers the given calls of a session. A call that waits itself is its own answer. For a call
// whose child session has one waiting call, it is that one; if several wait there, the error is CONFLICT and names them. A call that does not
// wait at all is returned as it is, without a digest.
func (c *Client) Locate(ctx context.Context, tenant, session string, calls []string) ([]protocol.WaitingCall, error) {
	tenant, session = named(tenant, session)
	pending, err := c.Approvals(ctx, tenant, session)
	if err != nil {
		return nil, err
	}
	waiting := protocol.WaitingCalls(jig.SessionView{SessionID: session, Pending: pending})
	located := make([]protocol.WaitingCall, len(calls))
	for i, call := range calls {
		if located[i], err = protocol.Locate(waiting, session, call); err != nil {
			return nil, err
		}
	}
	return located, nil
}

// comparisonTimeout bounds how long Show waits for a worker that compares the call.
const comparisonTimeout = 5 * time.Second

// Show returns a waiting call with its whole input, whether it has changed since it was shown, earlier decisions about calls of the tool, and
// what a token for an answer would sign; or a call that waited once, with the decisions about it and what it has come to. Lists of calls show at
// most 2 KiB of each input. Show returns NOT_FOUND if no call with that id has waited, and CONFLICT if the call changes while it is being read.
func (c *Client) Show(ctx context.Context, tenant, session, call string) (protocol.ShownCall, error) {
	tenant, session = named(tenant, session)
	var input []byte
	var first protocol.ShowPage
	request := protocol.ShowRequest{Tenant: tenant, SessionID: session, Call: call}
	for {
		page, err := ask(ctx, c, protocol.ReadCall, request)
		if err != nil {
			return protocol.ShownCall{}, err
		}
		if request.Offset == 0 {
			first = page
		}
		if page.Pending.Digest != first.Pending.Digest {
			return protocol.ShownCall{}, jig.Errorf(jig.CodeConflict, "call %s changed while it was read", call).WithField("call").WithHint("look again")
		}
		input = append(input, page.Input...)
		if len(input) >= page.Size || len(page.Input) == 0 {
			return protocol.ShownCall{
				Pending: first.Pending, Input: input, Similar: append([]protocol.SimilarDecision{}, first.Similar...), Comparison: c.comparison(ctx, request, first),
				ToSign: append([]protocol.SignedClaims{}, first.ToSign...), Decisions: first.Decisions,
			}, nil
		}
		request.Offset = len(input)
	}
}

// comparison returns whether a call that waits for approval is still what people are shown, as stored or as a worker says now; nil if the call
// waits for something else. A call that no worker compares in time is shown without the comparison.
func (c *Client) comparison(ctx context.Context, of protocol.ShowRequest, shown protocol.ShowPage) *protocol.Comparison {
	if shown.Comparison != nil || shown.Pending.Kind != jig.PendingApproval || shown.Pending.Decided != nil {
		return shown.Comparison
	}
	ctx, cancel := context.WithTimeout(ctx, comparisonTimeout)
	defer cancel()
	var found protocol.Comparison
	err := c.ask(ctx, string(protocol.ReadComparison), 0, protocol.CompareRequest{Tenant: of.Tenant, SessionID: of.SessionID, Call: of.Call}, &found)
	switch {
	case ctx.Err() != nil || isNoWorker(err):
		return &protocol.Comparison{Status: protocol.ComparisonUnknown, Detail: "no worker answered in time"}
	case err != nil:
		return &protocol.Comparison{Status: protocol.ComparisonUnknown, Detail: jig.AsError(err).Message}
	}
	return &found
}
