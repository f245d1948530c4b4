package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig/internal/api"
)

// What the server leaves out of an error, the client that has sent the request puts in again.
func TestValues_FillWhatTheyHavePlacesFor(t *testing.T) {
	t.Parallel()
	v := &api.Values{
		Parameters: map[string]string{"session": "order-7", "where": `[{"field":"age"}]`, "bad name": "x-1"},
		Body:       []byte(`{"session":"other","document":"name: one\nwhen: \"a<b\" two","input":{"text":"say \"hi\" now","n":4711},"list":["one","ünï"]}`),
	}
	for value, place := range map[string]string{
		"order-7": "{session}", "age": "{where[11:14]}", "one": "{document[6:9]}", `a<b`: "{document[17:20]}", "4711": "{input[29:33]}", "ünï": "{list[8:13]}",
		`say "hi" now`: "{input[9:23]}", "other": "", "on": "", "x-1": "", "": "", "471": "",
	} {
		require.Equal(t, place, v.Place(value), value)
		if place != "" {
			require.Equal(t, "it is "+value+".", v.Fill("it is "+place+"."))
		}
	}
	require.Equal(t, `"say \"hi\" now" {none} {document[8:2]} {document[2:900]} {session`, v.Fill(`"{input[9:23]}" {none} {document[8:2]} {document[2:900]} {session`))
}

// However many values an error has, and however long a request is, the work is bounded.
func TestValues_SearchOnlySoMuch(t *testing.T) {
	t.Parallel()
	v := &api.Values{Body: fmt.Appendf(nil, `{"task":%q}`, strings.Repeat("a ", 500_000)+"last")}
	found := 0
	for range 1_000 {
		if v.Place("last") != "" {
			found++
		}
	}
	require.Positive(t, found)
	require.Less(t, found, 20)
}
