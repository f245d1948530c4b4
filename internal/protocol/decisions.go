package protocol

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"github.com/jig-run/jig"
)

// Settlement names a call that was settled late, while its workflow considers it unknown and waits for a person.
type Settlement struct {
	Call string `json:"call"`
}

// MaxDecisions is the largest number of decisions in one message. Each is a transaction, and all of them must fit into the time that a
// worker has for one signal; otherwise it would begin again forever.
const MaxDecisions = 500

// Decisions is the payload of the signals approve and deny and of the update decide: one decision, or up to [MaxDecisions] of them. For
// a signal, the signal's name is the answer. In the update, each decision carries its own answer (default: approve).
type Decisions struct {
	jig.Decision
	Decisions []jig.Decision `json:"decisions,omitempty"`
	// Proof says who decides; see [StartSession.Proof]. Decisions that a person signed carry a token instead.
	Proof string `json:"proof,omitempty"`
}

// All returns the decisions as a list. Each of several decisions inherits by, answer, note and reason from the outer object unless
// it sets its own.
func (d Decisions) All() []jig.Decision {
	if len(d.Decisions) == 0 {
		return []jig.Decision{d.Decision}
	}
	list := make([]jig.Decision, len(d.Decisions))
	for i, one := range d.Decisions {
		one.By, one.Answer = cmp.Or(one.By, d.By), cmp.Or(one.Answer, d.Answer)
		one.Note, one.Reason = cmp.Or(one.Note, d.Note), cmp.Or(one.Reason, d.Reason)
		list[i] = one
	}
	return list
}

// Answered is the payload of the signal and the update answer. Proof says who answers; see [Decisions].
type Answered struct {
	jig.Reply
	Proof string `json:"proof,omitempty"`
}

// Content returns what a statement about the answer binds.
func (a Answered) Content() string { return ContentOf(UpdateAnswer, a.Reply) }

// Reconciled is the payload of the signal and the update reconcile. Proof says who knows what happened; see [Decisions].
type Reconciled struct {
	jig.Reconciliation
	Proof string `json:"proof,omitempty"`
}

// Content returns what a statement about the outcome binds.
func (r Reconciled) Content() string { return ContentOf(UpdateReconcile, r.Reconciliation) }

// RuledRequest asks what became of the decisions of an update, whose answer may have got lost. Count is their number, at most [MaxDecisions].
type RuledRequest struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id"`
	Update    string `json:"update"`
	Count     int    `json:"count"`
	// Same has the [Again] of each decision, to find those that an earlier update has sent.
	Same []string `json:"same,omitempty"`
}

// Again returns the key under which the answer to a request that was accepted is also stored, so that its principal finds the answer who sends the
// same [jig.Decision], [jig.Reply] or [jig.Reconciliation] again. Who sends it, and the token that proves that, do not belong to the request.
func Again(principal string, request any) string {
	switch r := request.(type) {
	case jig.Decision:
		r.By, r.Token = "", ""
		request = r
	case jig.Reply:
		r.By, r.Token = "", ""
		request = r
	case jig.Reconciliation:
		r.By, r.Token = "", ""
		request = r
	}
	return "again:" + ContentOf(principal, request)
}

// UpdateKey returns the key under which the decisions of an update are stored.
func UpdateKey(id string) string { return "update:" + id }

// DecisionKey returns the key of one of the decisions of a signal or an update, which has the key of all.
func DecisionKey(all string, i int) string { return all + "#" + strconv.Itoa(i) }

// DecideResult is the answer of the updates decide, answer and reconcile.
type DecideResult struct {
	SessionID string      `json:"session_id"`
	Decisions []jig.Ruled `json:"decisions"`
}

// BacktestResult compares the verdicts on a recorded call with and without a new policy document.
type BacktestResult struct {
	SessionID string    `json:"session_id"`
	Call      string    `json:"call"`
	Tool      string    `json:"tool"`
	At        time.Time `json:"at"`
	// Recorded is the original verdict, Now is the verdict of the current policies, and New is their verdict with the new document. Now and
	// New are empty if the tool is no longer known.
	Recorded jig.Verdict `json:"recorded"`
	Now      jig.Verdict `json:"now,omitempty"`
	New      jig.Verdict `json:"new,omitempty"`
	// Status is the call's status in the ledger.
	Status jig.CallStatus `json:"status"`
	// Rules lists the rules that applied with the new document, as <policy>/<rule>, the strictest first. Reason is the text of the first
	// one.
	Rules  []string `json:"rules,omitempty"`
	Reason string   `json:"reason,omitempty"`
}

// Changed reports whether the new document changes the verdict.
func (r BacktestResult) Changed() bool { return r.Now != r.New }

// BacktestRequest asks how a policy document would have decided the calls since a given time. It returns one page at a time.
type BacktestRequest struct {
	Tenant string `json:"tenant"`
	// Document is the text of a policy document.
	Document string    `json:"document"`
	Since    time.Time `json:"since"`
	Cursor   string    `json:"cursor,omitempty"`
	// All asks for the results of all calls, including those whose verdict the document does not change.
	All bool `json:"all,omitempty"`
}

// BacktestPage is the outcome for a page of recorded calls.
type BacktestPage struct {
	// Results lists the calls whose verdict the document changes (or all calls, if requested) and the calls whose tool is unknown.
	Results []BacktestResult `json:"results" doc:"The calls whose verdict changes, and those whose tool is unknown"`
	// Tally counts all calls that were ruled on.
	Tally []BacktestCount `json:"tally" doc:"How many calls have the same three verdicts"`
	// Refused counts the calls that never reached policy: unknown tools, bad input, duplicates. Unknown counts the calls whose tool is no
	// longer known. Tally includes neither.
	Refused int `json:"refused,omitempty" doc:"Calls that never reached policy"`
	Unknown int `json:"unknown,omitempty" doc:"Calls whose tool is no longer known"`
	// Next is the cursor of the next page. It is empty at the end.
	Next string `json:"next_cursor,omitempty"`
}

// BacktestCount is the number of calls with the same three verdicts.
type BacktestCount struct {
	Recorded jig.Verdict `json:"recorded"`
	Now      jig.Verdict `json:"now"`
	New      jig.Verdict `json:"new"`
	Count    int         `json:"count"`
}

// MaxReviewed is the largest number of calls in a [ReviewRequest].
const MaxReviewed = 50

// ReviewRequest asks what applies now to calls that wait for a person: whether somebody may decide them, and what policy demands today. Only
// the session and the id of each call are read.
type ReviewRequest struct {
	Tenant string `json:"tenant"`
	// For is the principal who would decide.
	For string `json:"for"`
	// Signs reports that the principal would sign the decisions.
	Signs bool          `json:"signs,omitempty"`
	Calls []WaitingCall `json:"calls"`
}

// ReviewList has a review of each call that still waits.
type ReviewList struct {
	Reviews []Review `json:"reviews"`
}

// Review describes what applies now to a call that waits for a person.
type Review struct {
	SessionID string `json:"session_id"`
	Call      string `json:"call"`
	// Conditions are the terms under which the call waits, as sentences for people.
	Conditions []string `json:"conditions,omitempty"`
	// Refusal says why the principal may not decide; empty for somebody who may.
	Refusal string `json:"refusal,omitempty"`
	// Unsigned reports that the principal is refused because decisions must be signed.
	Unsigned bool `json:"unsigned,omitempty"`
	// Today is today's verdict of policy if it demands something else than the terms under which the call waits; empty if it does not. Terms
	// are today's terms if the verdict is ask; nil means one approval by anybody.
	Today jig.Verdict `json:"today,omitempty"`
	Terms *jig.Terms  `json:"terms,omitempty"`
}

// ComparedFor is how long a call that waits for approval is not compared again with what people are shown.
const ComparedFor = time.Minute

// CompareRequest asks to compare a call that waits for approval with what people are shown.
type CompareRequest struct {
	Tenant    string `json:"tenant"`
	SessionID string `json:"session_id"`
	Call      string `json:"call"`
}

// ComparisonStatus says how a call differs from what people are shown.
type ComparisonStatus string

// The outcomes of a comparison. ComparisonUnknown means that the call could not be compared.
const (
	ComparisonSame     ComparisonStatus = "unchanged"
	ComparisonContract ComparisonStatus = "contract_changed"
	ComparisonPreview  ComparisonStatus = "preview_changed"
	ComparisonUnknown  ComparisonStatus = "unknown"
)

// Comparison says whether a call that waits for approval is still what people are shown: the tool's contract, and what the call would change.
type Comparison struct {
	Status ComparisonStatus `json:"status" enum:"unchanged,contract_changed,preview_changed,unknown"`
	// At is when the call was compared; zero if no worker tried.
	At time.Time `json:"at,omitzero"`
	// Detail says what has changed, with the difference between two previews, or why that is unknown.
	Detail string `json:"detail,omitempty"`
}

// VerdictRequest asks how policy would rule on a call that nobody makes: the first call of a session that has written nothing.
type VerdictRequest struct {
	Tenant string `json:"tenant"`
	// Document is the text of a policy that takes the place of the one of the same name; empty for the policies in force.
	Document string          `json:"document,omitempty"`
	Tool     string          `json:"tool"`
	Input    json.RawMessage `json:"input,omitempty"`
	// Agent is the name of the agent that makes the call; empty for a call without one.
	Agent string `json:"agent,omitempty"`
	// By is the principal of the session.
	By string `json:"by"`
}

// Verdict is the ruling on a call that nobody makes.
type Verdict struct {
	Tool    string      `json:"tool"`
	Verdict jig.Verdict `json:"verdict,omitempty"`
	Reasons []string    `json:"reasons"`
	// PolicyVersion is <name>@<content hash> of the policy that decided.
	PolicyVersion string `json:"policy_version,omitempty"`
	// Expires is how long an approval waits, if a rule says so.
	Expires string    `json:"expires,omitempty"`
	Terms   jig.Terms `json:"terms,omitzero"`
	// Base is the ruling from the tool's contract alone.
	Base BaseVerdict `json:"base"`
	// Rules lists the rules that apply, the strictest first.
	Rules []AppliedRule `json:"rules"`
	// Held says why the call would be held back, because a policy cannot be read. Then there is no verdict.
	Held string `json:"held,omitempty"`
}

// BaseVerdict is the verdict that follows from a tool's contract alone.
type BaseVerdict struct {
	Verdict jig.Verdict `json:"verdict,omitempty"`
	Reasons []string    `json:"reasons"`
}

// AppliedRule is a rule that applies to a call.
type AppliedRule struct {
	Policy  string      `json:"policy"`
	Rule    string      `json:"rule"`
	Verdict jig.Verdict `json:"verdict"`
	Reason  string      `json:"reason"`
	// Failed reports that the condition could not be evaluated. Such a rule counts as if it held, unless its verdict is run.
	Failed bool `json:"failed,omitempty"`
}

// CasesRequest asks for the cases of a policy document to be run.
type CasesRequest struct {
	Tenant   string `json:"tenant"`
	Document string `json:"document"`
}

// CasesPage has the outcomes of all cases of a document, in their order.
type CasesPage struct {
	OK    bool         `json:"ok"`
	Cases []CaseResult `json:"cases"`
}

// CaseResult is the outcome of a case.
type CaseResult struct {
	Name   string      `json:"name"`
	Expect jig.Verdict `json:"expect"`
	// Got is the verdict. It is empty if the case could not be tested.
	Got jig.Verdict `json:"got,omitempty"`
	// Rules lists the rules that applied. Failed lists those whose conditions could not be evaluated.
	Rules  []string `json:"rules"`
	Failed []string `json:"failed,omitempty"`
	OK     bool     `json:"ok"`
	// Problem says why the case failed. It is empty if it did not.
	Problem string    `json:"problem,omitempty"`
	Reasons []string  `json:"reasons,omitempty"`
	Terms   jig.Terms `json:"terms,omitzero"`
	// Unless says when a call that runs would ask nevertheless. It is empty if it never would.
	Unless string `json:"unless,omitempty"`
}
