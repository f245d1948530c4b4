package protocol

import (
	"time"

	"github.com/jig-run/jig"
)

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
