package ledger

import (
	"time"

	"github.com/jig-run/jig"
)

// ModelWait says that a model is asked again, because a request for the turn of a pass failed. It is also the data of the event
// model.waiting.
type ModelWait struct {
	Pass int `json:"pass"`
	// Code, Reason and Message say why the request failed.
	Code    jig.Code `json:"code"`
	Reason  string   `json:"reason,omitempty"`
	Message string   `json:"message"`
	// Attempt counts the failed requests for the turn, and Same those among them that failed with the same reason.
	Attempt int `json:"attempt"`
	Same    int `json:"same,omitempty"`
	// Next is when the model is asked again.
	Next time.Time `json:"next_attempt_at"`
}
