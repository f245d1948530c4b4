package starter

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/argument"
	"github.com/jig-run/jig/internal/jsontext"
	"github.com/jig-run/jig/internal/suggest"
)

// toolOf returns the tool that the flags describe, or the one of that name in the catalog.
func (a *app) toolOf(ctx context.Context, q policyQuestion) (jig.Tool, error) {
	if q.toolPermission != "" || q.toolRisk != "" {
		return describedTool(q)
	}
	const describe = "--tool-permission to describe the tool"
	known, err := a.catalog(ctx, q.catalog)
	if err != nil {
		return jig.Tool{}, alsoTry(err, "give --catalog FILE, or "+describe)
	}
	tool, ok := toolIn(known)(q.tool)
	if ok {
		return tool, nil
	}
	names := make([]string, 0, len(known.Tools))
	for _, t := range known.Tools {
		names = append(names, t.Name)
	}
	hint := cmp.Or(suggest.OrKnown(q.tool, names), "give "+describe)
	return tool, jig.Errorf(jig.CodeNotFound, "there is no tool %s", q.tool).WithField("tool").WithHint(hint)
}

// describedTool returns a tool with the permission and the risk of the flags. The one that is not given has its default.
func describedTool(q policyQuestion) (jig.Tool, error) {
	permissions := []jig.Permission{"", jig.PermissionRead, jig.PermissionDraft, jig.PermissionWrite, jig.PermissionDestructive}
	if !slices.Contains(permissions, jig.Permission(q.toolPermission)) {
		return jig.Tool{}, usagef("--tool-permission is %q; it must be read, draft, write or destructive", q.toolPermission)
	}
	if !slices.Contains([]jig.Risk{"", jig.RiskSafe, jig.RiskModerate, jig.RiskHigh}, jig.Risk(q.toolRisk)) {
		return jig.Tool{}, usagef("--tool-risk is %q; it must be safe, moderate or high", q.toolRisk)
	}
	return jig.Tool{Name: q.tool, Permission: jig.Permission(q.toolPermission), Risk: jig.Risk(q.toolRisk)}.WithDefaults(), nil
}

// inputOf builds an input from a JSON object, the key=value pairs, and the defaults at the top level of the tool's schema. The value of a
// pair is JSON, unless it is not valid JSON or the schema expects a string; then it becomes a string.
func inputOf(tool jig.Tool, given json.RawMessage, pairs map[string]string) (json.RawMessage, error) {
	fields := map[string]json.RawMessage{}
	if len(given) > 0 {
		if err := json.Unmarshal(given, &fields); err != nil {
			return nil, usagef("--input is not a JSON object: %w", err)
		}
	}
	var schema struct {
		Properties map[string]struct {
			Type    any             `json:"type"`
			Default json.RawMessage `json:"default"`
		} `json:"properties"`
	}
	_ = json.Unmarshal(tool.InputSchema, &schema) //nolint:errcheck // a schema without properties declares no types
	for name, text := range pairs {
		fields[name] = json.RawMessage(text)
		if schema.Properties[name].Type == "string" || !json.Valid([]byte(text)) {
			quoted, err := jsontext.Encode(text)
			if err != nil {
				return nil, err
			}
			fields[name] = quoted
		}
	}
	for name, property := range schema.Properties {
		if _, set := fields[name]; !set && property.Default != nil {
			fields[name] = property.Default
		}
	}
	input, err := jsontext.Encode(fields)
	if err != nil {
		return nil, err
	}
	return argument.Canonical(tool.InputSchema, input)
}
