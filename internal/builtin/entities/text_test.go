package entities_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/builtin/entities"
	"github.com/jig-run/jig/internal/entity"
)

// called runs a tool under the given idempotency key, requires that it succeeds, and returns its decoded data.
func called[T any](t *testing.T, b *bench, key, tool string, input object) (out T) {
	t.Helper()
	b.Invocation.IdempotencyKey = key
	result := b.Run(t.Context(), tool, input)
	require.True(t, result.Success, "%+v", result.Error)
	require.NoError(t, json.Unmarshal(result.Data, &out))
	return out
}

func TestTexts_AreReadAndReplaced(t *testing.T) {
	t.Parallel()
	b := newBench(t, "entities.team.read", "entities.team.write")
	id, other := b.create("team", object{"name": "a"}), b.create("team", object{"name": "b"})
	long := strings.Repeat("héllo ", 5_000)
	first := called[entities.TextPut](t, b, "ses/t1", entities.PutTextTool, object{"id": id, "title": "Notes", "body": long, "media_type": "text/markdown"})
	require.Equal(t, len(long), first.Bytes)
	again := called[entities.TextPut](t, b, "ses/t1", entities.PutTextTool, object{"id": id, "title": "Notes", "body": long, "media_type": "text/markdown"})
	require.Equal(t, first, again, "a second attempt at a call adds no second text")

	var whole strings.Builder
	for offset, parts := 0, 0; ; parts++ {
		part := called[entity.TextPart](t, b, "", entities.GetTextTool, object{"document_id": first.Document, "offset": offset})
		require.Equal(t, id, part.ID)
		whole.WriteString(part.Body)
		if offset = part.Next; offset == 0 {
			require.Equal(t, 1, parts)
			break
		}
	}
	require.Equal(t, long, whole.String())

	replaced := called[entities.TextPut](t, b, "ses/t2", entities.PutTextTool, object{"id": id, "document_id": first.Document, "body": "short needle"})
	require.True(t, replaced.Replaced)
	read := called[entity.Reading](t, b, "", entities.GetTool, object{"id": id})
	require.Equal(t, []entity.TextInfo{{ID: first.Document, MediaType: "text/plain", Bytes: 12}}, read.Texts)
	found := b.Run(t.Context(), entities.SearchTool, object{"query": "needle"})
	require.Contains(t, string(found.Data), id)

	b.refused(jig.CodeNotFound, entities.PutTextTool, object{"id": other, "document_id": first.Document, "body": "x"})
	b.refused(jig.CodeNotFound, entities.GetTextTool, object{"document_id": jig.NewTextID()})
	b.Invocation.Principal.Permissions = []string{"entities.team.read"}
	b.refused(jig.CodeNotPermitted, entities.PutTextTool, object{"id": id, "body": "x"})
	b.Invocation.Principal.Permissions = []string{"entities.team.write"}
	b.refused(jig.CodeNotFound, entities.GetTextTool, object{"document_id": first.Document})
	stranger := newBench(t, "*")
	stranger.Invocation.Tenant += "-stranger"
	stranger.refused(jig.CodeNotFound, entities.GetTextTool, object{"document_id": first.Document})
}
