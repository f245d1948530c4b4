package httpapi

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

func TestNoNull_LeavesJSONAlone(t *testing.T) {
	t.Parallel()
	tool := jig.Tool{Name: "shop.list"}
	noNull(&tool)
	encoded, err := json.Marshal(tool)
	require.NoError(t, err)
	require.Contains(t, string(encoded), `"input_schema":null`)

	lists := struct {
		Empty []string `json:"empty"`
		Left  []string `json:"left,omitempty"`
	}{}
	noNull(&lists)
	encoded, err = json.Marshal(lists)
	require.NoError(t, err)
	require.JSONEq(t, `{"empty":[]}`, string(encoded))
}
