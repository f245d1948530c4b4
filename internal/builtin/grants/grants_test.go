package grants_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/grants"
	"github.com/jig-run/jig/tools/tooltest"
)

// desk holds prepared answers for grants.create and records the stored grants.
type desk struct {
	newErr, approvedErr, putErr error
	stored                      []jig.Grant
}

func (d *desk) kit(t *testing.T) *tooltest.Kit {
	t.Helper()
	return tooltest.New(t, grants.Tools(grants.Options{
		New: func(_ context.Context, _ string, request jig.GrantRequest, now time.Time) (jig.Grant, error) {
			return jig.Grant{Tool: request.Tool, When: cmp.Or(request.When, "true"), MaxUses: 10, ExpiresAt: now.Add(time.Hour)}, d.newErr
		},
		Approved: func(context.Context, string, string, string) ([]string, jig.Proof, error) {
			return []string{"ben"}, jig.ProofKey, d.approvedErr
		},
		Put: func(_ context.Context, g jig.Grant) error {
			if d.putErr == nil {
				d.stored = append(d.stored, g)
			}
			return d.putErr
		},
		ID: func(session, call string) string { return "grant_" + session + "_" + call },
	})...)
}

func TestCreate_StoresTheGrantOfTheApprovers(t *testing.T) {
	t.Parallel()
	d := &desk{}
	var created grants.Created
	d.kit(t).Succeed(grants.CreateTool, jig.GrantRequest{Tool: "file.write"}, &created)
	require.Equal(t, "grant_ses_test_1.1", created.ID)
	require.Equal(t, []string{"ben"}, created.By)
	require.Len(t, d.stored, 1)
	require.Equal(t, "default", d.stored[0].Tenant)
	require.Equal(t, created.ID, d.stored[0].ID)
}

// A call that fails before anything is stored ends as failed: no person has to say whether the grant was given.
func TestCreate_FailsWhenNothingWasStored(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]*desk{
		"unknown tool":         {newErr: jig.Errorf(jig.CodeToolNotFound, "there is no tool file.wirte").WithField("/tool")},
		"unreadable settings":  {newErr: jig.Errorf(jig.CodeUnavailable, "the database is down")},
		"unreadable approvals": {approvedErr: jig.Errorf(jig.CodeUnavailable, "the database is down")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := d.kit(t).Fail(grants.CreateTool, jig.GrantRequest{Tool: "file.wirte"})
			require.True(t, e.NotExecuted)
			require.Empty(t, d.stored)
		})
	}
}

func TestCreate_IsUnknownWhenStoringFails(t *testing.T) {
	t.Parallel()
	d := &desk{putErr: jig.Errorf(jig.CodeUnavailable, "the connection broke")}
	e := d.kit(t).Unknown(grants.CreateTool, jig.GrantRequest{Tool: "file.write"})
	require.Equal(t, jig.CodeUnavailable, e.Code)
}

// Two previews of the same request are equal, although time passes.
func TestCreate_PreviewShowsWhichCallsRun(t *testing.T) {
	t.Parallel()
	d := &desk{}
	kit := d.kit(t)
	p := kit.Preview(grants.CreateTool, jig.GrantRequest{Tool: "file.write"})
	require.Equal(t, "Lets up to 10 calls of file.write run without asking", p.Title, "%+v", p)
	require.Equal(t, []string{"when: true", "calls of any agent", "for 1h0m0s after it is given", "given by the people who approve this call"}, p.Changes)
	require.Equal(t, p, kit.Preview(grants.CreateTool, jig.GrantRequest{Tool: "file.write"}))
	p = kit.Preview(grants.CreateTool, jig.GrantRequest{Tool: "file.write", When: "input.size < 10 //\n|| true"})
	require.Equal(t, "when: input.size < 10 // ⏎ || true", p.Changes[0], "the comment ends where the line does")
	require.Empty(t, d.stored)
	require.Contains(t, kit.Preview(grants.CreateTool, jig.GrantRequest{}).Missing, "no tool is named")
}
