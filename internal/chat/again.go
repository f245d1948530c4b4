package chat

import (
	"slices"
	"time"

	"github.com/jig-run/jig"
)

// The limits on a turn or a call that asks a model whose provider fails: how many requests it makes, and for how long. A provider may ask for a
// wait of at most an hour.
const (
	MaxRequests = 10
	RetryFor    = MaxRequests * time.Hour
)

// FromProvider reports whether err says that a model's provider failed in a way that may pass, or broke its answer.
func FromProvider(err *jig.Error) bool {
	reasons := []string{jig.ReasonProviderFailed, jig.ReasonBrokenAnswer, jig.ReasonNoAnswer}
	return err != nil && err.Code.Retryable() && slices.Contains(reasons, err.Reason)
}

// AskedAgain returns the error with which a model's answer failed after the model has been asked again a number of times. It is err itself
// unless the answer was broken for the fourth time, or empty for the second: then it is INVALID_OUTPUT, with the same reason, which is final.
func AskedAgain(err *jig.Error, times int) *jig.Error {
	most := map[string]int{jig.ReasonBrokenAnswer: 3, jig.ReasonNoAnswer: 1}[err.Reason]
	if most == 0 || times < most {
		return err
	}
	final := *err
	final.Code, final.RetryAfter = jig.CodeInvalidOutput, 0
	final.Hint = "send a message to ask again, or use another model"
	return &final
}
