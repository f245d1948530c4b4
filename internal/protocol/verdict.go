package protocol

import (
	"encoding/json"

	"github.com/jig-run/jig"
)

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
