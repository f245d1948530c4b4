package activities

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/canonical"
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
