package activities_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/tools"
)

const settling = `kind: composition
name: shop.settle
description: Settles an order with another amount.
permission: write
input_schema: {type: object, required: [order, amount], properties: {order: {type: string}, amount: {type: integer}}}
preview:
  read: {tool: shop.orders, input: {order: "${input.order}", amount: 5}}
  title: "Settles ${input.order} for ${principal.id}"
  changes: ["${string(read.data.amount)} → ${string(input.amount)}"]
steps:
  - set: {done: true}
`

// A composition is previewed before people are asked, with the first approval, and again before it begins.
func TestPreviewRead_OfAComposition(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.begins(t, settling, `{"order":"a","amount":7}`)
	require.Equal(t, jig.CallReserved, o.call(t, "1.1").Status, "nobody is asked before there is a preview")
	require.Equal(t, jig.CallWaiting, o.composes(t).Ran.State)
	p := o.pending(t, "1.1")
	require.Equal(t, &jig.Preview{Title: "Settles a for ana", Changes: []string{"5 → 7"}}, p.Preview)
	require.Contains(t, p.Preview.Binding(), "does not promise")
	require.Equal(t, p.Preview, o.call(t, "1.1").Preview)
	o.approves(t, "1.1")
	require.Equal(t, jig.CallSucceeded, o.composes(t).Ran.State)
	require.Len(t, o.ran, 3, "the preview was computed again")
}

// The read call of a preview has the caller's rights and may only read. If it is refused, people see that there is no preview.
func TestPreviewRead_IsRefused(t *testing.T) {
	t.Parallel()
	secret := tools.New(jig.Tool{Name: "shop.secret", Description: "Reads secrets.", Permission: jig.PermissionRead, RequiredPermission: "secrets", Labels: &jig.Labels{}},
		func(context.Context, jig.Invocation, refund) (refund, error) { return refund{}, nil })
	away := tools.New(jig.Tool{Name: "shop.away", Description: "Reads elsewhere.", Permission: jig.PermissionRead, Labels: &jig.Labels{Sends: true}},
		func(context.Context, jig.Invocation, refund) (refund, error) { return refund{}, nil })
	for name, row := range map[string]struct{ tool, rules, why string }{
		"it writes":            {tool: refundTool, why: "a preview only reads, and shop.refund does more"},
		"it sends":             {tool: "shop.away", why: "a preview only reads, and shop.away does more"},
		"a person answers it":  {tool: "person.ask", why: "a preview only reads, and person.ask does more"},
		"it does not exist":    {tool: "shop.nothing", why: "shop.nothing"},
		"a missing permission": {tool: "shop.secret", why: "needs the permission secrets"},
		"a policy asks":        {tool: ordersTool, rules: "  - {name: ask, when: \"tool.name == 'shop.orders'\", verdict: ask}\n", why: "does not let shop.orders run"},
		"a policy denies":      {tool: ordersTool, rules: "  - {name: no, when: \"tool.name == 'shop.orders'\", verdict: deny}\n", why: "does not let shop.orders run"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, func(o *office) { o.extra = []tools.Tool{secret, away} })
			if row.rules != "" {
				o.govern(t, row.rules)
			}
			o.begins(t, strings.Replace(settling, "tool: shop.orders", "tool: "+row.tool, 1), `{"order":"a","amount":7}`)
			require.Equal(t, jig.CallWaiting, o.composes(t).Ran.State)
			require.Contains(t, o.pending(t, "1.1").Preview.Missing, row.why)
			require.Empty(t, o.ran)
		})
	}
}

// Rules about what the session has read hold for the read call, too.
func TestPreviewRead_KnowsWhatTheSessionHasRead(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.govern(t, "  - {name: no, when: \"tool.name == 'shop.orders' && session.read_untrusted\", verdict: deny}\n")
	o.begins(t, settling, `{"order":"a","amount":7}`)
	_, err := o.db.AddMessage(t.Context(), o.tenant, o.session, "m", chat.Message{Text: "look at the order", By: "hook"})
	require.NoError(t, err)
	require.Equal(t, jig.CallWaiting, o.composes(t).Ran.State)
	require.Contains(t, o.pending(t, "1.1").Preview.Missing, "does not let shop.orders run")
	require.Empty(t, o.ran)
}
