package spec

import (
	"bytes"
	"encoding/json"
	"strings"
)

// contract is a JSON Schema that the values in a document, which may contain templates, are compared with.
type contract struct {
	raw json.RawMessage
	// of is the name used in messages, e.g. "the input of file.read".
	of string

	read   bool
	schema any
	// open says that any object fits.
	open bool
}

// checkInput reports the places where the input of a call cannot fit the schema, whatever values its templates give.
func (k *checker) checkInput(doc *Document, target *contract, c call) {
	target.load()
	if target.open && (len(c.input) == 0 || c.input[0] == '{') {
		return
	}
	var value any = map[string]any{}
	if len(c.input) > 0 {
		var ok bool
		if value, ok = decodeLoosely(c.input); !ok {
			return // reading the document has reported it
		}
	}
	f := fitter{root: target.schema, of: target.of, most: min(maxFitSteps, maxAllFitSteps-k.fitSteps), patterns: &k.patterns}
	f.value(target.schema, value, c.inputAt(), 0)
	k.fitSteps += f.steps
	for _, m := range f.misfits {
		k.report(doc, m.at, m.code, m.hint, "%s", m.message)
	}
}

// checkConfirmed reports a call of a tool with a confirmation flag if the call certainly does not set the flag. Such a call does nothing.
func (k *checker) checkConfirmed(doc *Document, c call) {
	tool := k.contracts[c.name]
	if c.kind != callTool || tool == nil || !tool.Confirm {
		return
	}
	var input map[string]json.RawMessage
	if len(c.input) > 0 && json.Unmarshal(c.input, &input) != nil {
		return // the whole input is a single template
	}
	if flag, given := input["confirmed"]; given && string(flag) != "false" {
		return
	}
	k.report(doc, c.inputAt().key("confirmed"), ProblemMissingKey, "add confirmed: true; the policy then decides whether the call runs or asks a person",
		"%s does nothing without confirmed: true", c.name)
}

// checkRetries warns of a retry setting that rarely has an effect because the tool writes and is not idempotent.
func (k *checker) checkRetries(doc *Document, c call) {
	tool := k.contracts[c.name]
	if c.retries == "" || c.kind != callTool || tool == nil || !retriesRarely(*tool) {
		return
	}
	p := problemAt(doc, c.within.key(c.retries), ProblemRetryLimited,
		"keep it if that is enough; a tool that is idempotent under its key is retried after other failures, too",
		"%s writes and is not idempotent: it is retried only if the tool reports that nothing was executed", c.name)
	p.Severity = SeverityWarning
	k.problems = append(k.problems, p)
}

// load reads the schema once. It ignores a schema that is not JSON, and one of another draft, because its keywords may mean something else.
func (c *contract) load() {
	if c.read {
		return
	}
	c.read = true
	schema, ok := decodeLoosely(c.raw)
	c.open = !ok || schema == true || string(c.raw) == anyObject
	if object, isObject := schema.(map[string]any); isObject {
		if draft, given := object["$schema"].(string); given && !strings.Contains(draft, "2020-12") {
			ok = false
		}
	}
	if c.schema = true; ok {
		c.schema = schema
	}
}

// decodeLoosely decodes JSON and keeps numbers as they are written.
func decodeLoosely(raw json.RawMessage) (any, bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	return v, d.Decode(&v) == nil
}
