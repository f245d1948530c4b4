package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/identity/token"
	"github.com/jig-run/jig/internal/protocol"
)

// signer is somebody with an API key and a signing key.
type signer struct {
	apiClient
	tenant string
	token.Signer
}

// person returns somebody with an API key and the signing key of a file of the environment.
func (v *proofEnv) person(server *serverProcess, tenant, name string) signer {
	v.t.Helper()
	private, err := os.ReadFile(filepath.Join(v.dir, name+".key"))
	require.NoError(v.t, err)
	s, err := token.ParsePrivateKey(private, "", name)
	require.NoError(v.t, err)
	return signer{apiClient{server, v.apiKey(tenant, append(everything(), "--principal", name)...)}, tenant, s}
}

// approves sends a signed approval and returns the server's answer.
func (s signer) approves(session string, asked jig.Pending) string {
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

// Ana makes a key with the commands of the page, an owner accepts it, and from then on her signatures count, except while the key is disabled.
func TestProof_APersonEnrolsAKey(t *testing.T) {
	t.Parallel()
	v := newProofEnv(t)
	tenant := v.name + "-enrol"
	made := v.jig("key", "new", "--principal", "flo", "--out", filepath.Join(v.dir, "flo.key"))
	require.Zero(t, made.code, made.err)
	v.demand(tenant, "approvals: {proof: key}\nowners: {people: [flo]}\npeople: [{id: ana}, {id: flo}]\n"+made.out)
	server := v.serveWith("server.key")
	flo := v.person(server, tenant, "flo")
	session := flo.begins("work")

	v.env = append(v.env, "JIG_URL="+server.url, "JIG_API_KEY="+v.apiKey(tenant, everything()...))
	page := v.blocks[slices.IndexFunc(v.blocks, func(block string) bool { return strings.Contains(block, "jig key enrol") })]
	enrolled := make(chan commandResult, 1)
	go func() { enrolled <- v.command("sh", "-ec", page) }()
	var enrols jig.Pending
	require.True(t, eventually(t.Context(), patience, func() bool {
		for _, p := range get[approvalList](flo.apiClient, "/v1/approvals?tool=tenants.enrol_key").Approvals {
			enrols = p
		}
		return enrols.Call != ""
	}))
	ana := v.person(server, tenant, "ana")
	require.Equal(t, "ana", enrols.RequestedBy)
	require.Contains(t, enrols.Preview.Title, "Lets the key "+ana.ID()+" sign for ana")
	require.Contains(t, ana.approves(session, ana.waits(session)), "not one of the tenant's", "the key is not enrolled")
	require.NotContains(t, ana.approves(enrols.SessionID, enrols), `"accepted"`, "she cannot accept it herself")
	require.Contains(t, flo.approves(enrols.SessionID, enrols), `"accepted"`)
	done := <-enrolled
	require.Zero(t, done.code, done.err)
	require.Contains(t, done.out+done.err, ana.ID()+" signs for ana")

	require.True(t, eventually(t.Context(), patience, func() bool {
		return strings.Contains(ana.approves(session, ana.waits(session)), `"accepted"`)
	}))
	result := get[protocol.SessionResult](flo.apiClient, "/v1/sessions/"+session+"/result?wait=30")
	require.Equal(t, jig.StatusCompleted, result.Status)

	tries := 0
	for _, change := range []struct{ action, answer string }{{"disable", "not one of the tenant's"}, {"enable", `"accepted"`}} {
		accepted, body := ana.send(http.MethodPost, "/v1/people:"+change.action, map[string]any{"key": ana.ID()})
		require.Equal(t, http.StatusAccepted, accepted.StatusCode, string(body))
		var call protocol.CallResult
		require.NoError(t, json.Unmarshal(body, &call))
		require.Contains(t, flo.approves(call.SessionID, ana.waits(call.SessionID)), `"accepted"`)
		require.True(t, eventually(t.Context(), patience, func() bool { // workers read the tenant's document within a second
			tries++
			session := flo.begins("work-" + strconv.Itoa(tries))
			return strings.Contains(ana.approves(session, ana.waits(session)), change.answer)
		}), change.action)
	}
}
