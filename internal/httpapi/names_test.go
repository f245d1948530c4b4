package httpapi_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/httpapi"
	"github.com/jig-run/jig/internal/selfcheck"
)

// Every text of a request says what it names, or is known to name nothing that a tenant has. The isolation suite tries other tenants' ids only
// where the document says that something is named.
func TestDocument_SaysWhatRequestsName(t *testing.T) {
	t.Parallel()
	nothing := map[string][]string{
		"texts for people and models":         {"body", "note", "reason", "task", "text", "title", "q"},
		"documents, and what concerns them":   {"document", "document_name", "path", "media_type", "when"},
		"proof of what the client has seen":   {"digest", "token"},
		"settings":                            {"catch_up", "cron[]", "every", "expires", "jitter", "offset", "timezone", "origin", "scopes[]", "model", "return_to"},
		"parts of something that is named":    {"field", "fields[]", "sort[]", "where"},
		"places in lists, which cursors test": {"after", "cursor"},
		"ids and names of something new":      {"id", "create-api-key.name", "create-relation.name", "create-schedule.name"},
		"any principal":                       {"create-api-key.principal"},
		"an identity provider":                {"begin-login.tenant", "get-protected-resource.tenant"},
		"what compositions wait for":          {"send-event.name"},
	}
	text, err := httpapi.Document()
	require.NoError(t, err)
	document, err := selfcheck.Parse(text)
	require.NoError(t, err)
	used := map[string]bool{}
	for _, op := range document.Operations() {
		for _, text := range document.Texts(op) {
			if text.Schema["x-names"] != nil || text.Schema["enum"] != nil || text.Schema["format"] == "date-time" {
				continue
			}
			name := text.At[strings.LastIndex(text.At, ".")+1:]
			known := slices.ContainsFunc(slices.Collect(maps.Values(nothing)), func(list []string) bool {
				for _, one := range []string{name, op.ID + "." + name} {
					used[one] = used[one] || slices.Contains(list, one)
					if slices.Contains(list, one) {
						return true
					}
				}
				return false
			})
			require.True(t, known, "%s takes %s: give its field the tag names with the kind of what it names, or say here that it names nothing", op.ID, text.At)
		}
	}
	for _, list := range nothing {
		for _, name := range list {
			require.True(t, used[name], "no request has a text %s", name)
		}
	}
}
