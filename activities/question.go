package activities

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/duration"
)

// askInput is the input of a tool that a person answers.
type askInput struct {
	Question string            `json:"question"`
	Schema   json.RawMessage   `json:"schema,omitempty"`
	Options  []json.RawMessage `json:"options,omitempty"`
	// Expires is how long the question waits, e.g. 48h or 7d. If it is empty, the policy or the agent decides.
	Expires string `json:"expires,omitempty"`
}

// asQuestion turns a pending approval into a question. The input has already been validated.
func asQuestion(p *jig.Pending, input []byte) {
	var in askInput
	if json.Unmarshal(input, &in) != nil {
		return
	}
	p.Kind = jig.PendingQuestion
	p.Question = &jig.Question{Text: in.Question, Schema: in.Schema, Options: in.Options}
	p.Summary = jig.Cut(in.Question, 200)
	if d, err := waitOf(in.Expires); err == nil && d > 0 {
		p.ExpiresAt = p.RequestedAt.Add(d)
	}
}

// maxQuestionWait is the longest time that a question may wait.
const maxQuestionWait = 365 * 24 * time.Hour

// waitOf reads how long a question waits, at most maxQuestionWait. Empty means 0.
func waitOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := duration.Parse(text)
	if err != nil || d <= 0 || d > maxQuestionWait {
		return 0, jig.Errorf(jig.CodeInvalidInput, "expires is %q, which is not a valid time to wait", text).WithField("/expires").WithHint("write e.g. 90m, 48h or 7d, at most 365d")
	}
	return d, nil
}

// checkQuestion returns an error for a question that nobody could answer. It returns nil for calls of other tools.
func (a *Activities) checkQuestion(tool jig.Tool, input []byte) *jig.Error {
	if tool.Implementation != jig.ImplementationPerson {
		return nil
	}
	var in askInput
	if err := json.Unmarshal(input, &in); err != nil {
		return jig.Errorf(jig.CodeInvalidInput, "reading the question: %w", err)
	}
	if _, err := waitOf(in.Expires); err != nil {
		return jig.AsError(err)
	}
	if len(in.Schema) > 0 {
		if err := a.Schemas.Check(in.Schema); err != nil {
			e := jig.AsError(err)
			return jig.Errorf(jig.CodeInvalidInput, "the question's schema is not a valid JSON Schema: %s", e.Message).WithField("/schema").
				WithHint(`give e.g. {"type": "string"}, or leave it out for plain text`)
		}
	}
	question := jig.Question{Schema: in.Schema}
	for i, option := range in.Options {
		if err := a.fits(question, option); err != nil && len(in.Schema) > 0 {
			return jig.Errorf(jig.CodeInvalidInput, "option %d does not fit the question's schema: %w", i+1, err).
				WithField("/options/" + strconv.Itoa(i))
		}
	}
	return nil
}

// fits checks an answer against its question: it must be one of the options and fit the schema. Without options and schema, it must
// be a non-empty text.
func (a *Activities) fits(q jig.Question, value json.RawMessage) error {
	if len(q.Options) > 0 {
		given, err := canonicalJSON(value)
		if err != nil {
			return err
		}
		fits := false
		for _, option := range q.Options {
			normal, err := canonicalJSON(option)
			fits = fits || err == nil && string(normal) == string(given)
		}
		if !fits {
			options, err := json.Marshal(q.Options)
			if err != nil {
				return jig.Errorf(jig.CodeInternal, "encoding the options: %w", err)
			}
			return jig.Errorf(jig.CodeInvalidInput, "%s is not one of the options %s", jig.Cut(string(value), 200), jig.Cut(string(options), 1000))
		}
	}
	schema := q.Schema
	if len(schema) == 0 && len(q.Options) == 0 {
		schema = json.RawMessage(`{"type":"string","minLength":1}`)
	}
	if len(schema) == 0 {
		return nil
	}
	return a.Schemas.Validate(schema, value)
}
