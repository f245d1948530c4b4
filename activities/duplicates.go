package activities

import (
	"context"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
)

// signatures returns the signatures of the calls in exchanges. Refused calls and duplicates have none.
func signatures(exchanges []chat.Exchange) map[string]bool {
	known := map[string]bool{}
	for _, x := range exchanges {
		for _, c := range x.Calls {
			known[c.Signature] = true
		}
	}
	return known
}

// madeBefore maps the signatures of calls to the earlier call that makes each of them a duplicate. tools are the tools of the calls. known has
// the signatures of all earlier calls; if it is nil, the store is asked about every call.
func (a *Activities) madeBefore(ctx context.Context, tools []jig.Tool, calls []jig.Call, known map[string]bool) (map[string]string, error) {
	asked := make([]string, 0, len(calls))
	toolOf := map[string]jig.Tool{}
	for i, c := range calls {
		if c.Signature != "" && (known == nil || known[c.Signature]) {
			asked, toolOf[c.Signature] = append(asked, c.Signature), tools[i]
		}
	}
	seen := map[string]string{}
	if len(asked) == 0 {
		return seen, nil
	}
	equal, err := a.Store.EqualCalls(ctx, calls[0].Tenant, calls[0].SessionID, calls[0].Pass, asked)
	if err != nil {
		return nil, err
	}
	for _, e := range equal {
		signature := e.Call.Signature
		if seen[signature] != "" {
			continue
		}
		counts, err := a.counts(ctx, toolOf[signature], e)
		if err != nil {
			return nil, err
		}
		if counts {
			seen[signature] = e.Call.ID
		}
	}
	return seen, nil
}

// counts reports whether an earlier call makes an equal one a duplicate. A call that other calls make up counts if one of those has begun to write.
func (a *Activities) counts(ctx context.Context, tool jig.Tool, e ledger.Earlier) (bool, error) {
	composed := childOf(tool) != "" || isDocument(tool)
	if e.Counts(tool.Permission == jig.PermissionRead, composed) {
		return true, nil
	}
	if !composed || e.Call.Fence == 0 {
		return false, nil
	}
	return a.wrote(ctx, e.Call)
}

func duplicate(call *jig.Call, earlier string) {
	r := jig.Failure(jig.Errorf(jig.CodeDuplicate, "the same call was already made, as %s; it is not run again", earlier).
		WithHint("use the earlier result, or call with other arguments"))
	call.Verdict, call.Status, call.Result, call.DuplicateOf = jig.VerdictRefuse, jig.CallDuplicate, &r, earlier
	call.Signature = ""
}
