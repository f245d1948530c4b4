package thin_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan/thin"
	"github.com/jig-run/jig/tools"
)

// preview returns the preview of a call of a document at a time.
func (w *world) preview(t *testing.T, body string, now time.Time, input map[string]any) (jig.Preview, error) {
	t.Helper()
	registry, err := tools.NewRegistry()
	require.NoError(t, err)
	engine := thin.NewEngine(thin.Options{Records: w, Starter: w, Tools: registry, Now: func() time.Time { return now }})
	tool, err := engine.Load("tool.yaml", []byte(body))
	require.NoError(t, err)
	require.True(t, tool.Contract.Previews)
	raw, err := json.Marshal(input)
	require.NoError(t, err)
	inv := invocation(0)
	inv.IdempotencyKey = ""
	return tool.Preview(t.Context(), raw, inv, func(_ context.Context, name string, input json.RawMessage) (json.RawMessage, error) {
		return json.RawMessage(`{"tool":"` + name + `","input":` + string(input) + `}`), nil
	})
}

var march = time.Date(2026, 3, 1, 12, 30, 0, 0, time.UTC)

func TestPreview_ShowsTheEntity(t *testing.T) {
	t.Parallel()
	w := newWorld()
	p, err := w.preview(t, document, march, engaged("key", "k1", "workspace", "west"))
	require.NoError(t, err)
	require.Equal(t, `Creates review "Review of m"`, p.Title)
	require.Equal(t, []string{
		`+ module: "m"`, "+ relation engagement: ent_acme", "+ workspaces: west, fixed", "unless the key exists already: review.start: k1",
		"then its tasks fill its fields, in a session of their own",
	}, p.Changes)
	require.Empty(t, p.Precondition)
	require.Empty(t, w.created)
	require.Zero(t, w.starts)

	w.made["review.start: k1"] = entity.Entity{ID: "ent_acme", Type: "review", Title: "Old"}
	p, err = w.preview(t, document, march, engaged("key", "k1"))
	require.NoError(t, err)
	require.Equal(t, jig.Preview{Title: "Changes nothing: this review exists already", Changes: []string{`ent_acme "Old"`}}, p)
	w.unseen["ent_acme"] = true
	_, err = w.preview(t, document, march, engaged("key", "k1"))
	require.Equal(t, jig.CodeNotFound, jig.CodeOf(err), "the engagement may not be read either")
}

// A preview makes the checks of a call, but records no trespass: that would be a write, and the call itself records it.
func TestPreview_MakesTheChecksOfACall(t *testing.T) {
	t.Parallel()
	w := newWorld()
	_, err := w.preview(t, document, march, map[string]any{"engagement_id": "ent_other", "module": "m"})
	require.Equal(t, jig.ReasonEntityNotFound, jig.AsError(err).Reason)
	require.Empty(t, w.trespass)
	_, err = w.preview(t, document, march, map[string]any{"engagement_id": "ent_empty", "module": "m"})
	require.Equal(t, jig.ReasonInsufficientGraph, jig.AsError(err).Reason)
}

// Two previews of the same state are equal at any time; otherwise every approval would be followed by another question.
func TestPreview_DoesNotDependOnTheTime(t *testing.T) {
	t.Parallel()
	w := newWorld()
	body := strings.NewReplacer(`"Review of ${input.module}"`, `"Review at ${string(now)}"`, `module: "${input.module}"`, `module: "${input.module}", on: "${string(now.getFullYear())}"`).Replace(document)
	first, err := w.preview(t, body, march, engaged())
	require.NoError(t, err)
	require.Equal(t, "Creates review", first.Title)
	require.Contains(t, first.Changes, "+ on: (depends on the time at which the call runs)")
	require.Contains(t, first.Changes, `+ module: "m"`)
	second, err := w.preview(t, body, march.Add(26*time.Hour+time.Minute), engaged())
	require.NoError(t, err)
	require.Equal(t, first, second)
}

func TestPreview_OfTheDocument(t *testing.T) {
	t.Parallel()
	body := document + `preview:
  read: {tool: page.get, input: {id: "${input.module}"}}
  title: "Reviews ${input.module}"
  changes: "${[read.data.tool, read.data.input.id]}"
  markdown: "for ${principal.id}"
`
	p, err := newWorld().preview(t, body, march, engaged())
	require.NoError(t, err)
	require.Equal(t, jig.Preview{Title: "Reviews m", Changes: []string{"page.get", "m"}, Markdown: "for ana"}, p)
}
