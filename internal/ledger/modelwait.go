package ledger

import (
	"fmt"
	"time"

	"github.com/jig-run/jig"
)

// ModelWait says that a model is asked again, because a request failed: for the turn of a pass or, if Call is set, of a call whose tool asks a
// model. It is also the data of the event model.waiting.
type ModelWait struct {
	Pass int    `json:"pass"`
	Call string `json:"-"`
	// Code, Reason and Message say why the request failed.
	Code    jig.Code `json:"code"`
	Reason  string   `json:"reason,omitempty"`
	Message string   `json:"message"`
	// Attempt counts the failed requests for the turn, or the attempts of the call; Same those of the latest that failed with the same reason.
	Attempt int `json:"attempt"`
	Same    int `json:"same,omitempty"`
	// Next is when the model is asked again.
	Next time.Time `json:"next_attempt_at"`
}

// String returns why the model is asked again, and when.
func (w ModelWait) String() string {
	return fmt.Sprintf("%s; the model is asked again at %s", w.Message, w.Next.UTC().Format(time.RFC3339))
}
