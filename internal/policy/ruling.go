package policy

import (
	"time"

	"github.com/jig-run/jig"
)

// Ruling is a verdict with its reasons, which are shown to people.
type Ruling struct {
	Verdict jig.Verdict `json:"verdict"`
	Reasons []string    `json:"reasons"`
	// PolicyVersion is <name>@<content hash> of the policy that decided. If only the base rules applied, it is their hash.
	PolicyVersion string `json:"policy_version"`
	// Expires is how long the approval waits before it expires; zero means the agent's setting. In JSON: nanoseconds.
	Expires time.Duration `json:"expires,omitempty"`
	// Terms are the conditions for an approval. They are set when the verdict is ask.
	Terms jig.Terms `json:"terms,omitzero"`
	// Base reports that the verdict is ask because of the tool's contract alone: no rule asked for more.
	Base bool `json:"base,omitempty"`
	// Person reports that no grant may approve the call, because a rule that asks or denies cannot be evaluated.
	Person bool `json:"person,omitempty"`
	// Held says why nothing can be decided now: a policy cannot be read. Until it can be read, the call neither runs nor asks, and the
	// other fields have no meaning.
	Held string `json:"held,omitempty"`
}
