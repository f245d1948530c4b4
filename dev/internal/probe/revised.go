package probe

import (
	"github.com/jig-run/jig"
	"github.com/jig-run/jig/tools"
)

// revisedTools returns two writes that need an approval. The contract of one changes with the revision; the other's never changes.
func revisedTools(revision string) []tools.Tool {
	kept := draft("test.kept", "Changes something outside, the same in every version. Only for tests.", true)
	kept.Approval = jig.ApprovalAlwaysAsk
	revised := draft("test.revised", "Changes something outside. Only for tests.", true)
	revised.Approval = jig.ApprovalAlwaysAsk
	if revision != "" {
		revised.Description = "Changes something outside in another way than before (" + revision + "). Only for tests."
	}
	return []tools.Tool{tools.New(kept, effect), tools.New(revised, effect)}
}
