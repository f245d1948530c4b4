package ledger

import (
	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/stored"
)

// ResultDetails returns the part of a result that the event of a finished call shows. Short data is included whole, longer data as a
// preview of its beginning.
func ResultDetails(r jig.ToolResult) map[string]any {
	d := map[string]any{"summary": stored.Cut(r.Summary, jig.PreviewBytes)}
	if len(r.Data) > 0 {
		shown, truncated := stored.Preview(r.Data)
		if truncated {
			d["data_preview"] = shown
		} else {
			d["data"] = shown
		}
	}
	if len(r.Artifacts) > 0 {
		d["artifacts"] = r.Artifacts
	}
	if len(r.Warnings) > 0 {
		d["warnings"] = r.Warnings
	}
	if r.Error != nil {
		d["error"] = r.Error
	}
	return d
}
