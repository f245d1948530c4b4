package activities

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/chat"
)

// maxScriptData is the maximum total size, in bytes, of the results that a script gets.
const maxScriptData = 64 << 20

// tokenBytes is roughly how many bytes of text make a token.
const tokenBytes = 4

// tokens estimates how many tokens a text of n bytes has.
func tokens(n int) int { return (n + tokenBytes - 1) / tokenBytes }

// bytesOf estimates how many bytes n tokens have.
func bytesOf(n int) int { return n * tokenBytes }

func toolTokens(tools []jig.Tool) int {
	n := 0
	for _, t := range tools {
		n += len(t.Name) + len(t.Description) + len(t.InputSchema)
	}
	return tokens(n)
}

// systemPrompt returns the system prompt. It is the same in every pass of a session, so that a provider's prompt cache hits.
func systemPrompt(session jig.Session, tools []jig.Tool) string {
	var b strings.Builder
	b.WriteString(session.Agent.Instructions)
	if len(tools) > 0 {
		b.WriteString("\n\n# Tools\n")
		category := ""
		for _, t := range tools { // sorted by name, so also grouped by category
			if t.Category != category {
				category = t.Category
				fmt.Fprintf(&b, "\n## %s\n", category)
			}
			fmt.Fprintf(&b, "- %s: %s\n", t.Name, firstSentence(t.Description))
		}
		b.WriteString("\nCalls of one turn run in parallel. A call that changes data may wait for a person's approval. " +
			"The same call is never run twice: its earlier result stands. Results that were cut down can be read with artifact.read, when it is among the tools.\n")
	}
	return b.String()
}

func firstSentence(s string) string {
	if i := strings.Index(s, ". "); i >= 0 {
		return s[:i+1]
	}
	return s
}

// withInput puts the session's input before the first message, so that the model sees what the session was started with.
func withInput(session jig.Session, exchanges []chat.Exchange) []chat.Exchange {
	if session.SummaryThrough > 0 || len(session.Input) == 0 || string(session.Input) == "{}" {
		return exchanges
	}
	return withNote(exchanges, "Input: "+string(session.Input))
}

// withNote puts a message from the engine before all others.
func withNote(exchanges []chat.Exchange, text string) []chat.Exchange {
	note := chat.Message{Role: chat.RoleUser, Text: text}
	if len(exchanges) == 0 {
		return []chat.Exchange{{Messages: []chat.Message{note}}}
	}
	first := exchanges[0]
	first.Messages = append([]chat.Message{note}, first.Messages...)
	return append([]chat.Exchange{first}, exchanges[1:]...)
}

// withSummary puts the stored summary in front of the exchanges that it does not cover.
func withSummary(session jig.Session, exchanges []chat.Exchange) []chat.Exchange {
	if session.Summary == "" {
		return exchanges
	}
	return withNote(exchanges, "Summary of the session so far:\n"+session.Summary)
}

// fit keeps the transcript within a budget of tokens. The newest results stay complete; older ones become references. If that is
// not enough, overflow is the number of the oldest exchanges that a summary must replace. The latest two passes are never shortened.
func fit(sessionID string, exchanges []chat.Exchange, budget int) (fitted []chat.Exchange, overflow int) {
	fitted = make([]chat.Exchange, len(exchanges))
	left := budget
	for i := len(exchanges) - 1; i >= 0; i-- {
		fitted[i] = shown(sessionID, exchanges[i], false)
		size := exchangeTokens(fitted[i])
		if size > left && i < len(exchanges)-2 {
			fitted[i] = shown(sessionID, exchanges[i], true)
			size = exchangeTokens(fitted[i])
			if size > left && overflow == 0 {
				overflow = i + 1
			}
		}
		left -= size
	}
	return fitted, overflow
}

// shown copies an exchange with each result as the model gets it: Markdown and data, or reduced to a reference if reference is true.
func shown(sessionID string, e chat.Exchange, reference bool) chat.Exchange {
	calls := make([]jig.Call, len(e.Calls))
	for i, c := range e.Calls {
		calls[i] = c
		if c.Result == nil {
			continue
		}
		r := *c.Result
		if len(c.Patch) > 0 {
			// The call ran with other arguments than the model asked for. Tell the model, so that it does not reason from its own.
			r.Markdown = fmt.Sprintf("(%s changed the arguments before this ran, as JSON Patch: %s)\n%s", c.EditedBy, jig.Cut(string(c.Patch), 2000), resultText(r))
			r.Data = nil
		}
		switch id := jig.QualifiedCallID(sessionID, c.ID); {
		case reference && r.Success && len(r.Data)+len(r.Markdown) > len(r.Summary)+200:
			r.Data, r.Markdown = nil, fmt.Sprintf("%s (left out; artifact.read with id %q gives it)", r.Summary, id)
		case c.ResultArtifact != "":
			r.Data, r.Markdown = nil, fmt.Sprintf("%s\n%s\n(cut down; artifact.read with id %q gives the rest)", r.Summary, body(r), id)
		case r.Markdown != "":
			r.Data, r.Markdown = nil, body(r)
		}
		calls[i].Result = &r
	}
	e.Calls = calls
	return e
}

// resultText returns a result as the model reads it.
func resultText(r jig.ToolResult) string {
	if r.Error != nil && r.Markdown == "" {
		return r.Error.Error()
	}
	return body(r)
}

// body returns the Markdown and the data of a result. Most results have only one of them.
func body(r jig.ToolResult) string {
	if r.Markdown == "" || len(r.Data) == 0 || string(r.Data) == "null" {
		return cmp.Or(r.Markdown, string(r.Data))
	}
	return r.Markdown + "\n\nData: " + string(r.Data)
}

// withTodo puts the task list last, so that its changes do not invalidate the provider's prompt cache.
func withTodo(session jig.Session, exchanges []chat.Exchange) []chat.Exchange {
	if len(session.Todo) == 0 {
		return exchanges
	}
	note := chat.Message{Role: chat.RoleUser, Text: "Your task list: " + string(session.Todo)}
	return append(exchanges, chat.Exchange{Messages: []chat.Message{note}})
}

func exchangeTokens(e chat.Exchange) int {
	n := 0
	for _, m := range e.Messages {
		n += len(m.Text)
	}
	if e.Turn != nil {
		n += len(e.Turn.Text) + len(e.Turn.Opaque)
	}
	for _, c := range e.Calls {
		n += len(c.Tool) + len(c.Input) + 40
		if c.Result != nil {
			n += len(body(*c.Result)) + len(c.Result.Summary)
		}
	}
	return tokens(n)
}

// wholeResults replaces previews with complete results, for a script.
func (a *Activities) wholeResults(ctx context.Context, session jig.Session, exchanges []chat.Exchange) ([]chat.Exchange, error) {
	left := int64(maxScriptData)
	for i := range exchanges {
		for j := range exchanges[i].Calls {
			c := &exchanges[i].Calls[j]
			if c.ResultArtifact == "" {
				continue
			}
			whole, err := readArtifact(ctx, a.Store, session.Tenant, c.ResultArtifact, left)
			if err != nil {
				return nil, err
			}
			left -= int64(len(whole))
			var r jig.ToolResult
			if err := json.Unmarshal(whole, &r); err != nil {
				return nil, jig.Errorf(jig.CodeInternal, "reading the result of call %s: %w", c.ID, err)
			}
			c.Result = &r
		}
	}
	return exchanges, nil
}

const (
	// maxSummaryTokens limits the answer of the model that summarizes.
	maxSummaryTokens = 2048
	// maxBareLog is the maximum size, in bytes, of the log that replaces the summary if the model returns no text.
	maxBareLog = 8 << 10
	// summaryInstructions is the system prompt for a summary.
	summaryInstructions = "Summarise the following work log for the one who continues the work: what was asked, what was found (with ids, names and numbers), " +
		"what was decided, what is still open. At most 600 words."
)

// summarize asks the session's own model for a summary of the oldest exchanges, and returns its usage. If the model returns no text, a
// shortened log takes the place of the summary, so that the user's request is not silently forgotten.
func (a *Activities) summarize(ctx context.Context, session jig.Session, pass int, old []chat.Exchange, limits jig.Limits) (string, chat.Usage, error) {
	log := workLog(session.Summary, old)
	turn, err := a.Model.Answer(ctx, chat.Request{
		Model:  session.Agent.Model,
		System: summaryInstructions,
		Exchanges: []chat.Exchange{
			{Messages: []chat.Message{{Role: chat.RoleUser, Text: cutMiddle(log, bytesOf(limits.TokenBudget))}}},
		},
		MaxTokens: min(limits.MaxTokens, maxSummaryTokens), SessionID: session.ID, Pass: pass, Tenant: session.Tenant, Summary: true,
	}, func(string) {})
	silent := err == nil && strings.TrimSpace(turn.Text) == "" || err != nil && jig.AsError(err).Reason == jig.ReasonNoAnswer
	if err != nil && !silent {
		return "", chat.Usage{}, a.modelFailed(ctx, session, pass, err)
	}
	if silent {
		return cutMiddle(log, maxBareLog), turn.Usage, nil
	}
	return turn.Text, turn.Usage, nil
}

// workLog formats exchanges as text, one line for each message and call, after the summary of the earlier ones.
func workLog(before string, old []chat.Exchange) string {
	var b strings.Builder
	if before != "" {
		b.WriteString("Summary so far: " + before + "\n")
	}
	for _, e := range old {
		for _, m := range e.Messages {
			fmt.Fprintf(&b, "User: %s\n", jig.Cut(m.Text, 2000))
		}
		if e.Turn != nil && e.Turn.Text != "" {
			fmt.Fprintf(&b, "Assistant: %s\n", jig.Cut(e.Turn.Text, 2000))
		}
		for _, c := range e.Calls {
			summary := string(c.Status)
			if c.Result != nil {
				summary = c.Result.Summary
			}
			fmt.Fprintf(&b, "Call %s %s(%s): %s\n", c.ID, c.Tool, jig.Cut(string(c.Input), 300), jig.Cut(summary, 300))
		}
	}
	return b.String()
}

// cutMiddle shortens a text to about n bytes without splitting characters. It keeps the beginning, which says what was asked for,
// and the end, which says what was done last.
func cutMiddle(s string, n int) string {
	if len(s) <= n {
		return s
	}
	from := len(s) - n/2
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return jig.Cut(s, n/2) + "\n" + s[from:]
}
