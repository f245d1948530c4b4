package jig

import (
	"reflect"
	"slices"
	"strings"
	"time"
)

// Approvers says who may decide: principals that are listed in People, are in one of Groups, or hold Permission. The zero value means
// everybody.
type Approvers struct {
	People     []string `json:"people,omitempty"`
	Groups     []string `json:"groups,omitempty"`
	Permission string   `json:"permission,omitempty"`
}

// Anybody reports whether everybody may decide.
func (a Approvers) Anybody() bool {
	return len(a.People) == 0 && len(a.Groups) == 0 && a.Permission == ""
}

// Include reports whether a principal may decide.
func (a Approvers) Include(p Principal) bool {
	return a.Anybody() || slices.Contains(a.People, p.ID) || a.Permission != "" && p.Holds(a.Permission) ||
		slices.ContainsFunc(a.Groups, func(g string) bool { return slices.Contains(p.Groups, g) })
}

// String names the approvers for people, e.g. "ana, group finance or permission refunds.approve".
func (a Approvers) String() string {
	if a.Anybody() {
		return "anybody"
	}
	list := slices.Clone(a.People)
	for _, g := range a.Groups {
		list = append(list, "group "+g)
	}
	if a.Permission != "" {
		list = append(list, "permission "+a.Permission)
	}
	if len(list) == 1 {
		return list[0]
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}

// Duration is a length of time. In JSON it is a text such as "4h" or "1h30m".
type Duration time.Duration

// String returns the duration without zeros at its end. [time.ParseDuration] reads it.
func (d Duration) String() string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(text []byte) error {
	read, err := time.ParseDuration(string(text))
	if err != nil {
		return Errorf(CodeInvalidInput, "%q is not a duration", Cut(string(text), 40)).WithHint("write it as 4h or 1h30m")
	}
	*d = Duration(read)
	return nil
}

// Escalation lets more people decide once an approval has waited for After, or at once if too few others can.
type Escalation struct {
	// After is measured from the time of the request.
	After     Duration  `json:"after"`
	Approvers Approvers `json:"approvers"`
	// Reason says why they may decide at once; empty if they may only after After.
	Reason string `json:"reason,omitempty"`
}

// Counts reports whether the escalation counts after a waiting time.
func (e Escalation) Counts(waited time.Duration) bool {
	return e.Reason != "" || waited >= time.Duration(e.After)
}

// Requirement is one rule's condition for an approval: Quorum distinct people from its Approvers must approve.
type Requirement struct {
	// Rule is <policy>/<rule>; empty for the default requirement, one approval by anybody.
	Rule      string    `json:"rule,omitempty"`
	Approvers Approvers `json:"approvers,omitzero"`
	// Quorum is how many distinct people must approve; at least 1.
	Quorum int `json:"quorum,omitempty"`
	// Escalate adds to Approvers as time passes.
	Escalate []Escalation `json:"escalate,omitempty"`
}

// ExpiryOutcome says what happens to a call whose approval expires.
type ExpiryOutcome string

// The outcomes of expiry, from the mildest to the strictest: the call ends with EXPIRED and the agent continues; the session is canceled;
// the session fails.
const (
	ExpiryDeny   ExpiryOutcome = "deny"
	ExpiryCancel ExpiryOutcome = "cancel"
	ExpiryFail   ExpiryOutcome = "fail"
)

// Strictness orders the outcomes, from 0; the empty outcome counts as ExpiryDeny.
func (o ExpiryOutcome) Strictness() int {
	return max(0, slices.Index([]ExpiryOutcome{ExpiryDeny, ExpiryCancel, ExpiryFail}, o))
}

// Terms are the conditions for an approval. The zero value means one approval by anybody, without reminders; when the approval expires,
// only the call ends.
type Terms struct {
	// Requirements must all be met. One person's approval counts for each requirement that the person may decide for.
	Requirements []Requirement `json:"requirements,omitempty"`
	// NotRequester forbids the askers of the call to decide. It is the default in a tenant with several people.
	NotRequester bool `json:"not_requester,omitempty"`
	// ByDefault reports that NotRequester holds because the tenant has several people, and not because a rule says so.
	ByDefault bool `json:"by_default,omitempty"`
	// RequesterMay is the rule, <policy>/<rule>, that lets the askers decide although they may not by default; empty if none does.
	RequesterMay string `json:"requester_may,omitempty"`
	// Proof is the weakest proof with which people may decide, if it is more than what the tenant demands of all decisions.
	Proof Proof `json:"proof,omitempty"`
	// Remind is the interval between reminders; zero means no reminders.
	Remind   Duration      `json:"remind,omitempty"`
	OnExpiry ExpiryOutcome `json:"on_expiry,omitempty"`
}

// Plain reports whether the terms are equivalent to the zero value.
func (t Terms) Plain() bool {
	if ProofClaimed.AtLeast(t.Proof) {
		t.Proof = ""
	}
	if t.OnExpiry.Strictness() == 0 {
		t.OnExpiry = ""
	}
	if len(t.Requirements) == 0 {
		t.Requirements = nil
	}
	return reflect.ValueOf(t).IsZero()
}

// Asker is somebody on whose word a call rests.
type Asker struct {
	Principal string `json:"principal"`
	// Claimed reports that the asker's identity was not proved.
	Claimed bool `json:"claimed,omitempty"`
	// By says what the asker did: started, triggered, message, event, answer, review or edited.
	By string `json:"by"`
	// Maker is as in [Principal].
	Maker string `json:"maker,omitempty"`
}

// Values of [Asker].By: the asker is the session's principal, triggered its schedule or its repetition, or is the author of a message, an event or
// an answer. AskedReview is for somebody who changed the input of an earlier call or denied one with a reason, and AskedEdited for whoever changed the
// input of this call: both may decide, but not alone.
const (
	AskedStarted   = "started"
	AskedTriggered = "triggered"
	AskedMessage   = "message"
	AskedEvent     = "event"
	AskedAnswer    = "answer"
	AskedReview    = "review"
	AskedEdited    = "edited"
)

// Vote is one person's approval.
type Vote struct {
	By string `json:"by"`
	// Maker is as in [Principal].
	Maker string `json:"maker,omitempty"`
	// Claimed reports that the voter's identity was not proved. Otherwise Proof says how it was.
	Claimed bool  `json:"claimed,omitempty"`
	Proof   Proof `json:"proof,omitempty"`
	// Key is the id of the key that proves it, or of the server that vouches for it.
	Key string `json:"key,omitempty"`
	// Counts holds the indexes of the requirements for which the vote counts.
	Counts []int     `json:"counts"`
	At     time.Time `json:"at"`
	Note   string    `json:"note,omitempty"`
}

// Delegation hands one person's decision on an approval to another.
type Delegation struct {
	From string `json:"from"`
	// Maker is the maker of the credential of From, as in [Principal].
	Maker string    `json:"maker,omitempty"`
	To    string    `json:"to"`
	At    time.Time `json:"at"`
	// Claimed reports that the identity of From was not proved. Otherwise Proof says how it was. Key is as in [Vote].
	Claimed bool   `json:"claimed,omitempty"`
	Proof   Proof  `json:"proof,omitempty"`
	Key     string `json:"key,omitempty"`
	// Counts holds the indexes of the requirements that From could decide for.
	Counts []int `json:"counts"`
}
