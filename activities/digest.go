package activities

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/canonical"
)

// canonicalJSON returns the RFC 8785 form of a JSON document.
func canonicalJSON(raw []byte) ([]byte, error) {
	out, err := canonical.JSON(raw)
	if err != nil {
		return nil, jig.Errorf(jig.CodeInvalidInput, "the input is not JSON: %w", err)
	}
	return out, nil
}

// digestVersion says what a digest is made of; it is part of the digest.
const digestVersion = 2

// digest binds what a person is shown to what runs: the SHA-256 of the RFC 8785 JSON of the version of digests, the installation, the
// tenant, the session, the call's id, the tool's name and version, the input, the policy version and the preview, which is null. The
// input is canonical already.
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
		Preview      json.RawMessage `json:"preview"`
	}{digestVersion, installation, c.Tenant, c.SessionID, c.ID, c.Tool, c.Version, json.RawMessage(c.Input), c.PolicyVersion, nil})
	if err != nil {
		return "", jig.Errorf(jig.CodeInvalidInput, "the input is not JSON: %w", err)
	}
	return sum, nil
}

// signature tells calls apart for the rule that nothing runs twice: SHA-256 over name and canonical input; a read's also
// over the session's successful writes, so that it may look again after something changed.
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

// shortHash keeps a concurrency key short in a workflow's history.
func shortHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}
