package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/api"
	"github.com/jig-run/jig/internal/protocol"
)

// members are the people of a tenant and a program, each with a key for the tenant's server, which vouches for their requests.
type members struct {
	tenantEnv
	server *serverProcess
	keys   map[string]string
}

const membersDocument = `kind: tenant
name: %s
people:
  - {id: ana, groups: [staff]}
  - {id: ben, groups: [staff]%s}
  - {id: carol, groups: [staff]}
`

func newMembers(t *testing.T) members {
	t.Helper()
	d := newTestEnv(t)
	made := d.jig("server-key", "setup", "--out", "server.key", "--root-out", "root.pub")
	require.Zero(t, made.code, made.err)
	d.env = append(d.env, "JIG_ROOT_KEY_FILE="+filepath.Join(d.dir, "root.pub"))
	d.start()
	require.NoError(t, d.answers())
	o := tenantEnv{testEnv: d, tenant: "staff-" + d.name[:8]}
	o.install("tenant.yaml", fmt.Sprintf(membersDocument, o.tenant, ""), o.trusting)
	o.listsPeople()
	s := members{tenantEnv: o, server: o.serve("JIG_SERVER_KEY=" + filepath.Join(o.dir, "server.key")), keys: map[string]string{}}
	for _, who := range []string{"ana", "ben", "carol"} {
		s.keys[who] = s.key(who, "read", "run", "decide", "manage")
	}
	s.keys["ci"] = s.key("ci", "read", "run")
	return s
}

// listsPeople waits until the worker knows that the tenant has several people.
func (o tenantEnv) listsPeople() {
	o.t.Helper()
	require.True(o.t, eventually(o.t.Context(), patience, func() bool {
		asked := o.trigger("catalog.put", map[string]any{"documents": []map[string]string{{"path": "both.yaml", "body": bothDecide}}})
		waits := o.waiting(asked.SessionID).Pending[0]
		o.decided(asked.SessionID, jig.Decision{Call: "1.1", By: "ana", Answer: jig.AnswerDeny})
		return waits.Terms != nil && waits.Terms.NotRequester
	}))
}

// key makes a key as the installation's operator.
func (s members) key(principal string, scopes ...string) string {
	args := []string{"--principal", principal}
	for _, scope := range scopes {
		args = append(args, "--scope", scope)
	}
	return s.apiKey(s.tenant, args...)
}

func (s members) as(who string) apiClient { return apiClient{s.server, s.keys[who]} }

// posts makes a request and returns its status and its answer.
func (s members) posts(who, path string, body any) (int, string) {
	answer, text := s.as(who).send(http.MethodPost, path, body)
	return answer.StatusCode, string(text)
}

// begins starts an agent as somebody and returns the full id of the session.
func (s members) begins(who, id, document string) string {
	s.t.Helper()
	status, body := s.posts(who, "/v1/sessions", map[string]any{"id": id, "document": document, "task": "Do it."})
	require.Equal(s.t, http.StatusCreated, status, body)
	return jig.SessionID(s.tenant, id)
}

// approves decides about the call that waits in a session, and returns what became of the decision.
func (s members) approves(who, session string, more map[string]any) (r jig.Ruled) {
	s.t.Helper()
	asked := s.as(who).waits(session)
	decision := map[string]any{"call": asked.Call, "answer": "approve", "digest": asked.Digest}
	for name, value := range more {
		decision[name] = value
	}
	status, body := s.posts(who, "/v1/approvals/"+session+"/decision", decision)
	if status == http.StatusForbidden || status == http.StatusConflict {
		var refused api.Problem
		require.NoError(s.t, json.Unmarshal([]byte(body), &refused), body)
		return jig.Ruled{Call: asked.Call, Outcome: refused.Outcome, Reason: refused.Reason, Status: refused.CallStatus}
	}
	require.Equal(s.t, http.StatusOK, status, body)
	require.NoError(s.t, json.Unmarshal([]byte(body), &r), body)
	return r
}

// echoing is an agent that writes what it is told in a message.
const echoing = `    - when: messages.size() == 1
      answer: "What shall I write?"
    - when: calls.size() == 0
      calls: [{tool: file.write, input: {path: told.txt, content: "${messages[messages.size()-1].text}"}}]
    - answer: "it is written"
`

// Whoever wrote a message that a call rests on does not approve the call; somebody else does.
func TestAlone_TheAuthorOfAMessage(t *testing.T) {
	t.Parallel()
	s := newMembers(t)
	id := s.begins("ci", "told", agent(`["file.write"]`, echoing))
	s.until(id, func(v jig.SessionView) bool { return v.Status == jig.StatusCompleted })
	status, body := s.posts("ana", "/v1/sessions/"+id+"/messages", map[string]any{"text": "what ana wants to be written"})
	require.Less(t, status, 300, body)
	refused := s.approves("ana", id, nil)
	require.Equal(t, jig.DecisionRefused, refused.Outcome)
	require.Contains(t, refused.Reason, "ana")
	require.NoFileExists(t, s.workdir("told.txt"))
	require.Equal(t, jig.DecisionAccepted, s.approves("ben", id, nil).Outcome)
	s.until(id, func(jig.SessionView) bool { _, err := os.Stat(s.workdir("told.txt")); return err == nil })
}

// Whoever writes to a session that is paused when it begins is the author of what it then asks for, although that is its first pass.
func TestAlone_TheAuthorOfAMessageDuringAPause(t *testing.T) {
	t.Parallel()
	s := newMembers(t)
	status, body := s.posts("ana", "/v1/pauses", map[string]any{"scope": "tenant"})
	require.Equal(t, http.StatusOK, status, body)
	id := s.begins("ci", "paused", agent(`["file.write"]`, echoing))
	s.until(id, func(jig.SessionView) bool { return len(s.eventsOf(id, jig.EventPassStarted)) == 1 })
	status, body = s.posts("ana", "/v1/sessions/"+id+"/messages", map[string]any{"text": "what ana wants to be written"})
	require.Less(t, status, 300, body)
	s.until(id, func(jig.SessionView) bool { return len(s.eventsOf(id, jig.EventMessageAdded)) == 2 })
	status, body = s.posts("ana", "/v1/pauses:resume", map[string]any{"scope": "tenant"})
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, jig.DecisionRefused, s.approves("ana", id, nil).Outcome)
	require.NoFileExists(t, s.workdir("told.txt"))
}

// obeying is an agent that writes a file, and then another one with what it was told about the first.
const obeying = `    - when: pass == 1
      calls: [{tool: file.write, input: {path: first.txt, content: hello}}]
    - when: pass == 2
      calls: [{tool: file.write, input: {path: told.txt, content: "${calls[0].success ? calls[0].input.content : calls[0].error.message}"}}]
    - answer: "it is written"
`

// Whoever says why they deny a call, or changes its arguments, does not alone approve a later call that follows from it.
func TestAlone_TheReviewer(t *testing.T) {
	t.Parallel()
	s := newMembers(t)
	s.reviews("denied", func(id string) {
		s.approves("ana", id, map[string]any{"answer": "deny", "reason": "write what ana wants"})
	})
	s.reviews("changed", func(id string) {
		s.approves("ana", id, map[string]any{"input": map[string]any{"path": "first.txt", "content": "what ana wants"}})
		s.approves("ben", id, nil)
	})
}

// reviews has somebody decide about the first call of an agent, and checks that ana does not alone approve the second one.
func (s members) reviews(name string, first func(id string)) {
	s.t.Helper()
	id := s.begins("ci", name, agent(`["file.write"]`, obeying))
	s.as("ana").waits(id)
	first(id)
	second := func(v jig.SessionView) bool { return len(v.Pending) == 1 && v.Pending[0].Call == "2.1" }
	require.Contains(s.t, string(s.until(id, second).Pending[0].Input), "what ana wants")
	require.Equal(s.t, jig.CallWaiting, s.approves("ana", id, nil).Status, name)
	require.Equal(s.t, jig.CallReserved, s.approves("ben", id, nil).Status, name)
}

const staffDecide = `kind: policy
name: staff
rules:
  - {name: staff, when: "tool.name == 'file.write'", verdict: ask, approvers: {groups: [staff]}}
`

// A call that everybody asked for has nobody left to approve it, and ends at once.
func TestAlone_EverybodyAsked(t *testing.T) {
	t.Parallel()
	s := newMembers(t)
	s.install("staff.yaml", staffDecide, func(id string) { s.approves("ana", id, nil) })
	s.ruledBy(staffDecide)
	id := s.begins("ci", "all", agent(`["file.write"]`, strings.Replace(echoing, "messages.size() == 1", "messages.size() < 4", 1)))
	for i, who := range []string{"ana", "ben", "carol"} {
		s.until(id, func(v jig.SessionView) bool { return v.Status == jig.StatusCompleted && v.Pass == i+1 })
		status, body := s.posts(who, "/v1/sessions/"+id+"/messages", map[string]any{"text": "what " + who + " wants"})
		require.Less(t, status, 300, body)
	}
	s.until(id, func(jig.SessionView) bool { return len(s.eventsOf(id, jig.EventToolDenied)) == 1 })
	require.Contains(t, string(s.eventsOf(id, jig.EventToolDenied)[0].Data), "no_independent_approver")
	require.NoFileExists(t, s.workdir("told.txt"))
}

// A standing approval lets nothing run that the person who gave it asks for.
func TestAlone_TheGiverOfAGrant(t *testing.T) {
	t.Parallel()
	s := newMembers(t)
	given := s.approves("ana", s.writes("ci", "first"), map[string]any{"grant": map[string]any{"tool": "file.write", "when": "true", "max_uses": 50}})
	require.Equal(t, jig.DecisionAccepted, given.Outcome)
	covered, err := s.WaitCall(t.Context(), s.tenant, s.writes("ci", "covered"))
	require.NoError(t, err)
	require.Equal(t, jig.CallSucceeded, covered.Status)
	s.as("ben").waits(s.writes("ana", "own"))
	require.NoFileExists(t, s.workdir("own.txt"))
}

// writes asks for a call that writes a file, and returns the call's session.
func (s members) writes(who, name string) string {
	s.t.Helper()
	status, body := s.posts(who, "/v1/tools/file.write/calls", map[string]any{"id": name, "input": map[string]any{"path": name + ".txt", "content": "x"}})
	require.Less(s.t, status, 300, body)
	var call protocol.CallResult
	require.NoError(s.t, json.Unmarshal([]byte(body), &call), body)
	return call.SessionID
}

// Whoever changes the arguments of a call does not approve it alone.
func TestAlone_TheEditor(t *testing.T) {
	t.Parallel()
	s := newMembers(t)
	id := s.begins("ci", "edited", writer())
	edit := map[string]any{"input": map[string]any{"path": "anas.txt", "content": "what ana wants"}}
	require.Equal(t, jig.DecisionAccepted, s.approves("ana", id, edit).Outcome)
	require.Contains(t, string(s.as("ben").waits(id).Input), "anas.txt")
	require.NotEqual(t, jig.CallReserved, s.approves("ana", id, nil).Status)
	require.NoFileExists(t, s.workdir("anas.txt"))
	require.Equal(t, jig.DecisionAccepted, s.approves("ben", id, nil).Outcome)
	s.until(id, func(v jig.SessionView) bool { return v.Status == jig.StatusCompleted })
	require.Equal(t, "what ana wants", s.wrote("anas.txt"))
}

// Nobody gets a credential of somebody whom the tenant's document lists, or of a name that looks like theirs; a key ends with the key that made it.
func TestAlone_TheMakerOfKeys(t *testing.T) {
	t.Parallel()
	s := newMembers(t)
	status, body := s.posts("ben", "/v1/api-keys", map[string]any{"principal": "carol"})
	require.Equal(t, http.StatusForbidden, status, body)
	for _, name := range []string{"\u0430na", "ana\u200b", "ana ", "Ana"} {
		status, body = s.posts("ben", "/v1/api-keys", map[string]any{"principal": name})
		require.GreaterOrEqual(t, status, 400, "%q: %s", name, body)
		require.Less(t, status, 500, "%q: %s", name, body)
	}
	var parent, child struct{ ID, Key string }
	s.makes("ben", map[string]any{"scopes": []string{"read", "manage"}}, &parent)
	s.keys["parent"] = parent.Key
	s.makes("parent", map[string]any{"scopes": []string{"read"}}, &child)
	made := apiClient{s.server, child.Key}
	require.Equal(t, "ben", get[whoami](made, "/v1/me").Principal)
	status, body = s.posts("ben", "/v1/api-keys/"+parent.ID+"/revoke", nil)
	require.Less(t, status, 300, body)
	require.True(t, eventually(t.Context(), patience, func() bool {
		answer, _ := made.send(http.MethodGet, "/v1/me", nil)
		return answer.StatusCode == http.StatusUnauthorized
	}), "a key outlives the key that made it")
}

func (s members) makes(who string, request map[string]any, into any) {
	s.t.Helper()
	status, body := s.posts(who, "/v1/api-keys", request)
	require.Equal(s.t, http.StatusCreated, status, body)
	require.NoError(s.t, json.Unmarshal([]byte(body), into), body)
}

// Whoever may only run does not delete somebody's schedule, and triggers no session that acts for them.
func TestAlone_WhoeverTriggersASchedule(t *testing.T) {
	t.Parallel()
	s := newMembers(t)
	status, body := s.posts("carol", "/v1/schedules", map[string]any{
		"name": "payroll", "every": "24h", "tool": "file.write", "input": map[string]any{"path": "payroll.txt", "content": "pay"},
	})
	require.Equal(t, http.StatusCreated, status, body)
	defer s.as("carol").send(http.MethodDelete, "/v1/schedules/payroll", nil)
	answer, text := s.as("ci").send(http.MethodDelete, "/v1/schedules/payroll", nil)
	require.Equal(t, http.StatusForbidden, answer.StatusCode, string(text))
	status, body = s.posts("ci", "/v1/schedules/payroll/trigger", nil)
	require.Less(t, status, 300, body)
	var asked jig.Pending
	require.True(t, eventually(t.Context(), patience, func() bool {
		list := get[approvalList](s.as("ben"), "/v1/approvals").Approvals
		if len(list) == 1 {
			asked = list[0]
		}
		return len(list) == 1
	}))
	require.Equal(t, "ci", asked.RequestedBy)
}

// Whoever runs a session cannot lift a pause that a reviewer set, by either of the two routes.
func TestAlone_WhoeverIsPaused(t *testing.T) {
	t.Parallel()
	s := newMembers(t)
	id := s.begins("ci", "paused", writer())
	s.as("ci").waits(id)
	target := map[string]any{"scope": "session", "target": id}
	status, body := s.posts("ben", "/v1/pauses", target)
	require.Equal(t, http.StatusOK, status, body)
	for path, request := range map[string]any{"/v1/sessions/" + id + "/resume": nil, "/v1/pauses:resume": target} {
		status, body = s.posts("ci", path, request)
		require.Equal(t, http.StatusForbidden, status, "%s: %s", path, body)
	}
	status, body = s.posts("ben", "/v1/sessions/"+id+"/resume", nil)
	require.Equal(t, http.StatusOK, status, body)
}

const bothDecide = `kind: policy
name: both
rules:
  - {name: both, when: "tool.name == 'file.write'", verdict: ask, approvers: {people: [ben, carol]}, quorum: 2}
`

// A delegate's vote stops counting when the person who delegated is disabled.
func TestAlone_TheDelegateOfSomebodyWhoLeft(t *testing.T) {
	t.Parallel()
	s := newMembers(t)
	s.install("both.yaml", bothDecide, func(id string) { s.approves("ana", id, nil) })
	s.ruledBy(bothDecide)
	id := s.begins("ci", "delegated", writer())
	asked := s.as("ben").waits(id)
	status, body := s.posts("ben", "/v1/approvals/"+id+"/delegate", map[string]any{"call": asked.Call, "digest": asked.Digest, "to": "ana"})
	require.Equal(t, http.StatusOK, status, body)
	require.Equal(t, jig.DecisionAccepted, s.approves("ana", id, nil).Outcome)
	s.install("tenant.yaml", fmt.Sprintf(membersDocument, s.tenant, ", disabled: true"), func(id string) { s.approves("carol", id, nil) })
	in := callInput("file.list", map[string]any{"path": "."})
	in.Tenant, in.Principal = s.tenant, jig.Principal{ID: "ben"}
	require.True(t, eventually(t.Context(), patience, func() bool { // the worker reads the document within a second
		_, err := s.Trigger(t.Context(), in, "")
		return jig.CodeOf(err) == jig.CodeNotPermitted
	}))
	require.Equal(t, jig.CallWaiting, s.approves("carol", id, nil).Status)
}

// A decision that says two things is refused, however it is sent, and the call goes on waiting.
func TestDecision_ThatContradictsItself(t *testing.T) {
	t.Parallel()
	s := newMembers(t)
	id := s.begins("ci", "twice", writer())
	asked := s.as("ben").waits(id)
	for _, name := range []string{"answer", "Answer"} {
		text := fmt.Sprintf(`{"call":%q,"by":"ben","answer":"deny",%q:"approve"}`, asked.Call, name)
		s.signal(id, protocol.SignalApprove, json.RawMessage(text))
		text = strings.Replace(text, `"by":"ben",`, `"digest":"`+asked.Digest+`",`, 1)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.server.url+"/v1/approvals/"+id+"/decision", bytes.NewReader([]byte(text)))
		require.NoError(t, err)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+s.keys["ben"])
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Contains(t, []int{http.StatusBadRequest, http.StatusUnprocessableEntity}, answer.StatusCode, text)
	}
	s.until(id, func(jig.SessionView) bool { return len(s.eventsOf(id, jig.EventDecisionRefused)) == 2 })
	require.Equal(t, asked.Call, s.as("ben").waits(id).Call)
	require.NoFileExists(t, s.workdir("note.txt"))
}

// cli runs jig at the server as somebody.
func (s members) cli(who string, args ...string) string {
	s.t.Helper()
	got := s.command("env", append([]string{"JIG_URL=" + s.server.url, "JIG_API_KEY=" + s.keys[who], shared.cli.path(s.t)}, args...)...)
	require.Zero(s.t, got.code, got.err)
	return got.out
}

// What ends with a person can be listed, and somebody else can take it over, so that it goes on when the person has left.
func TestTakeOver_KeepsWhatIsStillNeeded(t *testing.T) {
	t.Parallel()
	s := newMembers(t)
	s.cli("carol", "schedule", "create", "payroll", "--every", "24h", "--tool", "file.write", "--input", "path=payroll.txt", "--input", "content=pay")
	defer s.as("ben").send(http.MethodDelete, "/v1/schedules/payroll", nil)
	var robot struct{ ID, Key string }
	s.makes("carol", map[string]any{"principal": "robot"}, &robot)
	ends := s.cli("ben", "people", "dependents", "carol")
	require.Contains(t, ends, "payroll")
	require.Contains(t, ends, robot.ID)

	renewed := strings.TrimSpace(s.cli("ben", "people", "take-over", robot.ID))
	s.cli("ben", "schedule", "take-over", "payroll")
	ends = s.cli("ben", "people", "dependents", "carol")
	require.NotContains(t, ends, "payroll")
	require.NotContains(t, ends, robot.ID)

	left := strings.Replace(fmt.Sprintf(membersDocument, s.tenant, ""), "{id: carol,", "{id: carol, disabled: true,", 1)
	s.install("tenant.yaml", left, func(id string) { s.approves("ana", id, nil) })
	require.True(t, eventually(t.Context(), patience, func() bool {
		answer, _ := s.as("carol").send(http.MethodGet, "/v1/me", nil)
		return answer.StatusCode >= 400
	}))
	require.Equal(t, "robot", get[whoami](apiClient{s.server, renewed}, "/v1/me").Principal)
	apiClient{s.server, robot.Key}.refuses("carol knows this text")
	s.cli("ben", "schedule", "trigger", "payroll")
	require.True(t, eventually(t.Context(), patience, func() bool {
		list := get[approvalList](s.as("ana"), "/v1/approvals").Approvals
		return len(list) == 1 && list[0].RequestedBy == "ben"
	}))
}
