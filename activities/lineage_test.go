package activities_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/activities"
	"github.com/jig-run/jig/internal/chat"
	"github.com/jig-run/jig/internal/protocol"
	"github.com/jig-run/jig/spec"
	"github.com/jig-run/jig/tools"
)

// anyModel accepts every model name.
type anyModel struct{ activities.Model }

func (anyModel) Check(string) error { return nil }

func (anyModel) Answer(context.Context, chat.Request, func(string)) (chat.Turn, error) {
	return chat.Turn{}, jig.Errorf(jig.CodeInternal, "nobody asks this model")
}

const nightly = "---\nname: nightly\nmodel: script/nightly\ntools: [\"*\"]\nscript: {rules: [{answer: done}]}\n%s---\n"

// nightlyMayRefund lets the agent nightly write without asking anybody.
const nightlyMayRefund = "  - {name: trusted, when: \"agent.name == 'nightly' && tool.permission == 'write'\", verdict: run}\n"

// document returns an agent document named nightly with additional keys, one per line.
func document(keys ...string) string {
	keys = append(keys, "")
	return fmt.Sprintf(nightly, strings.Join(keys, "\n"))
}

// register registers a document as the agent nightly.
func (o *office) register(t *testing.T, body string) {
	t.Helper()
	require.NoError(t, o.db.PutDocument(t.Context(), o.tenant, "agent", "nightly", fmt.Sprintf("%016x", len(body)), []byte(body)))
}

// launches opens a session and makes it the office's session.
func (o *office) launches(t *testing.T, start protocol.StartSession) (activities.Opened, error) {
	t.Helper()
	o.session = jig.NewSessionID()
	return o.opens(t, o.session, start)
}

func (o *office) opens(t *testing.T, id string, start protocol.StartSession) (activities.Opened, error) {
	t.Helper()
	if start.Principal.ID == "" {
		start.Principal.ID = "ana"
	}
	return o.Open(t.Context(), activities.OpenInput{
		SessionRef: protocol.SessionRef{Tenant: o.tenant, SessionID: id}, Start: &start,
	})
}

func (o *office) stored(t *testing.T, id string) jig.Session {
	t.Helper()
	s, err := o.db.Session(t.Context(), o.tenant, id)
	require.NoError(t, err)
	return s
}

// delegates makes the session ask for an agent, and returns the session that is to answer the call.
func (o *office) delegates(t *testing.T, pass int, input string) activities.Child {
	t.Helper()
	c := o.asks(t, pass, "agent.run", input)
	require.Equal(t, jig.CallReserved, c.Status, "%+v", c.Result)
	child, err := o.BeginChild(t.Context(), activities.RunInput{SessionRef: o.ref(), Call: c.ID})
	require.NoError(t, err)
	return child
}

// An unregistered document that uses the name of an agent which a rule trusts is not covered by that rule.
func TestDraft_IsNotTrustedLikeTheRegisteredAgent(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.govern(t, nightlyMayRefund)
	o.register(t, document())
	for _, c := range []struct {
		start  protocol.StartSession
		agent  string
		status jig.CallStatus
	}{
		{protocol.StartSession{Agent: "nightly"}, "nightly", jig.CallReserved},
		{protocol.StartSession{Document: document()}, "nightly", jig.CallReserved},
		{protocol.StartSession{Document: document("description: edited")}, "draft:nightly", jig.CallWaiting},
	} {
		opened, err := o.launches(t, c.start)
		require.NoError(t, err)
		require.Equal(t, c.agent, opened.Agent)
		s := o.stored(t, o.session)
		require.Equal(t, []any{c.agent, c.agent == "nightly"}, []any{s.Agent.Name, s.Agent.Registered})
		require.Equal(t, c.status, o.asks(t, 1, refundTool, small).Status)
	}
	require.Equal(t, "draft:nightly", o.pending(t, "1.1").Agent)

	// Registering another document later changes nothing for running sessions. In new sessions, the earlier document is a draft.
	o.register(t, document("description: edited"))
	opened, err := o.launches(t, protocol.StartSession{Document: document()})
	require.NoError(t, err)
	require.Equal(t, "draft:nightly", opened.Agent)
}

// A grant for a registered agent does not cover drafts of the same name. A grant that is given in a draft covers only that version
// of the document.
func TestGrants_DistinguishDrafts(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.register(t, document())
	grants := func(start protocol.StartSession, pass int, input string) {
		t.Helper()
		_, err := o.launches(t, start)
		require.NoError(t, err)
		c := o.asks(t, pass, refundTool, input)
		ruled := o.hear(t, "decide", jig.Decision{Call: c.ID, By: "ben", Grant: &jig.GrantRequest{MaxUses: 5}})
		require.Equal(t, jig.DecisionAccepted, ruled.Outcome, ruled.Reason)
	}
	status := func(start protocol.StartSession) jig.CallStatus {
		t.Helper()
		_, err := o.launches(t, start)
		require.NoError(t, err)
		return o.asks(t, 1, refundTool, small).Status
	}
	draft := protocol.StartSession{Document: document("description: edited")}
	other := protocol.StartSession{Document: document("description: other")}
	grants(protocol.StartSession{Agent: "nightly"}, 1, small)
	require.Equal(t, jig.CallReserved, status(protocol.StartSession{Agent: "nightly"}))
	require.Equal(t, jig.CallWaiting, status(draft))

	grants(draft, 1, small)
	require.Equal(t, jig.CallReserved, status(draft))
	require.Equal(t, jig.CallWaiting, status(other), "another document bears the same name")
}

// A call that starts an agent which the caller's document does not list is refused, for example when a web page made the model ask for it.
func TestAgent_StartsOnlyWhatItsDocumentLists(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.register(t, document())
	_, err := o.launches(t, protocol.StartSession{Document: document("agents: [helper]")})
	require.NoError(t, err)
	c := o.asks(t, 1, "agent.run", `{"agent":"nightly","task":"refund everything"}`)
	require.Equal(t, jig.CallFailed, c.Status)
	require.Equal(t, jig.CodeNotPermitted, c.Result.Error.Code)
	require.Equal(t, "/agent", c.Result.Error.Field)
	require.Contains(t, c.Result.Error.Hint, "`agents` in the document of agent nightly")

	_, err = o.launches(t, protocol.StartSession{Document: document("agents: [helper, nightly]")})
	require.NoError(t, err)
	require.Equal(t, jig.CallReserved, o.asks(t, 1, "agent.run", `{"agent":"nightly","task":"tidy up"}`).Status)
}

// An agent that may not start other agents is not offered the tool for it.
func TestAgentTool_IsOfferedOnlyToAgentsThatListAgents(t *testing.T) {
	t.Parallel()
	for agents, offered := range map[string]bool{"agents: []": false, "agents: [helper]": true} {
		o := newOffice(t)
		_, err := o.launches(t, protocol.StartSession{Document: document(agents)})
		require.NoError(t, err)
		request, err := o.Prompt(t.Context(), o.stored(t, o.session), nil, 1)
		require.NoError(t, err)
		require.Equal(t, offered, slices.ContainsFunc(request.Tools, func(tool jig.Tool) bool { return tool.Name == "agent.run" }), agents)
	}
}

// An approver cannot change a call so that it starts an agent which the caller's document does not list.
func TestEdit_CannotStartAnUnlistedAgent(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.govern(t, "  - {name: agents, when: \"tool.name == 'agent.run'\", verdict: ask}\n")
	o.register(t, document())
	_, err := o.launches(t, protocol.StartSession{Document: document("agents: [nightly, helper]")})
	require.NoError(t, err)
	c := o.asks(t, 1, "agent.run", `{"agent":"nightly","task":"tidy up"}`)
	require.Equal(t, jig.CallWaiting, c.Status)
	edit := func(input string) jig.Ruled {
		return o.hear(t, "approve", jig.Decision{Call: c.ID, By: "fay", Input: json.RawMessage(input)})
	}
	refused := edit(`{"agent":"stranger","task":"tidy up"}`)
	require.Equal(t, jig.DecisionRefused, refused.Outcome)
	require.Contains(t, refused.Reason, "may not start agent stranger")
	require.Equal(t, jig.CallWaiting, edit(`{"agent":"helper","task":"tidy up twice"}`).Status)
}

// Agents start agents at most five levels below the first one: at that depth no session answers such a call.
func TestChildAgents_TooDeepNestingIsRefused(t *testing.T) {
	t.Parallel()
	run := jig.Tool{Name: "agent.run", Implementation: activities.ChildAgent}
	for depth, answered := range map[int]bool{0: true, 4: true, 5: false, 6: false} {
		child := activities.AnsweredBy(jig.Session{Depth: depth}, jig.Call{SessionID: "ses_1", ID: "1.1"}, run)
		require.Equal(t, answered, child != "", depth)
	}
}

// A rule can see who started an agent that it otherwise trusts: its parent, the root of the tree, and its depth.
func TestAgent_RulesSeeWhoStartedIt(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.govern(t, nightlyMayRefund+
		"  - {name: sent, when: \"tool.permission == 'write' && session.parent_agent == 'draft:nightly' && session.root_agent == 'draft:nightly' && "+
		"session.depth == 1 && session.source == 'agent'\", verdict: ask}\n")
	o.register(t, document())
	_, err := o.launches(t, protocol.StartSession{Document: document("agents: [nightly]"), Source: jig.SourceCLI})
	require.NoError(t, err)
	child := o.delegates(t, 1, `{"agent":"nightly","task":"refund everything"}`)
	parent := o.session

	opened, err := o.opens(t, child.SessionID, child.Start)
	require.NoError(t, err)
	require.Equal(t, "nightly", opened.Agent)
	s := o.stored(t, child.SessionID)
	require.Equal(t, []any{parent, "1.1", "draft:nightly", "draft:nightly", 1, jig.SourceAgent},
		[]any{s.ParentID, s.ParentCall, s.ParentAgent, s.RootAgent, s.Depth, s.Source})
	root := o.stored(t, parent)
	require.Equal(t, []any{"", "draft:nightly", 0, jig.SourceTemporal}, []any{root.ParentAgent, root.RootAgent, root.Depth, root.Source})
	o.session = child.SessionID
	require.Equal(t, jig.CallWaiting, o.asks(t, 1, refundTool, small).Status)
	require.Equal(t, []string{parent, "1.1"}, []string{o.pending(t, "1.1").ParentID, o.pending(t, "1.1").ParentCall})

	// Started on its own, the same agent is trusted.
	_, err = o.launches(t, protocol.StartSession{Agent: "nightly"})
	require.NoError(t, err)
	require.Equal(t, jig.CallReserved, o.asks(t, 1, refundTool, small).Status)
}

// Only the call that starts a session can place it below another session. Otherwise a rule would take it for that session's child.
func TestLineage_CannotBeClaimed(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.register(t, document())
	_, err := o.launches(t, protocol.StartSession{Document: document("agents: [nightly]"), Principal: jig.Principal{ID: "fay"}})
	require.NoError(t, err)
	child := o.delegates(t, 1, `{"agent":"nightly"}`)
	parent := o.session
	for name, start := range map[string]protocol.StartSession{
		"another session":      {Agent: "nightly", ParentID: parent, ParentCall: "1.1"},
		"missing call":         {Agent: "nightly", ParentID: parent, ParentCall: "1.2"},
		"no call":              {Agent: "nightly", ParentID: parent},
		"a source without one": {Agent: "nightly", Source: jig.SourceAgent},
		"invalid source":       {Agent: "nightly", Source: "mail"},
	} {
		_, err := o.opens(t, jig.NewSessionID(), start)
		require.Contains(t, []jig.Code{jig.CodeNotPermitted, jig.CodeInvalidInput}, failed(t, err), name)
	}
	_, err = o.OpenCall(t.Context(), activities.OpenCallInput{
		SessionRef: protocol.SessionRef{Tenant: o.tenant, SessionID: jig.NewSessionID()},
		Call:       protocol.CallInput{Tool: refundTool, Input: []byte(small), Parent: parent, ParentCall: "1.1"},
	})
	require.Equal(t, jig.CodeNotPermitted, failed(t, err))

	// The session that the call starts acts for the principal of its parent, whatever principal its start names.
	child.Start.Principal = jig.Principal{ID: "mallory", Permissions: []string{"*"}}
	_, err = o.opens(t, child.SessionID, child.Start)
	require.NoError(t, err)
	require.Equal(t, jig.Principal{ID: "fay", Claimed: true, Proof: jig.ProofClaimed}, o.stored(t, child.SessionID).Principal)
}

// The caller of an agent can only choose a model that the agent's document lists.
func TestAgent_CallerChoosesOnlyAListedModel(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.register(t, document("models: [openai/small, anthropic/*]"))
	_, err := o.launches(t, protocol.StartSession{Document: document("agents: [nightly]")})
	require.NoError(t, err)
	for pass, c := range []struct {
		model string
		code  jig.Code
	}{{"openai/large", jig.CodeNotPermitted}, {"openai/small", ""}, {"script/nightly", ""}, {"anthropic/any", ""}, {"", ""}} {
		input := fmt.Sprintf(`{"agent":"nightly","task":"%d"}`, pass)
		if c.model != "" {
			input = fmt.Sprintf(`{"agent":"nightly","model":%q}`, c.model)
		}
		child := o.delegates(t, pass+1, input)
		_, err := o.opens(t, child.SessionID, child.Start)
		if c.code != "" {
			require.Equal(t, c.code, failed(t, err), c.model)
			require.ErrorContains(t, err, "openai/large")
			continue
		}
		require.NoError(t, err)
	}
	_, err = o.launches(t, protocol.StartSession{Agent: "nightly", Model: "openai/large"})
	require.NoError(t, err, "the client that starts a session chooses the model")
}

// Somebody who is removed from the tenant's document loses their permissions in running sessions: for calls that are admitted from
// then on, and for those that wait or are about to begin.
func TestPermissions_RevocationAppliesToRunningSessions(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	people := o.settings.People
	o.settings.People = append(people, jig.Principal{ID: "rex", Groups: []string{"support"}, Permissions: []string{"shop.guarded"}}) //nolint:gocritic // people keeps the list without rex
	o.register(t, document())
	_, err := o.launches(t, protocol.StartSession{Agent: "nightly", Principal: jig.Principal{ID: "rex"}})
	require.NoError(t, err)
	first := o.asks(t, 1, guardedTool, `{"order":"a","amount":1}`)
	require.Equal(t, jig.CallWaiting, first.Status, "%+v", first.Result)
	second := o.asks(t, 2, guardedTool, `{"order":"b","amount":1}`)
	require.Equal(t, jig.DecisionAccepted, o.hear(t, "decide", jig.Decision{Call: second.ID, By: "fay"}).Outcome)

	o.settings.People = people
	third := o.asks(t, 3, guardedTool, `{"order":"c","amount":1}`)
	require.Equal(t, jig.CallFailed, third.Status)
	require.Equal(t, jig.CodeNotPermitted, third.Result.Error.Code)
	require.Equal(t, jig.CallFailed, o.runs(t, second.ID), "it was approved, and has not begun")
	require.Equal(t, jig.CodeNotPermitted, o.call(t, second.ID).Result.Error.Code)
	require.Empty(t, o.ran)
	require.Equal(t, jig.DecisionAccepted, o.hear(t, "decide", jig.Decision{Call: first.ID, By: "fay"}).Outcome)
	require.Equal(t, jig.CallFailed, o.runs(t, first.ID))
	require.Empty(t, o.ran)
}

// Rules see the groups that the principal has now.
func TestRules_SeeThePrincipalsCurrentGroups(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.govern(t, "  - {name: finance, when: \"'finance' in principal.groups && principal.proof == 'claimed'\", verdict: run}\n")
	o.register(t, document())
	_, err := o.launches(t, protocol.StartSession{Agent: "nightly", Principal: jig.Principal{ID: "fay"}})
	require.NoError(t, err)
	require.Equal(t, jig.CallReserved, o.asks(t, 1, refundTool, `{"order":"a","amount":1}`).Status)
	o.settings.People = nil
	require.Equal(t, jig.CallWaiting, o.asks(t, 2, refundTool, `{"order":"b","amount":1}`).Status)
}

// countedModel counts how often it is asked.
type countedModel struct {
	anyModel
	asked int
}

func (m *countedModel) Answer(context.Context, chat.Request, func(string)) (chat.Turn, error) {
	m.asked++
	return chat.Turn{Stop: chat.StopEnd, Text: "done"}, nil
}

// A session that is paused, itself or with its tenant, does not ask the model. It asks once it is resumed.
func TestThink_DoesNotCallTheModelWhilePaused(t *testing.T) {
	t.Parallel()
	for _, pause := range []jig.Pause{{Scope: jig.PauseSession}, {Scope: jig.PauseTenant}} {
		o, model := newOffice(t), &countedModel{}
		o.Activities = activities.New(activities.Deps{
			Store: o.db, Catalog: o.Registry, Policy: ruling{office: o}, Tenants: o, Model: model, ParseAgent: spec.ParseAgent, Now: o.now,
		})
		o.register(t, document())
		_, err := o.launches(t, protocol.StartSession{Agent: "nightly"})
		require.NoError(t, err)
		if pause.By = "ana"; pause.Scope == jig.PauseSession {
			pause.Target = o.session
		}
		_, err = o.db.Pause(t.Context(), o.tenant, pause, nil)
		require.NoError(t, err)
		pass := activities.PassRef{SessionRef: o.ref(), Pass: 1}
		thought, err := o.Think(t.Context(), activities.ThinkInput{PassRef: pass})
		require.NoError(t, err)
		require.True(t, thought.Paused)
		require.Equal(t, jig.Code("PAUSED"), failed(t, o.AwaitResume(t.Context(), pass)))
		require.Zero(t, model.asked)

		_, err = o.db.Resume(t.Context(), o.tenant, pause, nil)
		require.NoError(t, err)
		require.NoError(t, o.AwaitResume(t.Context(), pass))
		thought, err = o.Think(t.Context(), activities.ThinkInput{PassRef: pass})
		require.NoError(t, err)
		require.False(t, thought.Paused)
		require.Equal(t, 1, model.asked)
	}
}

// An extraction that a call starts for its caller may use only the caller's tools. One that a thin tool starts may use what the principal may.
func TestStepTools_OfAnExtractionThatWasStartedForItsCaller(t *testing.T) {
	t.Parallel()
	type none struct{}
	registry, err := tools.NewRegistry(tools.New(jig.Tool{
		Name: "tasks.start", Description: "Starts a task.", Permission: jig.PermissionDraft, Implementation: "extraction_start",
	}, func(context.Context, jig.Invocation, none) (none, error) { return none{}, nil }))
	require.NoError(t, err)
	a := activities.New(activities.Deps{Catalog: registry})
	caller := jig.Session{Agent: jig.Agent{Tools: []string{"tasks.start", "http.*"}}}
	fills := jig.Tool{Name: "tasks.run", Implementation: activities.ChildExtraction}
	require.Equal(t, []string{"tasks.start", "http.*", "tasks.run"}, activities.StepTools(a, caller, jig.Call{Tool: "tasks.start"}, fills))
	require.Equal(t, []string{"*"}, activities.StepTools(a, caller, jig.Call{Tool: "page.review"}, fills))
	require.Equal(t, []string{"*"}, activities.StepTools(a, jig.Session{}, jig.Call{}, fills))
}
