package policy

import (
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/approval"
)

// ask makes the ruling ask, on the combined terms of all ask rules that apply: each rule's requirement, the shortest times and the strictest
// outcome. The rules must be ordered by policy and name.
func ask(ruling *Ruling, spoken []Spoken) {
	ruling.Verdict, ruling.Base, ruling.Expires, ruling.Terms = jig.VerdictAsk, true, 0, jig.Terms{}
	for _, s := range spoken {
		if s.Verdict == jig.VerdictRun { // it adds nothing, whether it holds or fails
			continue
		}
		ruling.Base = false
		if s.Verdict != jig.VerdictAsk {
			continue
		}
		terms := s.rule.Terms(s.Policy)
		if s.Failed {
			terms.RequesterMay = ""
		}
		ruling.Terms = approval.Stricter(ruling.Terms, terms)
		ruling.Expires = approval.Sooner(ruling.Expires, time.Duration(s.rule.Expires))
	}
}
