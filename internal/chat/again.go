package chat

import "github.com/jig-run/jig"

// AskedAgain returns the error with which a model's answer failed after the model has been asked again a number of times. It is err itself
// unless the answer was broken for the fourth time, or empty for the second: then it is INVALID_OUTPUT, with the same reason, which is final.
func AskedAgain(err error, times int) error {
	if err == nil {
		return nil
	}
	e := jig.AsError(err)
	most := map[string]int{jig.ReasonBrokenAnswer: 3, jig.ReasonNoAnswer: 1}[e.Reason]
	if most == 0 || times < most {
		return err
	}
	final := *e
	final.Code, final.RetryAfter = jig.CodeInvalidOutput, 0
	final.Hint = "send a message to ask again, or use another model"
	return &final
}
