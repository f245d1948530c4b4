package activities_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/approval"
	"github.com/jig-run/jig/tools"
)

// applied applies a JSON Patch (RFC 6902). It supports what changes of inputs need: add, replace and remove of object members.
func applied(t *testing.T, patch, document json.RawMessage) string {
	t.Helper()
	var operations []struct {
		Op    string          `json:"op"`
		Path  string          `json:"path"`
		Value json.RawMessage `json:"value"`
	}
	var whole map[string]any
	require.NoError(t, json.Unmarshal(patch, &operations))
	require.NoError(t, json.Unmarshal(document, &whole))
	for _, o := range operations {
		at, steps := whole, strings.Split(o.Path, "/")[1:]
		for i := range steps {
			steps[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(steps[i])
		}
		for _, step := range steps[:len(steps)-1] {
			var ok bool
			at, ok = at[step].(map[string]any)
			require.True(t, ok, "%s: %s", o.Path, step)
		}
		name := steps[len(steps)-1]
		_, there := at[name]
		var value any
		switch o.Op {
		case "remove":
			require.True(t, there, o.Path)
			delete(at, name)
			continue
		case "add", "replace":
			require.Equal(t, o.Op == "replace", there, o.Path)
		default:
			require.Fail(t, "an operation that is not known here", o.Op)
		}
		require.NoError(t, json.Unmarshal(o.Value, &value))
		at[name] = value
	}
	b, err := json.Marshal(whole)
	require.NoError(t, err)
	return string(b)
}

func TestPatches_DescribeTheChange(t *testing.T) {
	t.Parallel()
	inputs := []string{
		`{"a":1}`, `{"a":2}`, `{"a":2,"b":{"c":"x"}}`, `{"b":{"c":"y","d/e~f":null}}`, `{}`, `{"a":[1,2,3]}`, `{"a":"ü"}`,
	}
	for _, from := range inputs {
		for _, via := range inputs {
			first, whole, err := activities.Patched(jig.Call{ID: "1.1", Input: []byte(from)}, []byte(via))
			require.NoError(t, err)
			require.JSONEq(t, via, applied(t, first, json.RawMessage(from)))
			if from == via {
				require.JSONEq(t, "[]", string(first))
				require.Nil(t, whole, "nothing to tell the model")
			} else {
				require.JSONEq(t, string(first), string(whole))
			}
			for _, to := range inputs {
				second, both, err := activities.Patched(jig.Call{ID: "1.1", Input: []byte(via), Patch: whole}, []byte(to))
				require.NoError(t, err)
				require.JSONEq(t, to, applied(t, second, json.RawMessage(via)))
				if from == via && via == to {
					continue
				}
				require.JSONEq(t, to, applied(t, both, json.RawMessage(from)), "applied in order, starting from the original input")
			}
		}
	}
	_, _, err := activities.Patched(jig.Call{ID: "1.1", Input: []byte(`{`)}, []byte(`{}`))
	require.Equal(t, jig.CodeInternal, jig.CodeOf(err))
}

func TestEdit_IsCheckedAndRecorded(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.govern(t, "  - {name: large, when: 'input.amount > 1000', verdict: deny}\n"+
		"  - {name: middle, when: 'input.amount > 100', verdict: ask, approvers: {groups: [finance]}, quorum: 2}\n")
	c := o.asks(t, 1, refundTool, small)
	edit := func(by, input string) jig.Ruled {
		return o.hear(t, "approve", jig.Decision{Call: c.ID, By: by, Input: json.RawMessage(input)})
	}
	for input, why := range map[string]string{
		`{"order":"a"}`:                       "the changed input does not fit: shop.refund: /amount is required and missing",
		`{"order":"a","amount":"much"}`:       "the changed input does not fit",
		`{"order":"a","amount":10,"extra":1}`: "the changed input does not fit",
		`{"order":"a","amount":5000}`:         "policy does not allow the changed input",
		`[1]`:                                 "the changed input does not fit",
	} {
		got := edit("fay", input)
		require.Equal(t, jig.DecisionRefused, got.Outcome, input)
		require.Contains(t, got.Reason, why, input)
		require.Equal(t, c.Digest, o.call(t, c.ID).Digest)
	}
	got := edit("flo", `{"order":"a","amount":500}`)
	require.Equal(t, jig.CallWaiting, got.Status, "two of finance must approve what it became")
	require.Contains(t, got.Reason, "1 of 2 approvals by group finance, 1 missing")
	got = edit("fay", `{"amount":50,"order":"a"}`)
	require.Equal(t, jig.CallWaiting, got.Status, "%v", got)
	require.Contains(t, got.Reason, "fay changed the input, so somebody else must approve it")
	require.Equal(t, jig.CallReserved, o.hear(t, "approve", jig.Decision{Call: c.ID, By: "flo"}).Status)
	row := o.call(t, c.ID)
	require.Equal(t, "fay", row.EditedBy)
	require.JSONEq(t, `{"order":"a","amount":50}`, applied(t, row.Patch, json.RawMessage(small)))
	require.NotEqual(t, c.Digest, row.Digest)
	require.NotEqual(t, c.Signature, row.Signature)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Equal(t, []string{"1.1 a 50"}, o.ran)
}

// racing applies another edit after an edit has been computed and before it is stored.
type racing struct {
	activities.Store
	between func()
}

func (r *racing) Decide(ctx context.Context, d approval.DecisionRequest) (approval.Applied, error) {
	if between := r.between; between != nil && d.Edited != nil {
		r.between = nil
		between()
	}
	return r.Store.Decide(ctx, d)
}

// Two people change the same input at the same time. The record of the later change says what it changed relative to the earlier one.
func TestEdit_IsRecordedAgainstTheInputThatItReplaced(t *testing.T) {
	t.Parallel()
	var race *racing
	o := newOffice(t, func(o *office) {
		race = &racing{Store: o.db}
		o.store = race
	})
	o.govern(t, "  - {name: all, when: 'true', verdict: ask, approvers: {groups: [finance]}, quorum: 2}\n")
	c := o.asks(t, 1, refundTool, small)
	edit := func(by, input string) jig.Ruled {
		return o.hear(t, "approve", jig.Decision{Call: c.ID, By: by, Input: json.RawMessage(input)})
	}
	race.between = func() { require.Equal(t, jig.DecisionAccepted, edit("flo", `{"order":"b","amount":20}`).Outcome) }
	require.Equal(t, jig.DecisionAccepted, edit("fay", `{"order":"b","amount":30}`).Outcome)

	row := o.call(t, c.ID)
	require.JSONEq(t, `{"order":"b","amount":30}`, string(row.Input))
	require.JSONEq(t, string(row.Input), applied(t, row.Patch, json.RawMessage(small)), "together the changes lead from the original input to the current one")
	require.Equal(t, "fay", row.EditedBy)
	last := o.patches(t)
	require.Len(t, last, 2)
	require.JSONEq(t, string(row.Input), applied(t, last[1], json.RawMessage(`{"order":"b","amount":20}`)), "fay changed flo's amount and nothing else")
	require.NotContains(t, string(last[1]), "order")
}

// patches returns the patches of the edits so far, from the events.
func (o *office) patches(t *testing.T) []json.RawMessage {
	t.Helper()
	events, err := o.db.Events(t.Context(), o.tenant, o.session, 0, 100)
	require.NoError(t, err)
	var list []json.RawMessage
	for _, e := range events {
		var data struct {
			Edited *struct{ Patch json.RawMessage }
		}
		require.NoError(t, json.Unmarshal(e.Data, &data))
		if data.Edited != nil {
			list = append(list, data.Edited.Patch)
		}
	}
	return list
}

func TestPrompt_TellsTheModelAboutEdits(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	c := o.asks(t, 1, refundTool, small)
	got := o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay", Input: json.RawMessage(`{"order":"a","amount":5}`)})
	require.Equal(t, jig.CallWaiting, got.Status)
	require.Equal(t, jig.CallReserved, o.hear(t, "approve", jig.Decision{Call: c.ID, By: "flo"}).Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	begun, err := o.db.BeginPass(t.Context(), o.tenant, o.session, 1)
	require.NoError(t, err)
	fitted, _ := activities.Fit(o.session, begun.Exchanges, 100_000)
	var told string
	for _, e := range fitted {
		for _, call := range e.Calls {
			told += call.Result.Markdown
		}
	}
	require.Contains(t, told, "fay changed the arguments before this ran")
	require.Contains(t, told, `"path":"/amount"`)
	require.Contains(t, told, `"amount":5`)
}

// Somebody who may approve a small refund cannot change it into one for which the stricter rule fails to evaluate.
func TestEdit_CannotWeakenARule(t *testing.T) {
	t.Parallel()
	const fails = "1000 / (input.amount - 7) > 100000" // for an amount of 7
	o := newOffice(t)
	o.govern(t, "  - {name: odd, when: '"+fails+"', verdict: ask, approvers: {groups: [finance]}, quorum: 2}\n")
	c := o.asks(t, 1, refundTool, small)
	got := o.hear(t, "approve", jig.Decision{Call: c.ID, By: "flo", Input: json.RawMessage(`{"order":"a","amount":7}`)})
	require.Equal(t, jig.CallWaiting, got.Status, "two of finance must approve what it became")
	require.Contains(t, got.Reason, "1 of 2 approvals by group finance")
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))

	o = newOffice(t)
	o.govern(t, "  - {name: odd, when: '"+fails+"', verdict: deny}\n")
	c = o.asks(t, 1, refundTool, small)
	got = o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay", Input: json.RawMessage(`{"order":"a","amount":7}`)})
	require.Equal(t, jig.DecisionRefused, got.Outcome)
	require.Contains(t, got.Reason, "policy does not allow the changed input")
	require.Contains(t, got.Reason, "rule odd: it failed, so it denies: division by zero")
}

// Who changes an input has seen the contract with which the call was admitted. If the tool has changed since, the call must be shown again first.
func TestEdit_OfAChangedTool(t *testing.T) {
	t.Parallel()
	o := newOffice(t, func(o *office) { o.extra = []tools.Tool{o.payment(jig.Tool{Idempotent: true}, paid)} })
	c := o.asks(t, 1, payTool, `{"order":"a"}`)
	o.extra = []tools.Tool{o.payment(jig.Tool{Description: "Pays an order, and all orders of its customer."}, paid)}
	o.deploy(t)
	edit := jig.Decision{Call: c.ID, By: "fay", Input: json.RawMessage(`{"order":"b"}`)}
	got := o.hear(t, "approve", edit)
	require.Equal(t, jig.DecisionRefused, got.Outcome, "%v", got)
	require.Contains(t, got.Reason, "the contract of shop.pay has changed since the call was shown")
	require.NotEqual(t, c.Digest, o.pending(t, c.ID).Digest, "it is shown with the new contract")
	require.Equal(t, jig.CallWaiting, o.hear(t, "approve", edit).Status)
	require.Equal(t, jig.CallReserved, o.hear(t, "approve", jig.Decision{Call: c.ID, By: "flo"}).Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Equal(t, []string{"1.1 paid"}, o.ran)
}

// Where the requester may not approve, it takes two people to decide what runs: nobody approves alone what they wrote themselves.
func TestEdit_IsNotApprovedByItsEditorAlone(t *testing.T) {
	t.Parallel()
	r := &order{version: 1, amount: 5}
	o := newOffice(t, func(o *office) { o.extra = []tools.Tool{r.amending(true)} })
	o.govern(t, "  - {name: four-eyes, when: 'true', verdict: ask, not_requester: true}\n")
	c := o.asks(t, 1, amendTool, `{"order":"a","amount":7}`)
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
	changed := o.hear(t, "decide", jig.Decision{Call: c.ID, By: "fay", Input: json.RawMessage(`{"order":"fay's","amount":1000000}`)})
	require.Equal(t, jig.CallWaiting, changed.Status, "%+v", changed)
	alone := o.hear(t, "decide", jig.Decision{Call: c.ID, By: "fay"})
	require.Equal(t, jig.DecisionRefused, alone.Outcome)
	require.Contains(t, alone.Reason, "fay changed the input")
	require.Equal(t, []string{"5 → 1000000"}, o.pending(t, c.ID).Preview.Changes)
	require.Equal(t, jig.CallReserved, o.hear(t, "decide", jig.Decision{Call: c.ID, By: "flo"}).Status)
	require.Equal(t, jig.CallSucceeded, o.runs(t, c.ID))
	require.Equal(t, []string{"5 → 1000000"}, r.effects)
}
