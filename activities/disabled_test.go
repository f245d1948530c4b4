package activities_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// What somebody decided before they were disabled lets nothing begin.
func TestDisabled_EarlierDecisionsDoNotCount(t *testing.T) {
	t.Parallel()
	for name, proof := range map[string]func(*office){"claimed": func(*office) {}, "key": keyed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, proof)
			decides := func(who string, d jig.Decision) jig.Ruled {
				if name == "key" {
					d = o.vouched(t, who, d)
				} else {
					d.By = who
				}
				return o.hear(t, "decide", d)
			}
			pass := 0
			asks := func() string {
				pass++
				return o.asks(t, pass, refundTool, fmt.Sprintf(`{"order":"o%d","amount":10}`, pass)).ID
			}

			c := asks()
			require.Equal(t, jig.CallReserved, decides("fay", jig.Decision{Call: c, Answer: jig.AnswerApprove}).Status)
			o.settings.Disabled = []string{"fay"}
			require.Equal(t, jig.CallWaiting, o.runs(t, c), "an approval")
			require.Equal(t, jig.CallReserved, decides("flo", jig.Decision{Call: c, Answer: jig.AnswerApprove}).Status)
			require.Equal(t, jig.CallSucceeded, o.runs(t, c))

			o.settings.Disabled = nil
			o.govern(t, "  - {name: two, when: 'true', verdict: ask, quorum: 2}\n")
			c = asks()
			require.Equal(t, jig.CallWaiting, decides("fay", jig.Decision{Call: c, Answer: jig.AnswerApprove}).Status)
			o.settings.Disabled = []string{"fay"}
			require.Equal(t, jig.CallWaiting, decides("flo", jig.Decision{Call: c, Answer: jig.AnswerApprove}).Status, "one of two approvals")
			require.Len(t, o.pending(t, c).Votes, 1)

			o.settings.Disabled = nil
			o.govern(t, "  - {name: finance, when: 'true', verdict: ask, approvers: {groups: [finance]}}\n")
			c = asks()
			require.Equal(t, jig.CallWaiting, decides("fay", jig.Decision{Call: c, Answer: jig.AnswerDelegate, To: "gus"}).Status)
			o.settings.Disabled = []string{"fay"}
			require.Equal(t, jig.DecisionRefused, decides("gus", jig.Decision{Call: c, Answer: jig.AnswerApprove}).Outcome, "a delegation")

			o.settings.Disabled = nil
			c = asks()
			require.Equal(t, jig.CallWaiting, decides("fay", jig.Decision{Call: c, Answer: jig.AnswerDelegate, To: "gus"}).Status)
			require.Equal(t, jig.CallReserved, decides("gus", jig.Decision{Call: c, Answer: jig.AnswerApprove}).Status)
			o.settings.Disabled = []string{"fay"}
			require.Equal(t, jig.CallWaiting, o.runs(t, c), "a vote that counted only through a delegation")
		})
	}
}

// Messages of disabled people are refused, like their decisions.
func TestDisabled_MessagesAreRefused(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.settings.Disabled = []string{"fay"}
	require.Contains(t, o.hear(t, "message", protocol.Message{Text: "go on", By: "fay"}).Reason, "has disabled fay")
}

// A standing approval counts only while somebody who gave it may act.
func TestDisabled_GrantsDoNotCount(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	d := jig.Decision{Call: o.asks(t, 1, refundTool, small).ID, By: "fay", Answer: jig.AnswerApprove, Grant: &jig.GrantRequest{MaxUses: 5}}
	require.NotEmpty(t, o.hear(t, "decide", d).Grant)
	admitted := o.asks(t, 2, refundTool, second)
	require.Equal(t, jig.CallReserved, admitted.Status)
	o.settings.Disabled = []string{"fay"}
	require.Equal(t, jig.CallWaiting, o.runs(t, admitted.ID), "it was admitted before")
	require.Equal(t, jig.CallWaiting, o.asks(t, 3, refundTool, third).Status)
	o.settings.Disabled = nil
	require.Equal(t, jig.CallReserved, o.asks(t, 4, refundTool, `{"order":"d","amount":1}`).Status)
}

// Where a key is demanded, the signature of somebody who is disabled does not count either if a forged row names somebody else.
func TestDisabled_SignaturesDoNotCount(t *testing.T) {
	t.Parallel()
	o := newOffice(t, keyed)
	o.settings.People = append(o.settings.People, jig.Principal{ID: "eva", Groups: []string{"finance"}})
	o.govern(t, "  - {name: two, when: 'true', verdict: ask, approvers: {groups: [finance]}, quorum: 2}\n")
	c := o.asks(t, 1, refundTool, small)
	for _, who := range []string{"fay", "flo"} {
		require.NotEqual(t, jig.DecisionRefused, o.hear(t, "decide", o.vouched(t, who, jig.Decision{Call: c.ID, Answer: jig.AnswerApprove})).Outcome)
	}
	o.settings.Disabled = []string{"fay"}
	votes := `[{"by": "flo", "counts": [0], "proof": "key"}, {"by": "eva", "counts": [0], "proof": "key"}]`
	require.NoError(t, o.as(t, os.Getenv("JIG_DATABASE_URL"),
		"update approvals set votes = $3 where session_id = $1 and call_id = $2", o.session, c.ID, []byte(votes)))
	require.Equal(t, jig.CallWaiting, o.runs(t, c.ID))
}
