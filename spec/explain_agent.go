package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/duration"
)

func explainAgent(doc Document, _ []Document, tools []jig.Tool) (text, diagram string) {
	return ExplainAgent(*doc.Agent(), tools...), ""
}

// ExplainAgent returns a short text for a terminal: who the agent is, what it may use, and its limits. Given the tools of a catalog, it
// says which tools the whitelist includes, and which of them ask a person.
func ExplainAgent(a jig.Agent, tools ...jig.Tool) string {
	o := &outline{tools: toolsByName(tools)}
	o.line(0, "agent %s%s", a.Name, versionText(a.Version))
	if a.Description != "" {
		o.line(0, "%s", a.Description)
	}
	o.line(0, "model: %s", a.Model)
	if members := membersText(a.InputSchema); members != "" {
		o.line(0, "input: %s", members)
	}
	limits := a.Limits.WithDefaults()
	o.line(0, "%s", limitsText(limits))
	o.b.WriteByte('\n')
	if len(a.Agents) > 0 {
		o.line(0, "It may start: %s", strings.Join(a.Agents, ", "))
	}
	if len(a.Models) > 0 {
		o.line(0, "A caller may choose the model: %s", strings.Join(a.Models, ", "))
	}
	if len(a.Tools) == 0 {
		o.line(0, "It has no tools.")
		return o.b.String()
	}
	o.line(0, "It may use:")
	tools = slices.SortedFunc(slices.Values(tools), func(x, y jig.Tool) int { return strings.Compare(x.Name, y.Name) })
	for _, entry := range a.Tools {
		o.whitelisted(entry, tools)
	}
	return o.b.String()
}

// whitelisted writes an entry of a whitelist with the tools that it includes.
func (o *outline) whitelisted(entry string, tools []jig.Tool) {
	prefix, wild := strings.CutSuffix(entry, "*")
	if !wild {
		o.tool(1, entry)
		return
	}
	o.line(1, "%s", entry)
	if len(tools) == 0 {
		return
	}
	found := false
	for _, t := range tools {
		if strings.HasPrefix(t.Name, prefix) {
			o.tool(2, t.Name)
			found = true
		}
	}
	if !found {
		o.line(2, "the catalog has no such tool")
	}
}

func (o *outline) tool(depth int, name string) {
	t, known := o.tools[name]
	switch asks := asksText(t); {
	case known && asks != "":
		o.line(depth, "%s %s", name, asks)
	case !known && len(o.tools) > 0:
		o.line(depth, "%s (the catalog has no such tool)", name)
	default:
		o.line(depth, "%s", name)
	}
}

func limitsText(l jig.Limits) string {
	text := fmt.Sprintf("ends after %d passes", l.MaxPasses)
	if l.Deadline > 0 {
		text += " or " + duration.Format(l.Deadline)
	}
	if l.MaxTotalTokens > 0 {
		text += fmt.Sprintf(" or %d tokens", l.MaxTotalTokens)
	}
	return text + fmt.Sprintf("; %d calls at a time; an approval waits %s", l.MaxParallelCalls, duration.Format(l.ApprovalExpires))
}
