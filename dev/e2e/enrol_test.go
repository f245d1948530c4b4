package e2e_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/protocol"
)

// signer is somebody with an API key and a signing key.
type signer struct {
	caller
	tenant string
	token.Signer
}

// person makes a signing key with the command line and an API key.
func (v *vouching) person(tenant, name string) *signer {
	v.t.Helper()
	file := filepath.Join(v.dir, name+".key")
	made := v.jig("key", "new", "--principal", name, "--out", file)
	require.Zero(v.t, made.code, made.err)
	private, err := os.ReadFile(file)
	require.NoError(v.t, err)
	s, err := token.ParsePrivateKey(private, "", name)
	require.NoError(v.t, err)
	return &signer{tenant: tenant, Signer: s}
}

// public returns the public key as documents write it.
func (s *signer) public() string {
	s.t.Helper()
	return base64.StdEncoding.EncodeToString(s.Key().Material[:ed25519.PublicKeySize])
}

// approves sends a signed approval and returns the server's answer.
func (s *signer) approves(session string, asked jig.Pending) string {
	s.t.Helper()
	d := jig.Decision{Call: asked.Call, Answer: jig.AnswerApprove}
	claim, err := token.ForDecision(s.tenant, session, d, asked.Digest)
	require.NoError(s.t, err)
	claim.Principal = s.Principal()
	text, err := token.Sign(claim, s.Signer, time.Now(), 0)
	require.NoError(s.t, err)
	_, body := s.send(http.MethodPost, "/v1/approvals/"+session+"/decision", map[string]any{
		"call": asked.Call, "answer": "approve", "digest": asked.Digest, "token": text,
	})
	return string(body)
}

// Ana makes a key, an owner accepts it, and from then on her signatures count.
func TestProof_APersonEnrolsAKey(t *testing.T) {
	t.Parallel()
	v := newVouching(t)
	tenant := v.name + "-enrol"
	ana, flo := v.person(tenant, "ana"), v.person(tenant, "flo")
	v.registerIn(tenant, map[string]string{"tenant.yaml": fmt.Sprintf(
		"kind: tenant\nname: %s\napprovals: {proof: key}\nstarts: {proof: vouched}\nowners: {people: [flo]}\npeople: [{id: ana}, {id: flo}]\nkeys:\n"+
			"  - {id: %s, algorithm: ed25519, principal: flo, public_key: %s}\n", tenant, flo.ID(), base64.StdEncoding.EncodeToString(flo.Key().Material))})
	server := v.serveWith("server.key")
	ana.caller, flo.caller = caller{server, v.apiKey(tenant, everything()...)}, caller{server, v.apiKey(tenant, append(everything(), "--principal", "flo")...)}

	session := flo.begins("work")
	asked := ana.waits(session)
	require.Contains(t, ana.approves(session, asked), "not one of the tenant's", "the key is not enrolled")

	claim, err := token.ForSubject(tenant, token.ActionEnrol, "key:"+ana.ID(), "")
	require.NoError(t, err)
	claim.Principal = "ana"
	proof, err := token.Sign(claim, ana.Signer, time.Now(), 0)
	require.NoError(t, err)
	answer, body := ana.send(http.MethodPost, "/v1/tools/tenants.enrol_key/calls", map[string]any{
		"input": map[string]any{"algorithm": "ed25519", "public_key": ana.public(), "token": proof},
	})
	require.Equal(t, http.StatusAccepted, answer.StatusCode, string(body))
	var call protocol.CallResult
	require.NoError(t, json.Unmarshal(body, &call), string(body))
	enrols := flo.waits(call.SessionID)
	require.NotNil(t, enrols.Preview)
	require.Contains(t, enrols.Preview.Title, "Lets the key "+ana.ID()+" sign for ana")
	require.NotContains(t, ana.approves(call.SessionID, enrols), `"accepted"`, "she cannot accept it herself")
	require.Contains(t, flo.approves(call.SessionID, enrols), `"accepted"`)

	require.True(t, eventually(t.Context(), patience, func() bool {
		s, err := v.db.Session(t.Context(), tenant, call.SessionID)
		return err == nil && s.Status == jig.StatusCompleted
	}))
	require.True(t, eventually(t.Context(), patience, func() bool {
		list := get[approvalList](ana.caller, "/v1/approvals?session="+session).Approvals
		return len(list) == 0 || ana.approves(session, list[0]) != ""
	}))
	result := get[protocol.SessionResult](flo.caller, "/v1/sessions/"+session+"/result?wait=30")
	require.Equal(t, jig.StatusCompleted, result.Status)
}
