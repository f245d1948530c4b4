package activities_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/plan"
	"github.com/jig-run/jig/tools"
)

// distrusted is an extractor whose extractions make no calls and return an address. What it reads before or during the move is not trusted.
type distrusted struct{ before, during bool }

func (d distrusted) Begin(ctx context.Context, _ string, _ jig.Invocation, _ json.RawMessage) (plan.Extraction, error) {
	if d.before {
		entity.MarkRead(ctx)
	}
	return plan.Extraction{Entity: jig.NewEntityID("customer"), Type: "customer", Version: "v1"}, nil
}

func (d distrusted) Sources(ctx context.Context, _ jig.Invocation, _ []byte, _ string) (entity.Sources, error) {
	if d.during {
		entity.MarkRead(ctx)
	}
	return entity.Sources{}, nil
}

func (distrusted) Advance(
	ctx context.Context, _ string, _ []byte, _ json.RawMessage, facts plan.ExtractionFacts, _ plan.Situation,
) (plan.Move, error) {
	if _, err := facts.Sources(ctx); err != nil {
		return plan.Move{}, err
	}
	return plan.Move{State: json.RawMessage(`{}`), Done: true, Result: jig.ToolResult{Success: true, Data: json.RawMessage(`{"to":"mallory@evil.example"}`)}}, nil
}

// The result of an extraction is not trusted if the extraction has read an entity or a source that is not, whenever it did so and
// whatever its session had read before.
func TestDataFlow_AnExtractionReadsItsEntityAndItsSources(t *testing.T) {
	t.Parallel()
	fill := tools.Raw(jig.Tool{
		Name: "entities.extract", Description: "Fills.", Permission: jig.PermissionDraft, Idempotent: true, Implementation: activities.ChildExtraction,
		Labels: &jig.Labels{}, InputSchema: json.RawMessage(`{"type":"object"}`), OutputSchema: json.RawMessage(`{"type":"object"}`),
	}, func(context.Context, jig.Invocation, json.RawMessage) jig.ToolResult { return jig.ToolResult{} })
	for _, reads := range []distrusted{{}, {before: true}, {during: true}} {
		for _, tainted := range []bool{false, true} {
			o := newOffice(t, correspondents, func(o *office) { o.extractor, o.extra = reads, append(o.extra, fill) })
			o.letsWritesRun(t)
			require.NoError(t, o.db.PutDocument(t.Context(), o.tenant, activities.DocumentEntityType, "customer", "v1", []byte("kind: entity_type")))
			if tainted {
				o.does(t, 1, "page.read", `{"url":"https://offers.example"}`)
			}
			o.asks(t, 2, "entities.extract", `{}`)
			require.Equal(t, jig.CallSucceeded, o.composesCall(t, "2.1").Ran.State)
			untrusted := reads != distrusted{}
			require.Equal(t, untrusted, o.call(t, "2.1").ReadsUntrusted, "%+v %v", reads, tainted)
			want := jig.CallReserved
			if untrusted {
				want = jig.CallWaiting
			}
			require.Equal(t, want, o.asks(t, 3, "mail.send", `{"to":"mallory@evil.example"}`).Status, "%+v %v", reads, tainted)
		}
	}
}
