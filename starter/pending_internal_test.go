package starter

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/protocol"
)

// reviewed is an approval that needs several people.
func reviewed() jig.Pending {
	p := waitingCall()
	p.SessionID, p.RequestedBy, p.Agent, p.NextAt = "ses_1", "ana", "billing", noon.Add(30*time.Minute)
	p.Terms = &jig.Terms{
		Requirements: []jig.Requirement{
			{Rule: "pay/large", Approvers: jig.Approvers{Groups: []string{"finance"}}, Quorum: 2, Escalate: []jig.Escalation{
				{After: jig.Duration(30 * time.Minute), Approvers: jig.Approvers{People: []string{"dora"}}},
			}},
			{Rule: "pay/any", Quorum: 1},
		},
		NotRequester: true, OnExpiry: jig.ExpiryCancel,
	}
	p.Votes = []jig.Vote{{By: "ben", Claimed: true, Counts: []int{0, 1}, At: noon}}
	p.Delegations = []jig.Delegation{{From: "carla", To: "emil", At: noon, Counts: []int{0}}}
	return p
}

func TestPending_ShowsTerms(t *testing.T) {
	t.Parallel()
	p, begun := reviewed(), time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // the time at which jigCLIAt begins
	p.RequestedAt, p.NextAt, p.ExpiresAt = begun, begun.Add(30*time.Minute), begun.Add(7*24*time.Hour)
	got, _ := jigCLIAt(t, &fake{pending: []jig.Pending{p}}, "approvals", "--as", "ben")
	require.Equal(t, 0, got.code, got.stderr)
	require.Equal(t, `ses_1 3.1 file.write waits for approval
  write report.md
    path: report.md
  · a write asks
  requested by ana, agent billing
  needs 2 of group finance (pay/large); after 30m also dora
  needs 1 of anybody (pay/any)
  ana may not decide, having requested it
  if nobody decides in time, the session is canceled
  approved so far by ben (claimed): 1 of 2 approvals by group finance, 1 missing
  carla delegated to emil
  dora may also decide in 30m (`+moment(begun.Add(30*time.Minute))+`)
  expires in 7d (`+moment(begun.Add(7*24*time.Hour))+`)
  answer it with one of:
    temporal workflow signal --workflow-id ses_1 --name approve --input '{"call":"3.1","by":"ben"}'
    jig approve ses_1 3.1 --as ben
    jig deny ses_1 3.1 --reason … --as ben
    jig delegate ses_1 3.1 --to … --as ben
`, got.stdout, "everything is on one stream")
	require.Empty(t, got.stderr)
}

// The commands are those that work for the person who reads them.
func TestPending_Commands(t *testing.T) {
	t.Parallel()
	file, _ := newKey(t, "dora")
	refused := []protocol.Review{{SessionID: "ses_1", Call: "3.1", Refusal: "ana asked for this call and may not decide it"}}
	unsigned := []protocol.Review{{SessionID: "ses_1", Call: "3.1", Refusal: "this tenant accepts only signed decisions", Unsigned: true}}
	for name, row := range map[string]struct {
		reviews  []protocol.Review
		env      map[string]string
		args     []string
		has, not []string
		asked    string
	}{
		"a guessed name": {asked: "ana", has: []string{"jig approve ses_1 3.1 --as ana\n", `"by":"ana"`}},
		"a given name":   {args: []string{"--as", "ben"}, asked: "ben", has: []string{"jig approve ses_1 3.1 --as ben\n"}},
		"a name in the environment": {
			env: map[string]string{"JIG_PRINCIPAL": "ben"}, asked: "ben", has: []string{"jig approve ses_1 3.1\n", `"by":"ben"`},
		},
		"a key": {
			env: map[string]string{signingKeySetting: file}, asked: "dora", has: []string{"jig approve ses_1 3.1\n"}, not: []string{"temporal workflow signal"},
		},
		"a guessed name that may not decide": {
			reviews: refused, asked: "ana", not: []string{"jig approve ses_1 3.1 --as ana", "temporal workflow signal", "answer it with"},
			has: []string{"\n  ana asked for this call and may not decide it\n  if you are not ana, say who you are:\n    jig approve ses_1 3.1 --as …\n"},
		},
		"a given name that may not decide": {
			reviews: refused, args: []string{"--as", "ana"}, asked: "ana", has: []string{"\n  ana asked for this call and may not decide it\n"},
			not: []string{"jig approve", "temporal workflow signal", "if you are"},
		},
		"no key where one is needed": {
			reviews: unsigned, asked: "ana", has: []string{"accepts only signed decisions\n    jig approve ses_1 3.1 --key …\n"}, not: []string{"temporal workflow signal", "--as"},
		},
	} {
		f := &fake{pending: []jig.Pending{reviewed()}, reviewFakes: reviewFakes{reviews: row.reviews}}
		got := jigCLI(t, f, func(a *app) {
			for key, value := range row.env {
				a.env[key] = value
			}
		}, append([]string{"approvals"}, row.args...)...)
		require.Equal(t, 0, got.code, got.stderr)
		require.Equal(t, row.asked, f.reviewed, name)
		for _, text := range row.has {
			require.Contains(t, got.stdout, text, name)
		}
		for _, text := range row.not {
			require.NotContains(t, got.stdout, text, name)
		}
	}
}

// If nothing is known about the user's rights, for example because the worker is older, the card is shown without.
func TestPending_WithoutReviews(t *testing.T) {
	t.Parallel()
	f := &fake{pending: []jig.Pending{reviewed()}}
	f.failing = jig.Errorf(jig.CodeInternal, "unable to find activityType=jig.review")
	got := jigCLI(t, f, nil, "approvals")
	require.Equal(t, 0, got.code, got.stderr)
	require.Contains(t, got.stdout, "jig approve ses_1 3.1 --as ana\n")
}

func TestPending_SaysWhatPolicyDemandsToday(t *testing.T) {
	t.Parallel()
	terms := &jig.Terms{NotRequester: true, Requirements: []jig.Requirement{{Rule: "cms/publish", Approvers: jig.Approvers{Groups: []string{"editors"}}, Quorum: 2}}}
	p := reviewed()
	for want, r := range map[string]protocol.Review{
		"":                            {},
		"it would run without asking": {Today: jig.VerdictRun},
		"it would be denied":          {Today: jig.VerdictDeny},
		"anybody may decide":          {Today: jig.VerdictAsk},
		"anybody may decide; ana may not decide, having requested it":                     {Today: jig.VerdictAsk, Terms: &jig.Terms{NotRequester: true}},
		"needs 2 of group editors (cms/publish); ana may not decide, having requested it": {Today: jig.VerdictAsk, Terms: terms},
	} {
		text := newApp("jig", nil, nil, nil, nil).cardText(palette{}, card{Pending: p, review: r})
		if want == "" {
			require.NotContains(t, text, "today's policy")
			continue
		}
		require.Contains(t, text, "\n  terms of "+clock(noon, time.Now())+"; by today's policy: "+want, "and nothing after it")
		require.True(t, strings.HasSuffix(text, want), text)
	}
}

func TestFromNow_RoundsToOneUnit(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"in 7d": 7*24*time.Hour - time.Second, "in 2d": 36 * time.Hour, "in 35h": 35*time.Hour + 29*time.Minute, "in 90m": 89*time.Minute + 40*time.Second,
		"in 2h": 90 * time.Minute, "in 89s": 89 * time.Second, "in 2m": 90 * time.Second, "in 0s": 0, "3h ago": -3 * time.Hour,
	} {
		require.Equal(t, want, fromNow(noon.Add(d), noon))
	}
	require.Equal(t, noon.Local().Format("15:04"), clock(noon, noon.Add(time.Minute)))
	require.Equal(t, noon.Local().Format("2006-01-02 15:04"), clock(noon, noon.Add(48*time.Hour)))
}

func TestPending_Facts(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(p *jig.Pending)
		has    string
	}{
		"anybody":    {func(p *jig.Pending) { p.Terms = nil }, "anybody may decide"},
		"nobody":     {func(p *jig.Pending) { p.RequestedBy = "" }, "the requester may not decide, having requested it"},
		"reminder":   {func(p *jig.Pending) { p.NextAt = noon.Add(time.Minute) }, " ago (" + moment(noon.Add(time.Minute)) + ")"},
		"fails":      {func(p *jig.Pending) { p.Terms.OnExpiry = jig.ExpiryFail }, "if nobody decides in time, the session fails"},
		"no agent":   {func(p *jig.Pending) { p.Agent = jig.CallAgent }, "requested by ana, without an agent"},
		"one line":   {func(p *jig.Pending) { p.Agent = "a\n\x1b[31mb" }, "agent a [31mb"},
		"enough":     {func(p *jig.Pending) { p.Terms = nil }, ": nothing is missing"},
		"reconciler": {func(p *jig.Pending) { p.Kind = jig.PendingReconcile }, "needs 2 of group finance"},
	} {
		p := reviewed()
		tt.change(&p)
		require.Contains(t, newApp("jig", nil, nil, nil, nil).cardText(palette{}, card{Pending: p}), tt.has, name)
	}
	p := waitingCall()
	p.Kind = jig.PendingReconcile
	text := newApp("jig", nil, nil, nil, nil).cardText(palette{}, card{Pending: p})
	require.Contains(t, text, "3.1 file.write: outcome unknown")
	require.NotContains(t, text, "anybody may decide", "the tenant's settings decide, which the command does not know")
}

func TestPending_ShowsQuestions(t *testing.T) {
	t.Parallel()
	p := waitingCall()
	p.Kind, p.Tool, p.SessionID = jig.PendingQuestion, "person.ask", "ses_1"
	p.Question = &jig.Question{Text: "Which one?\nSay \x1b[31mso.", Options: values(`{"id": 7}`, `null`), Schema: json.RawMessage(`{"type":["object","null"]}`)}
	got := jigCLI(t, &fake{pending: []jig.Pending{p}}, nil, "approvals")
	require.Contains(t, got.stdout, "3.1 person.ask asks a person\n  │ Which one?\n  │ Say  [31mso.\n    1. {\"id\": 7}\n    2. null\n"+
		"  answer schema: {\"type\":[\"object\",\"null\"]}\n")
	require.NotContains(t, got.stdout, "path: report.md", "the question replaces the input")
	require.Contains(t, got.stdout, `jig answer ses_1 3.1 '{"id": 7}|null' --as ana`)
	require.Contains(t, got.stdout, "jig deny ses_1 3.1 --reason … --as ana")
}

func TestEventLine_SummarizesApprovals(t *testing.T) {
	t.Parallel()
	until, err := time.Parse(time.RFC3339, "2026-01-03T12:00:00Z")
	require.NoError(t, err)
	for name, tt := range map[string]struct {
		kind jig.EventType
		data string
		want string
	}{
		"voted": {
			jig.EventApprovalVoted, `{"by":"ben","claimed":true,"note":"","digest":"d","missing":"1 of 2 approvals by group finance, 1 missing"}`,
			"approved in part · 1 of 2 approvals by group finance, 1 missing (by ben, claimed)",
		},
		"delegated":  {jig.EventApprovalDelegated, `{"by":"ana","claimed":false,"to":"ben","note":"he knows"}`, "approval delegated · to ben: he knows (by ana)"},
		"taken back": {jig.EventApprovalDelegated, `{"by":"ana","from":"ben","note":"I am back"}`, "approval delegated · taken back from ben: I am back (by ana)"},
		"vouched":    {jig.EventToolApproved, `{"by":"ben","claimed":false,"proof":"vouched","key":"srv_9532f35f"}`, "approved · by ben (vouched by srv_9532f35f)"},
		"signed":     {jig.EventApprovalVoted, `{"by":"ben","claimed":false,"proof":"key","key":"ben-1","missing":"1 missing"}`, "1 missing (by ben, signed with key ben-1)"},
		"no note":    {jig.EventApprovalDelegated, `{"by":"ana","to":"ben"}`, "approval delegated · to ben (by ana)"},
		"reminded":   {jig.EventApprovalReminded, `{"due":"2026-01-02T12:00:00Z","missing":"0 of 1 approvals by ben, 1 missing"}`, "still waits for approval · 0 of 1 approvals by ben, 1 missing"},
		"escalated":  {jig.EventApprovalEscalated, `{"missing":"m","approvers":{"people":["dora"],"groups":["leads"]}}`, "more people may approve · now also dora or group leads"},
		"edited":     {jig.EventToolEdited, `{"by":"ana","edited":{"before":{},"after":{"n":1}},"missing":"0 of 1 approvals by ben, 1 missing"}`, `changed: waits for a new approval · changed to {"n":1}; 0 of 1 approvals by ben, 1 missing (by ana)`},
		"approved":   {jig.EventToolApproved, `{"by":"ana","edited":{"after":{"n":1}}}`, `approved · changed to {"n":1} (by ana)`},
		"covered":    {jig.EventToolApproved, `{"grant":"grt_1","digest":"d"}`, "approved · covered by grt_1"},
		"asked":      {jig.EventToolAsked, `{"kind":"question","summary":"cut","question":{"question":"Which one?"}}`, "asks a person · Which one?"},
		"answered":   {jig.EventToolAnswered, `{"by":"ana","claimed":true,"note":"","value":"the red one"}`, "answered · the red one (by ana, claimed)"},
		"a number":   {jig.EventToolAnswered, `{"by":"ana","value":7}`, "answered · 7 (by ana)"},
		"grant":      {jig.EventGrantCreated, `{"grant":"grt_1","by":["ana","ben"],"agent":"docs","when":"true","max_uses":1,"expires_at":"2026-01-03T12:00:00Z"}`, "standing approval given · grt_1: 1 call until " + moment(until) + " (by ana, ben)"},
		"grant when": {jig.EventGrantCreated, `{"grant":"grt_1","by":["ana"],"when":"input.n < 3","max_uses":3,"expires_at":"2026-01-03T12:00:00Z"}`, "3 calls until " + moment(until) + ", when input.n < 3 (by ana)"},
		"grant used": {jig.EventGrantUsed, `{"grant":"grt_1","by":["ana","ben"],"used":2,"max_uses":10}`, "standing approval used · grt_1: 2 of 10 calls (by ana, ben)"},
		"paused":     {jig.EventSessionPaused, `{"by":"ana","claimed":true,"reason":"look first"}`, "session paused · look first (by ana, claimed)"},
		"resumed":    {jig.EventSessionResumed, `{"by":"ana","claimed":false,"reason":""}`, "session resumed · by ana"},
		"odd data":   {jig.EventApprovalVoted, `{"by":7}`, "approved in part"},
		"model": {
			jig.EventModelWaiting, `{"code":"RATE_LIMITED","message":"slow down","attempt":1,"next_attempt_at":"2026-01-03T12:00:00Z"}`,
			"waits for the model's provider · slow down; asked again at " + until.Local().Format(time.TimeOnly),
		},
		"custom": {jig.EventCustom + "sent", `{"to":5,"value":"x","summary":"three letters"}`, "custom sent · three letters"},
	} {
		line := newApp("jig", nil, nil, nil, nil).eventLine(palette{}, jig.Event{Type: tt.kind, At: noon, Data: json.RawMessage(tt.data)})
		require.Contains(t, line, tt.want, name)
		require.NotContains(t, line, "\n", name)
	}
}
