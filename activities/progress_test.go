package activities_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
)

// said is a store that records what tools reported.
type said struct {
	activities.Store
	texts []string
}

func (s *said) AppendEvents(ctx context.Context, _, _ string, events ...jig.Event) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, e := range events {
		s.texts = append(s.texts, string(e.Data))
	}
	return nil
}

// A tool that reports often writes only a few events, and its last report is kept even if the tool is canceled.
func TestProgress_ReportsAreMergedAndTheLastIsKept(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	store := &said{}
	a := activities.New(activities.Deps{Policy: noPolicies{}, Store: store, Tenants: who{}, Now: func() time.Time { return now }})
	ctx, cancel := context.WithCancel(t.Context())
	report, flush := activities.Progress(a, ctx, jig.Call{Tenant: "t", SessionID: "ses_1", ID: "1.1", Tool: "a.b"})
	report("one ")
	report("two ")
	report("three ")
	now = now.Add(time.Second)
	report("four ")
	report("five")
	cancel()
	flush()
	flush()
	require.Equal(t, []string{`{"text":"one "}`, `{"text":"two three four "}`, `{"text":"five"}`}, store.texts)
}
