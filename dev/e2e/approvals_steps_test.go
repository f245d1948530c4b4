package e2e_test

import (
	"regexp"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
)

// steps describes the commands on the page, in order.
func (m *pageRunner) steps() []step {
	var all []step
	for _, part := range [][]step{m.waitingSteps(), m.decidingSteps(), m.rulingSteps(), m.otherSteps(), m.provingSteps()} {
		all = append(all, part...)
	}
	return all
}

func (m *pageRunner) waitingSteps() []step {
	const comes, shown = "How a call comes to wait", "What is shown"
	hello := m.written("reports/hello.md")
	return []step{
		{comes, nil, 3, func(string) {
			require.NoFileExists(m.t, m.workdir("reports/hello.md"))
		}},
		{shown, hello, 0, nil},
		{shown, hello, 0, m.says("input_required", "file.write")},
		{shown, hello, 0, m.says("waiting", "jig approve")},
		{shown, hello, 0, m.says(`"call":"1.1"`)},
		{shown, nil, 0, nil},
	}
}

func (m *pageRunner) decidingSteps() []step {
	const decide, change = "Approve and deny", "Approve with changes"
	hello := m.written("reports/hello.md")
	approved, again := m.holds("reports/hello.md", "hello"), m.holds("reports/hello.md", "hello, all")
	changed := func(id string) { // the page says that the call asks once more, with the preview of the changed call
		p := m.until(id, func(v jig.SessionView) bool {
			return len(v.Pending) == 1 && strings.Contains(string(v.Pending[0].Input), "hello, all") && v.Pending[0].Preview.Missing == ""
		}).Pending[0]
		require.Equal(m.t, jig.CallReserved, m.decided(id, jig.Decision{Call: p.Call, By: "ana", Answer: jig.AnswerApprove}).Status)
		again(id)
	}
	return []step{
		{decide, hello, 0, approved},
		{decide, hello, 0, approved},
		{decide, hello, 0, func(id string) { m.says("accepted")(id); approved(id) }},
		{decide, hello, 0, m.ends(jig.CallDenied)},
		{decide, hello, 0, m.ends(jig.CallDenied)},
		{decide, m.three, 0, m.answers("2 written")},
		{decide, m.three, 0, m.answers("2 written")},
		{decide, m.three, 0, m.answers("0 written")},
		{change, hello, 0, changed},
		{change, hello, 0, func(id string) {
			changed(id)
			require.Contains(m.t, string(m.eventsOf(id, jig.EventToolEdited)[0].Data), `"path":"/content"`)
		}},
	}
}

func (m *pageRunner) rulingSteps() []step {
	const who = "Who may decide"
	return []step{
		{who, nil, 0, m.ruled},
		{who, m.payroll, 0, m.ends(jig.CallSucceeded)},
		{who, m.payroll, 0, m.waits},
		{who, m.payroll, 0, func(id string) {
			require.True(m.t, eventually(m.t.Context(), patience, func() bool { return len(m.eventsOf(id, jig.EventApprovalDelegated)) == 1 }))
		}},
	}
}

func (m *pageRunner) otherSteps() []step {
	const (
		questions, doubt, grants = "Questions", "Effects in doubt", "Standing approvals"
		pause, refused           = "Hold everything back", "When a decision is refused"
	)
	hello := m.written("reports/hello.md")
	var asked string
	return []step{
		{questions, nil, 3, nil},
		{questions, m.question, 0, m.answered},
		{questions, m.question, 0, m.answered},
		{questions, m.question, 0, m.answered},
		{doubt, m.doubtful, 0, m.ends(jig.CallSucceeded)},
		{doubt, m.doubtful, 0, m.ends(jig.CallSucceeded)},
		{doubt, m.doubtful, 0, m.ends(jig.CallFailed)},
		{doubt, m.doubtfulAgain, 0, m.ends(jig.CallSucceeded)},
		{doubt, m.doubtfulAgain, 0, m.ends(jig.CallSucceeded)},
		{grants, hello, 0, m.granted},
		{grants, hello, 0, m.granted},
		{grants, nil, 3, func(string) { asked = m.asked() }},
		{grants, func() string { return asked }, 0, func(id string) {
			m.ends(jig.CallSucceeded)(id)
			m.answers("3 written")(m.three())
			m.endGrants()
		}},
		{grants, func() string {
			m.tidies()
			m.written("reports/later.md")()  // m.grant writes reports/hello.md, which calls that wait to create it do not outlive
			m.written("reports/latest.md")() // both uses of the grant are spent
			return m.grant()
		}, 0, nil},
		{grants, m.grant, 0, m.says("revoked by")},
		{pause, nil, 0, m.notPaused},
		{pause, hello, 0, m.notPaused},
		{pause, nil, 0, m.notPaused},
		{refused, hello, 1, m.waits},
		{refused, hello, 0, m.refusal},
		{refused, func() string {
			id := hello()
			m.decided(id, jig.Decision{By: "ana", Answer: jig.AnswerApprove, Digest: "0000"})
			return id
		}, 0, m.says("decision refused", "1 row")},
	}
}

func (m *pageRunner) provingSteps() []step {
	const proving, after = "Proving who decides", "Afterwards: who allowed what"
	hello := m.written("reports/hello.md")
	var asked string
	approved, denied := m.proved(jig.EventToolApproved), m.proved(jig.EventToolDenied)
	return []step{
		{proving, nil, 0, func(string) { m.key, m.public = m.made() }},
		{proving, nil, 3, func(string) {
			asked = m.asked()
			waiting := m.waiting(asked).Pending[0]
			require.Contains(m.t, waiting.Reasons, "owners of the tenant decide about catalog.put")
			own := m.decided(asked, jig.Decision{By: waiting.RequestedBy, Answer: jig.AnswerApprove})
			require.Equal(m.t, jig.DecisionRefused, own.Outcome, "the requester may not approve")
		}},
		{proving, func() string { return asked }, 0, func(string) { m.signedNow() }},
		{proving, hello, 1, m.waits},
		{proving, hello, 0, approved},
		{proving, hello, 0, approved},
		{proving, hello, 0, denied},
		{proving, hello, 0, approved},
		{proving, hello, 0, denied},
		{proving, nil, 0, func(string) {
			_, m.operator = m.made()
			m.kill()
			m.env = append(m.env, "JIG_APPROVALS_SIGNALS=signed", "JIG_OPERATOR_KEY=operator:"+m.operator)
			m.start()
		}},
		{proving, nil, 0, m.says("1.1")},
		{after, func() string {
			id := hello()
			m.decided(id, jig.Decision{By: "ana", Answer: jig.AnswerApprove})
			return id
		}, 0, m.says("refused", "ok audit.jsonl")},
		{after, nil, 0, m.says("REVIEWER", "ana")},
	}
}

// asked returns the session of the call that a command left waiting.
func (m *pageRunner) asked() string {
	m.t.Helper()
	id := regexp.MustCompile(`ses_[a-z0-9-]+`).FindString(m.last.out + m.last.err)
	require.NotEmpty(m.t, id)
	return id
}

// signedNow waits until the worker requires a proof.
func (m *pageRunner) signedNow() {
	m.t.Helper()
	require.True(m.t, eventually(m.t.Context(), patience, func() bool {
		id := m.written("reports/hello.md")()
		return m.decided(id, jig.Decision{By: "ana", Answer: jig.AnswerApprove}).Outcome == jig.DecisionRefused
	}), "the document holds within a second")
}
