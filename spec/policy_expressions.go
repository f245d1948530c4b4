package spec

import (
	"encoding/json"

	"github.com/jig-run/jig/internal/expr"
)

// PolicyShapes returns the JSON Schemas of the variables that the rules of a policy can read, by name. All members that a schema lists are
// present for every call. Texts that are not known are empty.
func PolicyShapes() expr.Shapes {
	const text, number, flag, texts = `{"type":"string"}`, `{"type":"integer"}`, `{"type":"boolean"}`, `{"type":"array","items":{"type":"string"}}`
	object := func(members map[string]string) json.RawMessage {
		properties := make(map[string]json.RawMessage, len(members))
		for name, schema := range members {
			properties[name] = json.RawMessage(schema)
		}
		raw, err := json.Marshal(map[string]any{"type": "object", "additionalProperties": false, "properties": properties})
		if err != nil {
			panic("spec: cannot marshal a constant: " + err.Error())
		}
		return raw
	}
	return expr.Shapes{
		"tool": object(map[string]string{
			"name": text, "version": text, "description": text, "category": text, "permission": text, "risk": text, "approval": text,
			"idempotent": flag, "execution": text, "tags": texts, "reads": texts, "sends": flag, "required_permission": text, "confirm": flag, "undo": text, "implementation": text,
		}),
		"input": json.RawMessage(`{"type":"object"}`),
		"call": object(map[string]string{
			"id": text, "tool": text, "input": `{"type":"object"}`, "pass": number, "untrusted_arguments": texts, "unknown_destinations": texts,
			"computed_arguments": texts,
		}),
		"agent":     object(map[string]string{"name": text, "registered": flag, "version": text}),
		"principal": object(map[string]string{"id": text, "groups": texts, "permissions": texts, "proof": text}),
		"session": object(map[string]string{
			"id": text, "task": text, "input": `{"type":"object"}`, "pass": number, "writes": number,
			"root_agent": text, "parent_agent": text, "depth": number, "source": text, "read_private": flag, "read_untrusted": flag,
		}),
	}
}

// checkPolicyExpressions checks the conditions and reasons of rules.
func (d *decoder) checkPolicyExpressions(rules []PolicyRule) {
	var all weight
	for i, rule := range rules {
		all.expression(string(rule.When))
		if n := d.places[indexPath("rules", i)+".reason"]; n != nil {
			all.add(n)
		}
	}
	if all.count > maxExpressions || all.bytes > maxExpressionBytes {
		d.at("rules", ProblemTooMany, "shorten the conditions, or use fewer loops",
			"the rules have more than %d expressions or %d bytes of expressions, or too many loops in one expression", maxExpressions, maxExpressionBytes)
		return
	}
	env, err := expr.PolicyUse().Env()
	if err != nil {
		d.at("rules", ProblemBadCEL, "", "expressions cannot be checked: %v", err)
		return
	}
	c, shapes := compiler{decoder: d, env: env}, PolicyShapes()
	before, wrong := len(d.problems), 0
	for i, rule := range rules {
		if wrong > maxWrongBytes || len(d.problems)-before > maxExpressionProblems {
			return
		}
		path := indexPath("rules", i)
		if rule.When != "" {
			if err := env.Check(string(rule.When), expr.Bool, shapes); err != nil {
				wrong += len(rule.When)
				c.report(path+".when", err)
			}
		}
		if err := env.CheckTemplate(rule.Reason, shapes); err != nil {
			wrong += len(rule.Reason)
			c.report(path+".reason", err)
		}
	}
}
