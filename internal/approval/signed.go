package approval

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/jig-run/jig"
)

// Signed is a decision with the token that proves it. It is kept, so that the signature can be verified again.
type Signed struct {
	// Decision is the decision that the token proves, without the token.
	Decision jig.Decision
	Token    string
	// Digest is the digest of the call as its sender saw it, and Shown holds the content of that digest.
	Digest string
	Shown  Shown
}

// Shown is the content of a digest that depends on the call.
type Shown struct {
	Tool          string          `json:"tool"`
	Version       string          `json:"version"`
	Input         json.RawMessage `json:"input"`
	PolicyVersion string          `json:"policy_version"`
	Preview       *jig.Preview    `json:"preview,omitempty"`
}

// Proven is a decision whose signature was verified: who approves, or hands the decision to somebody else.
type Proven struct {
	Principal jig.Principal
	Answer    jig.Answer
	// To is the principal to whom the decision is delegated. Undo takes an earlier delegation back.
	To   string
	Undo bool
	// Edits reports that the decision changed the input, so that nobody approves it alone where askers may not decide.
	Edits bool
	// At is when it was made, at the latest.
	At time.Time
}

// Recount counts verified decisions about an approval, in their order, under its terms. It returns which approvals are missing, or "" if the call
// may run. The votes that the approval itself lists do not matter. Only the delegations that it lists count: others belong to an earlier
// approval of the call.
func Recount(asked jig.Pending, decisions []Proven) (missing string) {
	present := asked.Delegations
	asked.Votes, asked.Delegations = nil, nil
	consent := ConsentOf(asked)
	for _, d := range decisions {
		if d.Undo {
			consent.Delegations = slices.DeleteFunc(consent.Delegations, func(one jig.Delegation) bool { return one.From == d.Principal.ID })
			continue
		}
		if d.Edits {
			consent.Askers = WithEditor(consent.Askers, d.Principal)
		}
		counts, why := consent.Entitled(d.Principal, d.At)
		switch {
		case why != "" || consent.Voted(d.Principal):
		case d.Answer == jig.AnswerDelegate:
			handed := jig.Delegation{From: d.Principal.ID, Maker: d.Principal.Maker, To: d.To, At: d.At, Counts: counts}
			same := func(one jig.Delegation) bool { return one.From == handed.From && one.To == handed.To }
			if slices.ContainsFunc(present, same) && !consent.Voted(jig.Principal{ID: d.To}) {
				consent.Delegations = append(consent.Delegations, handed)
			}
		case d.Answer == jig.AnswerApprove:
			consent.Votes = append(consent.Votes, jig.Vote{By: d.Principal.ID, Maker: d.Principal.Maker, Counts: counts, At: d.At})
		}
	}
	return consent.Missing()
}

// Similar is an earlier decision about another call of the same tool.
type Similar struct {
	SessionID string
	Call      string
	Answer    jig.Answer
	By        string
	At        time.Time
	// Input is the call's input, as it was changed if an approval changed it.
	Input json.RawMessage
}
