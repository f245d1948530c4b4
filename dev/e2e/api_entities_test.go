package e2e_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// listOfEntities is the part of a list of entities that the test uses.
type listOfEntities struct {
	Entities []struct {
		ID     string `json:"entity_id"`
		Slug   string
		Href   string
		Tags   []string
		Values map[string]any
	}
	Total  *int
	Next   string `json:"next_cursor"`
	Filter struct{ Type string }
}

// People read entities over HTTP as the tools for entities do, and change them by calls that wait for approval.
func TestAPI_Entities(t *testing.T) {
	t.Parallel()
	d := startEnv(t)
	const kind = "part"
	tenant := "parts-" + d.name
	d.registerIn(tenant, map[string]string{"tenant.yaml": "kind: tenant\nname: " + tenant + `
people:
  - {id: ana, permissions: ["entities.*.read", "entities.part.write", "entities.part.delete"]}
`, "part.yaml": `kind: entity_type
name: part
fields:
  - {name: name, type: text, required: true}
  - {name: size, type: number, integer: true}
  - {name: tags, type: array, items: {type: text}}
  - {name: double, type: number, task: double}
tasks:
  - {id: double, compute: "entity.content.size * 2"}
`})
	c := apiClient{d.serve(), d.apiKey(tenant, everything()...)}
	finish := func(method, path string, body any) map[string]any {
		t.Helper()
		answer, text := c.send(method, path, body, "Prefer", "wait=20")
		require.Less(t, answer.StatusCode, 300, string(text))
		var called protocol.CallResult
		require.NoError(t, json.Unmarshal(text, &called))
		if called.Status == jig.CallWaiting {
			asked := c.waits(called.SessionID)
			decided, said := c.send(http.MethodPost, "/v1/approvals/"+called.SessionID+"/decision", map[string]any{"call": asked.Call, "answer": "approve", "digest": asked.Digest})
			require.Contains(t, string(said), `"outcome":"accepted"`, decided.StatusCode)
			require.True(t, eventually(t.Context(), patience, func() bool {
				record := get[protocol.CallRecord](c, answer.Header.Get("Location"))
				called.Status, called.Result = record.Status, record.Result
				return record.Status.Final()
			}))
		}
		require.Equal(t, jig.CallSucceeded, called.Status, "%+v", called.Result)
		var out map[string]any
		require.NoError(t, json.Unmarshal(called.Result.Data, &out))
		return out
	}
	create := func(name string, size int) string {
		t.Helper()
		made := finish(http.MethodPost, "/v1/entities", map[string]any{"type": kind, "title": name + " Part!", "content": map[string]any{"name": name, "size": size, "tags": []string{name}}})
		id, ok := made["entity_id"].(string)
		require.True(t, ok, made)
		return id
	}
	require.True(t, eventually(t.Context(), patience, func() bool { // settings are read within a second
		answer, _ := c.send(http.MethodGet, "/v1/entity-types/part", nil)
		return answer.StatusCode == http.StatusOK
	}))
	big, little := create("Big", 9), create("Little", 2)

	first := get[listOfEntities](c, "/v1/entities?limit=1&sort=-size&fields=size&type="+kind)
	require.Equal(t, []any{big, "big-part", "/v1/entities/" + big, []string{"Big"}, float64(9), 2, kind}, []any{
		first.Entities[0].ID, first.Entities[0].Slug, first.Entities[0].Href, first.Entities[0].Tags, first.Entities[0].Values["size"], *first.Total, first.Filter.Type,
	})
	second := get[listOfEntities](c, "/v1/entities?limit=1&sort=-size&fields=size&type="+kind+"&cursor="+url.QueryEscape(first.Next))
	require.Equal(t, []any{little, ""}, []any{second.Entities[0].ID, second.Next})
	where := url.QueryEscape(`[{"field":"size","op":"lt","value":5}]`)
	require.Len(t, get[listOfEntities](c, "/v1/entities?type="+kind+"&where="+where).Entities, 1)
	for path, status := range map[string]int{
		"/v1/entities?type=" + kind + "&where=nonsense":                          422,
		"/v1/entities?type=" + kind + "&cursor=" + url.QueryEscape(first.Next):   422, // another order
		"/v1/entities?type=nothing_" + kind:                                      404,
		"/v1/entities/ent_none":                                                  404,
		"/v1/entities/" + big + "?field=colour":                                  422,
		"/v1/texts/doc_none":                                                     404,
		"/v1/entities:search?q=Little&types=" + kind + "&workspace=no-" + d.name: 404,
	} {
		answer, body := c.send(http.MethodGet, path, nil)
		require.Equal(t, status, answer.StatusCode, "%s: %s", path, body)
	}
	hits := get[struct{ Hits []struct{ Title string } }](c, "/v1/entities:search?q=Little&types="+kind)
	require.Equal(t, "Little Part!", hits.Hits[0].Title)

	finish(http.MethodPatch, "/v1/entities/"+big, map[string]any{"revision": 1, "set": map[string]any{"size": 10}})
	finish(http.MethodPost, "/v1/entities/"+big+"/relations", map[string]any{"name": "holds", "to": little})
	text := finish(http.MethodPost, "/v1/entities/"+big+"/texts", map[string]any{"body": "A long story.", "title": "Story"})
	finish(http.MethodPost, "/v1/entities/"+big+"/extraction", map[string]any{})
	document, ok := text["document_id"].(string)
	require.True(t, ok, text)
	require.Contains(t, string(mustGet(c, "/v1/texts/"+document)), "A long story.")
	require.Contains(t, string(mustGet(c, "/v1/entities/"+little+"/relations")), `"name":"holds","outgoing":false,"entity_id":"`+big+`"`)
	require.Contains(t, string(mustGet(c, "/v1/entities/"+big+"/extraction")), `"status":"completed"`)
	require.Contains(t, string(mustGet(c, "/v1/entities/"+big+"?field=double")), `"value":20`)
	whole := get[struct {
		Revision   int
		Provenance map[string]struct{ Task string }
		Texts      []any
	}](c, "/v1/entities/"+big)
	require.Equal(t, []any{"double", 1}, []any{whole.Provenance["double"].Task, len(whole.Texts)})
	described := get[struct {
		May          []string
		FilterFields []struct{ Field, Control string } `json:"filter_fields"`
	}](c, "/v1/entity-types/"+kind)
	require.Equal(t, []string{"read", "write", "delete"}, described.May)
	require.Len(t, described.FilterFields, 5)
	require.Contains(t, string(mustGet(c, "/v1/entity-types")), kind)

	finish(http.MethodDelete, "/v1/entities/"+little, nil)
	answer, _ := c.send(http.MethodGet, "/v1/entities/"+little, nil)
	require.Equal(t, http.StatusNotFound, answer.StatusCode)
	require.Contains(t, string(mustGet(c, "/v1/entities/"+big+"/relations")), `"relations":[]`)
}

// mustGet reads what is there.
func mustGet(c apiClient, path string) []byte {
	c.t.Helper()
	answer, body := c.send(http.MethodGet, path, nil)
	require.Equal(c.t, http.StatusOK, answer.StatusCode, string(body))
	return body
}
