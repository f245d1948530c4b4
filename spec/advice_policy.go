package spec

import (
	"slices"
	"strings"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/expr"
)

// ProblemInputOfAnyTool warns of a rule that reads a member of the input without saying which tool's input it means.
const ProblemInputOfAnyTool ProblemCode = "INPUT_OF_ANY_TOOL"

// adviseRules warns of rules that fail on calls of tools that their author did not think of. Such a rule keeps its verdict: it denies those
// calls or asks about them.
func adviseRules(doc *Document) Problems {
	env, err := expr.PolicyUse().Env()
	if err != nil {
		return nil //nolint:nilerr // without an environment there is no advice to give
	}
	var problems Problems
	for i, rule := range doc.Policy().Rules {
		if rule.Verdict == jig.VerdictRun { // such a rule is ignored when it fails
			continue
		}
		when, err := env.CompileAs(string(rule.When), expr.Bool)
		if err != nil { // reading the document has reported it
			continue
		}
		member := unguarded(when)
		if member == "" {
			continue
		}
		does := "asks"
		if rule.Verdict == jig.VerdictDeny {
			does = "denies"
		}
		input, name := member[:strings.LastIndex(member, ".")], member[strings.LastIndex(member, ".")+1:]
		p := problemAt(doc, (*place)(nil).key("rules").item(i).key("when"), ProblemInputOfAnyTool,
			"name the tool first, e.g. tool.name == 'shop.refund' && …, or write "+input+".?"+name+".orValue(…)",
			"on calls without %s, of any tool, the rule fails and %s", member, does)
		p.Severity = SeverityWarning
		problems = append(problems, p)
	}
	return problems
}

// unguarded returns the first member of the call's input that a condition reads although it neither names the tool nor tests whether the
// member is present. It returns an empty string if there is none.
func unguarded(when *expr.Program) string {
	read, asked := when.Members()
	for _, naming := range []string{"tool.name", "tool.version", "tool.category", "tool.tags", "tool.implementation", "call.tool"} {
		if slices.Contains(read, naming) {
			return ""
		}
	}
	for _, member := range read {
		rest, ok := strings.CutPrefix(strings.TrimPrefix(member, "call."), "input.")
		if ok && !strings.ContainsAny(rest, ".[") && !slices.Contains(asked, member) {
			return member
		}
	}
	return ""
}
