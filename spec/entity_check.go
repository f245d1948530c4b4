package spec

import (
	"cmp"
	"encoding/json"
	"maps"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/entity"
	"github.com/jig-run/jig/internal/expr"
)

// checkEntityType checks the entity types that relations refer to, and the tasks: the names that they call, the inputs of these calls, and
// which parts of the results they read.
func (k *checker) checkEntityType(doc *Document) {
	if doc.broken {
		return
	}
	k.checkTargets(doc, doc.EntityType().Fields, (*place)(nil).key("fields"))
	tasks, shapes := (*place)(nil).key("tasks"), TaskShapes(*doc.EntityType())
	for i := range doc.EntityType().Tasks {
		t := &doc.EntityType().Tasks[i]
		c, calls := taskCall(t, tasks.item(i))
		if !calls {
			continue
		}
		if !k.checkPromptName(doc, t, c) || !k.checkName(doc, c) {
			continue
		}
		if c.kind == callAgent {
			c = agentInput(c)
		}
		if target := k.target(c); target != nil {
			k.checkInput(doc, target, c)
		}
		k.checkConfirmed(doc, c)
		k.checkRetries(doc, c)
		if result, known := k.shape(t.Use); known && c.kind != callAgent {
			with := maps.Clone(shapes)
			with["result"] = result
			k.checkResult(doc, t, tasks.item(i), with)
		}
	}
}

// agentInput reduces a task's call of an agent to the agent's own input. If the task's input has only members that agent.run accepts (task,
// input, model), it is the input of agent.run, and the agent's own input is its member input. Otherwise, the whole input is the agent's.
func agentInput(c call) call {
	var members map[string]json.RawMessage
	if len(c.input) == 0 || json.Unmarshal(c.input, &members) != nil {
		return c // reading has refused an input that is not a mapping
	}
	for name := range members {
		if name != "task" && name != "input" && name != "model" {
			return c
		}
	}
	c.within, c.input = c.inputAt(), members["input"]
	return c
}

// walkTasks visits every call of an entity type's tasks.
func walkTasks(t *entity.Type, visit func(call)) {
	for i := range t.Tasks {
		if c, calls := taskCall(&t.Tasks[i], (*place)(nil).key("tasks").item(i)); calls {
			visit(c)
		}
	}
}

// taskCall returns the call that a task makes, or false if it makes none.
func taskCall(t *entity.Task, within *place) (call, bool) {
	c := call{name: t.Use, within: within, key: string(t.Kind), inputKey: "input", input: t.Input}
	if t.Attempts > 1 {
		c.retries = "attempts"
	}
	switch t.Kind {
	case entity.TaskTool:
		c.kind = callTool
	case entity.TaskComposition, entity.TaskPrompt:
		c.kind = callComposition
	case entity.TaskAgent:
		c.kind = callAgent
	case entity.TaskCompute, entity.TaskCitations:
		return call{}, false
	}
	return c, true
}

// checkTargets warns of relations to entity types that do not exist, including those in objects and lists. It is only a warning because two
// types may refer to each other, and one of them must be registered first.
func (k *checker) checkTargets(doc *Document, fields []entity.Field, at *place) {
	for i := range fields {
		here := at.item(i)
		for f := &fields[i]; f != nil; f = f.Items {
			if f.Type == entity.FieldRelation && k.types.missing(f.Target) {
				p := k.unknownType(doc, here.key("target"), f.Target)
				p.Severity = SeverityWarning
				k.problems = append(k.problems, p)
			}
			k.checkTargets(doc, f.Fields, here.key("fields"))
			here = here.key("items")
		}
	}
}

// checkType reports an entity type that does not exist. It returns the type, or nil if it is not fully known.
func (k *checker) checkType(doc *Document, at *place, name string) *entity.Type {
	if k.types.missing(name) {
		k.problems = append(k.problems, k.unknownType(doc, at, name))
	}
	return k.types.all[name]
}

func (k *checker) unknownType(doc *Document, at *place, name string) Problem {
	hint := cmp.Or(k.suggest("entity type", name, k.types.sorted), "add a document of kind entity_type with that name")
	return problemAt(doc, at, ProblemUnknownType, hint, "there is no entity type %q", name)
}

// checkPromptName reports a prompt that does not exist, or that is a document of another kind. It returns false if there is nothing more to
// check.
func (k *checker) checkPromptName(doc *Document, t *entity.Task, c call) bool {
	if t.Kind != entity.TaskPrompt {
		return true
	}
	x, known := k.specs.all[t.Use]
	switch {
	case known && x != nil && x.Kind.HasBackend():
		k.report(doc, c.at(), ProblemUnknownComposition, "write tool: "+t.Use, "%s is a %s, not a prompt", t.Use, x.Kind.Words())
	case known && x != nil && string(x.Kind) != string(t.Kind): // both are called prompt
		k.report(doc, c.at(), ProblemUnknownComposition, "write composition: "+t.Use, "%s is a %s, not a prompt", t.Use, x.Kind)
	case !known && k.specs.missing(t.Use) && !k.specTools[t.Use]:
		k.report(doc, c.at(), ProblemUnknownComposition, k.suggest("prompt", t.Use, k.specs.sorted), "there is no prompt %q", t.Use)
	default:
		return true
	}
	return false
}

// checkResult checks the parts of the result that a task reads, given the shape of that result.
func (k *checker) checkResult(doc *Document, t *entity.Task, at *place, shapes expr.Shapes) {
	env, err := expr.TaskUse().Env()
	if err != nil {
		return // reading the document has reported it
	}
	for _, one := range []struct {
		key, source string
		want        expr.Type
	}{{"value", t.Value, expr.Any}, {"sources", t.Sources, expr.List}} {
		if one.source == "" {
			continue
		}
		if err := env.Check(one.source, one.want, shapes); err != nil {
			k.report(doc, at.key(one.key), ProblemBadCEL, jig.AsError(err).Hint, "%s", expressionMessage(err))
		}
	}
}
