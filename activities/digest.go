package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/canonical"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/ledger"
)

// canonicalJSON returns the RFC 8785 form of a JSON document.
func canonicalJSON(raw []byte) ([]byte, error) {
	out, err := canonical.JSON(raw)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the input is not JSON: %w", err)
	}
	return out, nil
}

// digestVersion is the version of the digest's format. It is part of the digest.
const digestVersion = 2

// digest binds what a person is shown to what runs. It is the SHA-256 of the RFC 8785 JSON of the digest version, the installation,
// the tenant, the session, the call's id, the tool's name and version, the input, the policy version and the preview that people are
// shown, which is null for a call without one. The input is already canonical.
func digest(installation string, c jig.Call) (string, error) {
	sum, err := canonical.Hash(struct {
		V            int             `json:"v"`
		Installation string          `json:"installation"`
		Tenant       string          `json:"tenant"`
		Session      string          `json:"session"`
		Call         string          `json:"call"`
		Tool         string          `json:"tool"`
		Version      string          `json:"version"`
		Input        json.RawMessage `json:"input"`
		Policy       string          `json:"policy_version"`
		Preview      *jig.Preview    `json:"preview"`
	}{digestVersion, installation, c.Tenant, c.SessionID, c.ID, c.Tool, c.Version, json.RawMessage(c.Input), c.PolicyVersion, c.Preview})
	if err != nil {
		return "", jig.Errorf(jig.CodeInvalidInput, "the input is not JSON: %w", err)
	}
	return sum, nil
}

// signature identifies equal calls, for the rule that nothing runs twice. It is the SHA-256 of the tool's name and the canonical
// input. For a read it also includes the number of the session's successful writes, so that a read may be repeated after something changed.
func signature(tool jig.Tool, input []byte, writes int) string {
	h := sha256.New()
	h.Write([]byte(tool.Name))
	h.Write([]byte{0})
	h.Write(input)
	if tool.Permission == jig.PermissionRead {
		h.Write([]byte{0})
		h.Write([]byte(strconv.Itoa(writes)))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// shortHash returns a short hash of a concurrency key, to keep it small in a workflow's history.
func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}

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

// withDefaults fills in the `default`s of properties that a document leaves out, in nested objects too. It ignores what it does not
// understand; validation reports that later.
func withDefaults(schema, document json.RawMessage) json.RawMessage {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil || len(s.Properties) == 0 {
		return document
	}
	doc := map[string]json.RawMessage{}
	if json.Unmarshal(document, &doc) != nil || doc == nil {
		return document
	}
	changed := false
	for name, property := range s.Properties {
		var p struct {
			Default json.RawMessage `json:"default"`
		}
		if json.Unmarshal(property, &p) != nil {
			continue
		}
		value, given := doc[name]
		switch {
		case !given && p.Default != nil:
			doc[name], changed = p.Default, true
		case given:
			if filled := withDefaults(property, value); string(filled) != string(value) {
				doc[name], changed = filled, true
			}
		}
	}
	if !changed {
		return document
	}
	out, err := json.Marshal(doc)
	if err != nil {
		return document
	}
	return out
}
