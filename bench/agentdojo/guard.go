package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jig-run/jig"
	"github.com/jig-run/jig/internal/dataflow"
	"github.com/jig-run/jig/internal/policy"
	"github.com/jig-run/jig/spec"
)

// writesRun is the policy of the measurement: tools that write run, so that only the guard stops them.
const writesRun = `
kind: policy
name: measured
rules:
  - {name: writes-run, when: "tool.permission == 'write'", verdict: run}
`

// guard decides on calls as an admission does: it traces the arguments and asks the policies.
type guard struct {
	policies policy.Set
	// strict also asks about computed values.
	strict bool
}

// verdict is the guard's answer to a call.
type verdict struct {
	asks     bool
	findings dataflow.Findings
}

// newGuard returns a guard.
func newGuard(strict bool) (*guard, error) {
	document, err := spec.LoadPolicy("measured.yaml", []byte(writesRun))
	if err != nil {
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	rules, err := policy.Compile(document, "v1")
	if err != nil {
		return nil, fmt.Errorf("compile the policy: %w", err)
	}
	return &guard{policies: policy.NewSet(rules), strict: strict}, nil
}

// judge decides on the next call of a run. The arguments are traced once the session has read untrusted data.
func (g *guard) judge(ctx context.Context, s *session, c call) (verdict, error) {
	t := s.suite.tools[c.Tool]
	var v verdict
	var flow *jig.DataFlow
	if s.readUntrusted() {
		flow = &jig.DataFlow{ReadUntrusted: true}
		v.findings = dataflow.NewTracer(dataflow.NewKnowledge([]string{s.prompt}, s.calls)).Trace(c.Args, t.schema())
		untraced := v.findings.Untrusted
		if g.strict {
			untraced = append(untraced, v.findings.Computed...)
		}
		for _, a := range untraced {
			flow.UntrustedArguments = append(flow.UntrustedArguments, a.Path)
		}
		for _, a := range v.findings.UnknownDestinations {
			flow.UnknownDestinations = append(flow.UnknownDestinations, a.Path)
		}
	}
	ruling, err := g.policies.Rule(ctx, t.contract(), jig.Call{Tool: "dojo." + c.Tool, Input: c.Args, Flow: flow}, jig.Session{}, time.Time{})
	if err != nil {
		return v, fmt.Errorf("decide on %s: %w", c.Tool, err)
	}
	v.asks = ruling.Verdict != jig.VerdictRun
	return v, nil
}
