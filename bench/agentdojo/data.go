package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/jig-run/jig"
)

// suite is one of the benchmark's suites.
type suite struct {
	name       string
	tools      map[string]tool
	users      []userTask
	injections []injectionTask
	results    results
}

// tool is a tool with the labels that its author would give it.
type tool struct {
	Name           string      `json:"name"`
	Parameters     []parameter `json:"parameters"`
	Effect         string      `json:"effect"`
	ReadsPrivate   bool        `json:"reads_private"`
	ReadsUntrusted bool        `json:"reads_untrusted"`
	Sends          bool        `json:"sends"`
	Destinations   []string    `json:"destination_args"`
}

// parameter is an argument of a tool.
type parameter struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Items       any    `json:"items"`
	Enum        []any  `json:"enum"`
	Nullable    bool   `json:"nullable"`
	Required    bool   `json:"required"`
	Default     any    `json:"default"`
	Description string `json:"description"`
}

// call is one recorded call.
type call struct {
	Tool         string          `json:"tool"`
	Args         json.RawMessage `json:"args"`
	Symbolic     bool            `json:"symbolic"`
	SymbolicArgs []string        `json:"symbolic_args"`
	Critical     bool            `json:"critical"`
}

// userTask is a request of the user and the calls that carry it out.
type userTask struct {
	ID       string `json:"id"`
	Prompt   string `json:"prompt"`
	Calls    []call `json:"ground_truth"`
	Exposed  int    `json:"first_exposed_call"`
	Exposure []struct {
		Call    int      `json:"call"`
		Vectors []string `json:"vectors"`
	} `json:"injection_exposure"`
}

// injectionTask is the goal of an attacker and the calls that reach it.
type injectionTask struct {
	ID    string `json:"id"`
	Goal  string `json:"goal"`
	Calls []call `json:"ground_truth"`
}

// results holds the texts that calls return. In them, {{name}} marks the place of an outsider's text.
type results struct {
	Vectors    map[string]string   `json:"injection_vectors"`
	Users      map[string][]string `json:"user_tasks"`
	Injections map[string][]string `json:"injection_tasks"`
}

// load reads the suites from the folder.
func load(folder string) ([]suite, error) {
	var tools struct {
		Suites map[string][]tool `json:"suites"`
	}
	var users struct {
		Suites map[string][]userTask `json:"suites"`
	}
	var injections struct {
		Suites map[string][]injectionTask `json:"suites"`
	}
	var texts struct {
		Suites map[string]results `json:"suites"`
	}
	for name, into := range map[string]any{
		"tools.json": &tools, "user_tasks.json": &users, "injection_tasks.json": &injections, "results.json": &texts,
	} {
		body, err := os.ReadFile(filepath.Join(folder, name)) //nolint:gosec // the folder is an argument of the program
		if err != nil {
			return nil, fmt.Errorf("read the data set: %w", err)
		}
		if err := json.Unmarshal(body, into); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	suites := make([]suite, 0, len(users.Suites))
	for _, name := range slices.Sorted(maps.Keys(users.Suites)) {
		s := suite{
			name: name, tools: map[string]tool{}, users: users.Suites[name], injections: injections.Suites[name], results: texts.Suites[name],
		}
		for _, t := range tools.Suites[name] {
			s.tools[t.Name] = t
		}
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("suite %s: %w", name, err)
		}
		suites = append(suites, s)
	}
	return suites, nil
}

// check reports what the files do not agree on.
func (s *suite) check() error {
	for _, task := range s.users {
		if len(s.results.Users[task.ID]) != len(task.Calls) || task.Exposed >= len(task.Calls) {
			return fmt.Errorf("%s: results.json needs one text for each of its %d calls, and first_exposed_call must be one of them", task.ID, len(task.Calls))
		}
		for _, c := range task.Calls {
			if _, ok := s.tools[c.Tool]; !ok {
				return fmt.Errorf("%s: tools.json has no tool %s", task.ID, c.Tool)
			}
		}
	}
	for _, task := range s.injections {
		if len(s.results.Injections[task.ID]) != len(task.Calls) {
			return fmt.Errorf("%s: results.json needs one text for each of its %d calls", task.ID, len(task.Calls))
		}
		for _, c := range task.Calls {
			if _, ok := s.tools[c.Tool]; !ok {
				return fmt.Errorf("%s: tools.json has no tool %s", task.ID, c.Tool)
			}
		}
	}
	return nil
}

// matters reports whether a call of the tool writes or sends.
func (t tool) matters() bool {
	return t.Effect != "read" || t.Sends
}

// toolPrefix begins the names of the tools in jig.
const toolPrefix = "dojo."

// contract returns the tool as jig knows it. What destroys something counts as a write, because jig asks about the former without the guard.
func (t tool) contract() jig.Tool {
	labels := jig.Labels{Sends: t.Sends}
	if t.ReadsPrivate {
		labels.Reads = append(labels.Reads, jig.ReadsPrivate)
	}
	if t.ReadsUntrusted {
		labels.Reads = append(labels.Reads, jig.ReadsUntrusted)
	}
	permission := jig.PermissionWrite
	if t.Effect == "read" {
		permission = jig.PermissionRead
	}
	return jig.Tool{
		Name: toolPrefix + t.Name, Description: "A tool of the benchmark.", Permission: permission, Risk: jig.RiskSafe, Approval: jig.ApprovalAuto, Labels: &labels, InputSchema: t.schema(),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`),
	}.WithDefaults()
}

// schema returns the JSON Schema of a tool's input.
func (t tool) schema() json.RawMessage {
	properties := map[string]any{}
	required := []string{}
	for _, p := range t.Parameters {
		property := map[string]any{"type": p.Type, "description": p.Description}
		if p.Nullable {
			property["type"] = []string{p.Type, "null"}
		}
		if p.Items != nil {
			property["items"] = map[string]any{"type": p.Items}
		}
		if len(p.Enum) > 0 {
			property["enum"] = p.Enum
		}
		if p.Default != nil {
			property["default"] = p.Default
		}
		if slices.Contains(t.Destinations, p.Name) {
			property["x-destination"] = true
		}
		if p.Required {
			required = append(required, p.Name)
		}
		properties[p.Name] = property
	}
	body, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required})
	if err != nil {
		return nil // cannot happen: it was read from JSON
	}
	return body
}
