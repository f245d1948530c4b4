package protocol

import (
	"encoding/json"

	"github.com/jig-run/jig"
)

// Whole returns a call's result with all of its data. If the result was truncated, it fetches the artifact with the whole one.
func (r CallResult) Whole(fetch func(artifact string) ([]byte, error)) (*jig.ToolResult, error) {
	if r.Result == nil || len(r.Result.Artifacts) == 0 || !cutShort(r.Result.Data) {
		return r.Result, nil
	}
	raw, err := fetch(r.Result.Artifacts[len(r.Result.Artifacts)-1])
	if err != nil {
		return r.Result, err
	}
	var whole jig.ToolResult
	if err := json.Unmarshal(raw, &whole); err != nil {
		return r.Result, jig.Errorf(jig.CodeInternal, "reading the whole result: %w", err)
	}
	return &whole, nil
}

// cutShort reports whether data is only a preview of a larger value.
func cutShort(data json.RawMessage) bool {
	var p struct {
		Truncated bool    `json:"truncated"`
		Size      int     `json:"size"`
		Preview   *string `json:"preview"`
	}
	return json.Unmarshal(data, &p) == nil && p.Truncated && p.Preview != nil && p.Size > 0
}
